// Lab 10.7: what changes between training and writing, and what must not: the mask, the cache, the positions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "qkv/core/parallel.h"
#include "qkv/data/text.h"
#include "qkv/eval/d2l_bleu.h"
#include "qkv/labs/both.h"
#include "qkv/labs/stopwatch.h"
#include "qkv/labs/transformer.h"
#include "qkv/labs/work.h"
#include "qkv/ops/linear_loss.h"
#include "qkv/train/fit.h"

namespace qkv::labs::transformer {
namespace {

Ids rows_of(const Ids& ids, int64_t begin, int64_t end) {
  const int64_t width = ids.rank() == 2 ? ids.size(1) : 1;
  return ids.part(begin * width, ids.rank() == 2 ? Shape{end - begin, width} : Shape{end - begin});
}

double tokens_in(const Ids& lens) { return std::accumulate(lens.data().begin(), lens.data().end(), 0.0); }

// Summed over the tokens that are not padding.
Tensor summed_loss(const Transformer& model, const Tensor& x, const Ids& wanted, int32_t pad) {
  return linear_cross_entropy(x, model.decoder.output.weight, model.decoder.output.bias, wanted,
                              {.ignore_id = pad, .reduction = Reduction::sum});
}

// Nats per token with teacher forcing, all positions at once.
double loss_with(const Transformer& model, const std::vector<TranslationBatch>& batches, int32_t pad,
                 const Mask& mask) {
  double sum = 0, count = 0;
  for (const TranslationBatch& b : batches) {
    sum +=
        summed_loss(model, model.features(b.source, b.source_lens, b.target_in, Run{}, mask), b.target_out, pad).item();
    count += tokens_in(b.target_lens);
  }
  return sum / count;
}

Ids column(const Ids& ids, int64_t at) {
  Ids out = Ids::empty({ids.size(0)});
  for (int64_t b = 0; b < ids.size(0); ++b) out.mutable_ptr()[b] = ids.ptr()[b * ids.size(1) + at];
  return out;
}

// Nats per token with teacher forcing, one token per step through the cache.
double stepped_loss(const Transformer& model, const std::vector<TranslationBatch>& batches, int32_t pad) {
  double sum = 0, count = 0;
  for (const TranslationBatch& b : batches) {
    auto state = model.start(b.source, b.source_lens, Run{});
    for (int64_t t = 0; t < b.target_in.size(1); ++t) {
      const Tensor logits = model.step(state, column(b.target_in, t), Run{});
      sum += cross_entropy(logits, column(b.target_out, t), {.ignore_id = pad, .reduction = Reduction::sum}).item();
    }
    count += tokens_in(b.target_lens);
  }
  return sum / count;
}

// Greedy, of a model that shares the weights of `trained` but may have other options.
std::vector<std::string> written_by(const Transformer& model, const Trained& trained,
                                    const std::vector<std::string>& sentences) {
  const Tokenizer& words = trained.run.tokenizers().target;
  const int64_t most = trained.translator().defaults().max_length;
  std::vector<std::string> out;
  for (const TranslationBatch& b : batches_of(trained, {sentences, std::vector<std::string>(sentences.size(), ".")})) {
    const int64_t rows = b.source.size(0);
    auto state = model.start(b.source, b.source_lens, Run{});
    std::vector<std::vector<int32_t>> tokens(static_cast<size_t>(rows));
    std::vector<bool> ended(static_cast<size_t>(rows), false);
    Ids last = Ids::empty({rows});
    std::fill_n(last.mutable_ptr(), rows, words.bos());
    for (int64_t t = 0; t < most; ++t) {
      const Tensor logits = model.step(state, last, Run{});
      last = Ids::empty({rows});
      for (int64_t r = 0; r < rows; ++r) {
        std::vector<float> row(logits.ptr() + r * logits.size(1), logits.ptr() + (r + 1) * logits.size(1));
        row[static_cast<size_t>(words.pad())] = row[static_cast<size_t>(words.bos())] = -1e30f;
        const auto best = static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
        last.mutable_ptr()[r] = best;
        const auto at = static_cast<size_t>(r);
        ended[at] = ended[at] || best == words.eos();
        if (!ended[at]) tokens[at].push_back(best);
      }
    }
    for (const auto& t : tokens) out.push_back(words.decode(t));
  }
  return out;
}

// Training of a model whose decoder sees the whole target.
struct OpenTask {
  const Transformer& model;
  TranslationBatches all;
  int32_t pad;

  int64_t batches() const { return all.batches(); }
  TranslationBatch batch(int64_t epoch, int64_t index) const { return all.batch(epoch, index); }
  int64_t rows(const TranslationBatch& b) const { return b.source.size(0); }
  double count(const TranslationBatch& b) const { return tokens_in(b.target_lens); }
  Loss loss(const TranslationBatch& b, int64_t begin, int64_t end, const Run& run) const {
    const Tensor x = model.features(rows_of(b.source, begin, end), rows_of(b.source_lens, begin, end),
                                    rows_of(b.target_in, begin, end), run, Mask::none());
    const Tensor sum = summed_loss(model, x, rows_of(b.target_out, begin, end), pad);
    return {sum, tokens_in(rows_of(b.target_lens, begin, end))};
  }
};

// Its first words, of a sentence that does not end.
std::string cut(const std::string& sentence) {
  const auto words = split_blanks(sentence);
  if (words.size() <= 10) return sentence;
  return sentence.substr(0, static_cast<size_t>(words[9].data() + words[9].size() - sentence.data())) + " ...";
}

// Of the rows of a matrix.
double mean_length(const Tensor& rows) {
  double sum = 0;
  for (int64_t r = 0; r < rows.size(0); ++r) sum += length_of(rows.part(r * rows.size(1), {rows.size(1)}));
  return sum / static_cast<double>(rows.size(0));
}

std::string nats(double x) { return rounded(x, 3); }

// Why the slip does much or little: the size of words beside that of positions.
void say_how_loud_positions_are(Page& page, const Transformer& model, double differ) {
  const double words =
                   mean_length(model.decoder.embedding.weight) * std::sqrt(static_cast<double>(model.config.hidden)),
               waves = std::sqrt(static_cast<double>(model.config.hidden) / 2);
  const std::string share = percent(differ);
  if (page.data().empty()) {
    page.say(both(
        "{} of the translations differ: not knowing how far it has come, the decoder says things twice or stops too soon. A "
        "word's vector $\\sqrt{{d}} e$ is on average {:.0f} long here and a positional vector {:.0f}, so positions carry weight. "
        "The book's embeddings start as $N(0, 1)$, and after the factor $\\sqrt{{d}}$ they are 8 times as long as the positions: "
        "that its translations survive the slip shows how little its model uses them.",
        "有 {} 的译文不同：解码器不知道写到了哪里，于是重复，或过早结束。这里词向量 $\\sqrt{{d}} e$ 平均长 {:.0f}，位置向量长 "
        "{:.0f}，位置信息足够强。书中的嵌入以 $N(0, 1)$ 开始，乘以 $\\sqrt{{d}}$ 后是位置向量的 8 倍长：书中的译文经得起这个疏"
        "漏，说明它的模型很少利用位置。",
        share, words, waves));
    return;
  }
  page.say(both(
      "{} of the translations differ. A word's vector $\\sqrt{{d}} e$ is on average {:.0f} long here and a positional vector "
      "{:.0f}: embeddings that start as $N(0, 1)$ and are then multiplied by $\\sqrt{{d}}$ leave the positions little weight. "
      "And a causal decoder can tell where it is from what it has written. Without `--data` this lab trains a model whose "
      "embeddings start as large as the positions (`model.init = scaled`); there the slip ruins many translations.",
      "有 {} 的译文不同。这里词向量 $\\sqrt{{d}} e$ 平均长 {:.0f}，位置向量长 {:.0f}：嵌入以 $N(0, 1)$ 开始，再乘以 "
      "$\\sqrt{{d}}$，位置就很难起作用。而且因果解码器可以从已写出的词知道自己写到了哪里。不带 `--data` 时，本实验训练的模型的嵌"
      "入一开始与位置一样大（`model.init = scaled`），这时这个疏漏会毁掉许多译文。",
      share, words, waves));
}

}  // namespace

void mask_step(Page& page) {
  page.heading({"A mask that does not ask whether we train", "与训练与否无关的掩蔽"});
  page.say(
      {"In training all words of the target go in at once, and the causal mask keeps each from seeing the next, which is "
       "what it must predict. The book's decoder puts the mask on **in training mode only**. While it writes there is nothing "
       "to hide, as later words do not exist yet. But a validation loss is computed in evaluation mode with the whole "
       "target: there the book's decoder sees the future. The validation losses of the English edition were made that way "
       "(1.86 in PyTorch, 2.94 in MXNet; TensorFlow keeps the mask and has 1.34), and cannot be compared.",
       "训练时目标句的所有词一次输入，因果掩蔽使每个词看不到下一个词，而那正是它要预测的。书中的解码器**只在训练模式**下加掩蔽。"
       "逐词写出时没有可隐藏的东西，后面的词还不存在。但验证损失是在评估模式下用整个目标句计算的：这时书中的解码器看得到未来。"
       "英文版的验证损失就是这样得来的（PyTorch 1.86，MXNet 2.94；TensorFlow 保留掩蔽，为 1.34），彼此不可比较。"});
  const Trained& model = trained(page, Kind::model);
  const Transformer& net = network(model);
  const auto batches = batches_of(model, judged(page, Judge::model));
  const int32_t pad = model.run.tokenizers().target.pad();
  const double masked = loss_with(net, batches, pad, Mask::causal()), open = loss_with(net, batches, pad, Mask::none());
  const double stepped = stepped_loss(net, batches, pad);
  named_table(page,
              {{"the trained model, " + judged_name(page).en, "训练好的模型，" + judged_name(page).zh},
               {"nats per token", "每词元奈特"}},
              {{{"causal mask", "因果掩蔽"}, {nats(masked)}},
               {{"one word per step, as it writes", "逐词进行，如生成时"}, {nats(stepped)}},
               {{"no mask: the book's evaluation mode", "无掩蔽：书中的评估模式"}, {nats(open)}}});
  if (page.data().empty())
    page.say(both(
        "The validation loss after the last epoch, {}, is a number of the first kind on other sentences: the {} of validation, "
        "not the {} held-out ones.",
        "最后一轮之后的验证损失 {} 与上面第一个数是同一种量，但句子不同：那里是 {} 个验证句子，这里是 {} 个留出句子。",
        nats(model.valid_losses.back()), grouped(model.run.validation_pairs()), judged(page, Judge::model).size()));
  page.claim(std::abs(masked - stepped) < 1e-4 * std::max(1.0, masked),
             {"With the mask, evaluation gives the loss of the model that writes word by word.",
              "有掩蔽时，评估得到的正是逐词书写的模型的损失。"},
             fmt::format("{:.6f} all at once, {:.6f} word by word", masked, stepped));
  page.claim(
      open > 1.2 * masked,
      {"Without it, the loss reported is of another model, and a worse one: its weights were never trained to share a row with "
       "later words.",
       "去掉掩蔽，报告的是另一个模型的损失，而且更差：它的权重从未学过与后面的词分享一行。"},
      nats(open) + " without, " + nats(masked) + " with the mask");
  const TranslationBatch& b = batches[0];
  Ids other = Ids::empty(b.target_in.shape());
  const int64_t steps = other.size(1), at = steps / 2;
  for (int64_t i = 0; i < other.numel(); ++i) other.mutable_ptr()[i] = i % steps >= at ? 4 : b.target_in.ptr()[i];
  const auto early = [&](const Run& run) {
    const Tensor x = net.logits(b.source, b.source_lens, b.target_in, run),
                 y = net.logits(b.source, b.source_lens, other, run);
    double most = 0;
    for (int64_t i = 0; i < x.numel(); ++i)
      if (i / x.size(2) % steps < at) most = std::max(most, std::abs(static_cast<double>(x.ptr()[i]) - y.ptr()[i]));
    return most;
  };
  const double evaluating = early(Run{}), training = early(Run{.training = true, .rng = Rng(page.seed()).at("mask")});
  page.claim(
      evaluating == 0 && training == 0,
      {"In this library the mask belongs to the decoder: with other words in the second half of the target the first half of the "
       "outputs stays the same to the bit, in training and out of it.",
       "本库中掩蔽属于解码器本身：换掉目标句后半的词，前半的输出逐位不变，训练与否都一样。"},
      fmt::format("positions 0 to {} change by {} in training, by {} in evaluation", at - 1, training, evaluating));
}

void cheating_step(Page& page) {
  page.heading({"What the mask prevents", "掩蔽防止了什么"});
  const Trained& like = trained(page, Kind::relative);
  const Tokenizers& t = like.run.tokenizers();
  const int32_t pad = t.target.pad();
  Transformer model(network(like).config, like.run.tokenizers().sizes(), Rng(page.seed()).at("cheating"));
  SentencePairs text = like.run.text().train;
  const auto pairs = static_cast<size_t>(std::min<int64_t>(text.size(), 2000));
  text.source.resize(pairs), text.target.resize(pairs);
  const int64_t epochs = page.data().empty() ? 5 : 20;
  const Parameters all = flatten(model);
  Adam adam;
  const OpenTask task{model,
                      TranslationBatches(encode_pairs(text, t.source, t.target), t.source.pad(), pad, t.target.bos(),
                                         {.rows = like.run.config().training.batch_rows, .seed = page.seed()}),
                      pad};
  Work work(page, training_of({{"a decoder without a causal mask", "没有因果掩蔽的解码器"}}));
  WorkObserver follower(work);
  Observer* observers[] = {&follower};
  fit(all, adam, {.epochs = epochs, .rate = constant_rate(0.005f), .clip = 1, .seed = page.seed()}, task, observers);
  const SentencePairs& judge = judged(page, Judge::exercises);
  const auto batches = batches_of(like, judge);
  const double open = loss_with(model, batches, pad, Mask::none()),
               causal = loss_with(model, batches, pad, Mask::causal());
  const auto written = written_by(model, like, judge.source);
  const double bleu = quality(page, Judge::exercises, written).bleu,
               honest_bleu = quality(page, Judge::exercises, translate(like, judge.source)).bleu;
  const double honest = loss_with(network(like), batches, pad, Mask::causal());
  page.say(both(
      "Train without the mask, {} epochs on {} pairs with relative positions (\"the next word\" is a fixed distance), and the "
      "decoder finds the answer in its own input: word $t$ of the output is word $t + 1$ of what it is fed. The loss falls fast. "
      "Then it has to write, and the next word is not there to be copied. Beside it stands the model with relative positions of "
      "the table of positions, which was trained with the mask.",
      "不加掩蔽训练（{} 轮，{} 对，用相对位置：“下一个词”就是一个距离），解码器会在自己的输入里找到答案：第 $t$ 个输出词就是第 "
      "$t + 1$ 个输入词。损失下降很快。可是到了生成时，下一个词并不在那里可抄。旁边是位置比较表中用相对位置、带掩蔽训练的模型。",
      epochs, grouped(static_cast<int64_t>(pairs))));
  named_table(page,
              {{judged_name(page).en, judged_name(page).zh},
               {"nats per token, sees all", "每词元奈特（全看见）"},
               {"nats per token, causal", "每词元奈特（因果）"},
               {"mean d2l-bleu", "平均 d2l-bleu"}},
              {{{"trained without a mask", "无掩蔽训练"}, {nats(open), nats(causal), nats(bleu)}},
               {both("trained with it, {} epochs on {}", "有掩蔽训练（{} 轮，{} 对）",
                     like.run.config().training.epochs, grouped(like.run.training_pairs())),
                {nats(loss_with(network(like), batches, pad, Mask::none())), nats(honest), nats(honest_bleu)}}});
  page.print(fmt::format("{}\n  wanted   {}\n  written  {}", judge.source[0], judge.target[0], cut(written[0])));
  page.claim(
      open < 0.7 * honest && causal > 2 * open && bleu < honest_bleu,
      {"A low loss that means nothing: the copyist's is far below the honest model's while it may look ahead, and rises several "
       "times when it may not.",
       "毫无意义的低损失：能偷看时远低于老实训练的模型，不能偷看时升高数倍。"},
      fmt::format("copyist {:.3f}, honest model {:.3f}; copyist behind the mask {:.3f}; d2l-bleu {:.3f} and {:.3f}",
                  open, honest, causal, bleu, honest_bleu));
}

void cache_step(Page& page) {
  page.heading({"The cache", "键值缓存"});
  page.say(
      {"When it writes, the decoder need not compute old positions again: their keys and values stay as they are, since no position sees a "
       "later one. It keeps them and computes one new row per step. (The book keeps the inputs of the blocks and projects them again every "
       "time; here the projected keys and values are kept, and those of the encoder's outputs are made once.)",
       "生成（解码）时，解码器不必重算旧位置：没有位置看得到后面，所以它们的键和值不变。把它们存起来，每步只算新的一行。"
       "（书中存的是各块的输入，每次重新投影；这里存投影后的键和值，编码器输出的键和值只算一次。）"});
  const Trained& model = trained(page, Kind::model);
  const Transformer& net = network(model);
  const TranslationBatch b = batches_of(model, judged(page, Judge::model))[0];
  const Tensor whole = net.logits(b.source, b.source_lens, b.target_in, Run{});
  auto state = net.start(b.source, b.source_lens, Run{});
  double most = 0, largest = 0;
  const int64_t steps = whole.size(1), words = whole.size(2);
  for (int64_t t = 0; t < steps; ++t) {
    const Tensor logits = net.step(state, column(b.target_in, t), Run{});
    for (int64_t r = 0; r < whole.size(0); ++r)
      for (int64_t w = 0; w < words; ++w) {
        const double x = whole.ptr()[(r * steps + t) * words + w];
        most = std::max(most, std::abs(x - logits.ptr()[r * words + w])), largest = std::max(largest, std::abs(x));
      }
  }
  // Sums of up to 64 terms in another order, through two layers: some dozens of roundings of 6e-8 each.
  page.claim(
      most < 1e-5 * std::max(largest, 10.0),
      {"Step by step with the cache, the scores are those of the whole prefix, to rounding: within a hundred-thousandth of the largest.",
       "用缓存逐步计算，所得分数与整个前缀一次计算相同（舍入误差之内：不到最大分数的十万分之一）。"},
      fmt::format("scores up to {:.1f} differ by at most {}", largest, tiny(most)));
  constexpr int32_t kLong = 96;
  Ids ids = Ids::empty({1, kLong});
  std::fill_n(ids.mutable_ptr(), kLong, 4);
  const Ids lens({1}, {kLong});
  // One core and both in turn, so that what else the machine does falls on both; the encoder runs once in each.
  const SerialScope serial;
  double kept = 1e9, again = 1e9;
  for (int repeat = 0; repeat < 5; ++repeat) {
    kept = std::min(kept, thread_seconds([&] {
                      auto s = net.start(ids, lens, Run{});
                      for (int64_t t = 0; t < kLong; ++t) net.step(s, column(ids, t), Run{});
                    }));
    again = std::min(
        again, thread_seconds([&] {
          const Tensor memory = net.encoder(ids, lens, Run{});
          for (int64_t t = 1; t <= kLong; ++t) {
            const Tensor x = net.decoder.features(ids.part(0, {1, t}), {memory, Mask::valid_lens(lens)}, Run{});
            net.decoder.output(x.part((t - 1) * x.size(2), {1, x.size(2)}));
          }
        }));
  }
  page.claim(
      again > 1.5 * kept,
      {"Ninety-six words cost the decoder 96 rows with the cache and 1 + 2 + ... + 96 = 4,656 without it: the cache is faster, with "
       "the encoder run once in both.",
       "写 96 个词，解码器有缓存时算 96 行，没有则算 1 + 2 + ... + 96 = 4,656 行：有缓存更快（两种情形编码器都只运行一次）。"},
      fmt::format("{:.1f} ms with the cache, {:.1f} ms without", 1e3 * kept, 1e3 * again));
}

void inference_positions_step(Page& page) {
  page.heading({"At which position is the word that is being written?", "正在写的词在哪个位置？"});
  page.say(
      {"With a cache the decoder is fed one token per step. The book's code adds the positional encoding to what it is fed, and a sequence "
       "of one token has position 0: **when it writes, every word stands at position 0**, though in training they stood at 0, 1, 2, ... "
       "The book's published translations were made so. Here the step number is the position; `book.positions` "
       "(`TransformerDecoder::advance_positions = false`) reproduces the book.",
       "有缓存时，解码器每步只输入一个词元。书中的代码把位置编码加在输入上，而长度为一的序列位置是 0："
       "**生成时每个词都在位置 0**，尽管训练时它们在 0、1、2……书中公布的译文就是这样得来的。"
       "这里以步数为位置；`book.positions`（`TransformerDecoder::advance_positions = false`）可重现书中的做法。"});
  const Trained& model = trained(page, Kind::model);
  const Transformer& right = network(model);
  Transformer book = right;  // the same weights
  book.decoder.advance_positions = false;
  const SentencePairs &pairs = shown_pairs(page), &judge = judged(page, Judge::model);
  const auto ours = written_by(right, model, pairs.source), theirs = written_by(book, model, pairs.source);
  std::string out;
  for (size_t i = 0; i < ours.size(); ++i)
    out += fmt::format("{}{}\n  wanted            {}\n  advancing  {:.3f}  {}\n  book's     {:.3f}  {}", i ? "\n" : "",
                       pairs.source[i], pairs.target[i], d2l_bleu(ours[i], pairs.target[i]), ours[i],
                       d2l_bleu(theirs[i], pairs.target[i]), cut(theirs[i]));
  page.print(out);
  const auto batches = batches_of(model, judge);
  const int32_t pad = model.run.tokenizers().target.pad();
  const double right_loss = stepped_loss(right, batches, pad), book_loss = stepped_loss(book, batches, pad);
  const auto right_text = written_by(right, model, judge.source), book_text = written_by(book, model, judge.source);
  const double differ = 1 - share_exact(book_text, right_text);
  named_table(
      page,
      {{judged_name(page).en, judged_name(page).zh}, {"nats per token", "每词元奈特"}, {"written exactly", "完全正确"}},
      {{{"positions advance", "位置递增"}, {nats(right_loss), percent(quality(page, Judge::model, right_text).exact)}},
       {{"position 0, as in the book", "位置恒为 0（书）"},
        {nats(book_loss), percent(quality(page, Judge::model, book_text).exact)}}});
  page.claim(right_text == translate(model, judge.source),
             {"The loop of this page writes what `qkv translate` writes.", "本页的循环写出的与 `qkv translate` 相同。"},
             fmt::format("the same in all {} sentences", judge.size()));
  const TranslationBatch& b = batches[0];
  auto state = right.start(b.source, b.source_lens, Run{}), book_state = state;
  double first = 0, second = 0;
  for (double* difference : {&first, &second}) {
    const Ids fed = column(b.target_in, difference == &first ? 0 : 1);
    *difference = largest_difference(right.step(state, fed, Run{}), book.step(book_state, fed, Run{}));
  }
  page.claim(first == 0 && second > 0,
             {"The scores of the first word are the same, to the bit, and from the second on they are not.",
              "第一个词的分数逐位相同，从第二个词起就不同了。"},
             fmt::format("first word: apart by {}; second: by up to {:.3f}", first, second));
  if (page.data().empty())
    page.claim(book_loss > 1.5 * right_loss,
               {"The model thinks less of the right translations when all their words stand at position 0.",
                "所有词都在位置 0 时，模型给正确译文的概率更低。"},
               nats(book_loss) + " nats per token at position 0, " + nats(right_loss) + " at their own");
  say_how_loud_positions_are(page, right, differ);
}

}  // namespace qkv::labs::transformer
