// Lab 10.7: kinds of positions, and the questions that ask for thought: language models, long inputs, images.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "qkv/attention/multi_head.h"
#include "qkv/core/parallel.h"
#include "qkv/labs/stopwatch.h"
#include "qkv/labs/transformer.h"
#include "qkv/labs/work.h"
#include "qkv/ops/linear_loss.h"
#include "qkv/ops/reduce.h"
#include "qkv/ops/shape.h"
#include "qkv/train/fit.h"

namespace qkv::labs::transformer {
namespace {

struct Named {
  Kind kind;
  PositionKind positions;
  Text name;
};

const std::vector<Named>& position_kinds() {
  static const std::vector<Named> all = {{Kind::reference, PositionKind::sinusoidal, {"sinusoidal", "正弦"}},
                                         {Kind::learned, PositionKind::learned, {"learned", "学习得到"}},
                                         {Kind::relative, PositionKind::relative, {"relative bias", "相对偏置"}},
                                         {Kind::rotary, PositionKind::rotary, {"rotary", "旋转"}},
                                         {Kind::alibi, PositionKind::alibi, {"ALiBi", "ALiBi（线性偏置）"}},
                                         {Kind::no_positions, PositionKind::none, {"none", "无"}}};
  return all;
}

enum class Order { first_word_last, mirrored };

// How much the scores of a trained model change when the words of a source, the longest of the batch, stand in another
// order.
double order_matters(const Trained& t, const TranslationBatch& b, Order order) {
  const auto& lens = b.source_lens.data();
  const int64_t row = std::max_element(lens.begin(), lens.end()) - lens.begin(), length = b.source_lens.ptr()[row],
                steps = b.target_in.size(1);
  const Ids source = b.source.part(row * b.source.size(1), {1, length}),
            target = b.target_in.part(row * steps, {1, steps});
  Ids other = Ids::empty({1, length});
  if (order == Order::mirrored)
    std::reverse_copy(source.data().begin(), source.data().end(), other.mutable_ptr());
  else
    std::rotate_copy(source.data().begin(), source.data().begin() + 1, source.data().end(), other.mutable_ptr());
  return largest_difference(network(t).logits(source, {}, target, Run{}), network(t).logits(other, {}, target, Run{}));
}

// Pairs of n positions that are at most `reach` apart.
int64_t pairs_in_window(int64_t n, int64_t reach) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += std::min(n - 1, i + reach) - std::max<int64_t>(0, i - reach) + 1;
  return count;
}

// A decoder alone that reads a sentence and predicts its next word.
struct LanguageTask {
  const TransformerDecoder& model;
  TranslationBatches all;
  int32_t pad;

  Tensor sum(const Ids& in, const Ids& out, const Run& run) const {
    return linear_cross_entropy(model.features(in, {}, run), model.output.weight, model.output.bias, out,
                                {.ignore_id = pad, .reduction = Reduction::sum});
  }
  static double tokens_in(const Ids& lens) { return std::accumulate(lens.data().begin(), lens.data().end(), 0.0); }

  int64_t batches() const { return all.batches(); }
  TranslationBatch batch(int64_t epoch, int64_t index) const { return all.batch(epoch, index); }
  int64_t rows(const TranslationBatch& b) const { return b.target_in.size(0); }
  double count(const TranslationBatch& b) const { return tokens_in(b.target_lens); }
  Loss loss(const TranslationBatch& b, int64_t begin, int64_t end, const Run& run) const {
    const int64_t n = end - begin, steps = b.target_in.size(1);
    const Tensor total =
        sum(b.target_in.part(begin * steps, {n, steps}), b.target_out.part(begin * steps, {n, steps}), run);
    return {total, tokens_in(b.target_lens.part(begin, {n}))};
  }
};

// Nats per token of words drawn with the frequencies of the training text, whatever came before.
double unigram_loss(const std::vector<TranslationBatch>& seen, const std::vector<TranslationBatch>& judged,
                    int32_t vocabulary, int32_t pad) {
  std::vector<double> count(static_cast<size_t>(vocabulary), 1);
  for (const TranslationBatch& b : seen)
    for (const int32_t id : b.target_out.data())
      if (id != pad) ++count[static_cast<size_t>(id)];
  const double all = std::accumulate(count.begin(), count.end(), 0.0);
  double sum = 0, tokens = 0;
  for (const TranslationBatch& b : judged)
    for (const int32_t id : b.target_out.data())
      if (id != pad) sum -= std::log(count[static_cast<size_t>(id)] / all), ++tokens;
  return sum / tokens;
}

}  // namespace

void position_kinds_step(Page& page) {
  page.heading({"Six ways to know one's place", "六种位置表示"});
  page.say(
      {"Attention itself does not know the order of its keys. Vectors may be added to the embeddings, fixed (sinusoidal) or learned; or "
       "the distance of query and key may act inside self-attention: as a learned bias on the score, as a rotation of queries and keys, or "
       "as a penalty that grows with the distance (ALiBi). One key of the configuration, `model.positions`, chooses.",
       "注意力本身不知道键的次序。可以给嵌入加上向量，固定的（正弦）或学习得到的；也可以让查询与键的距离在自注意力内部起作用："
       "作为分数上学习得到的偏置，作为查询与键的旋转，或作为随距离增长的惩罚（ALiBi）。配置中的 `model.positions` 一项决定用哪种。"});
  std::vector<std::pair<Text, std::vector<std::string>>> rows;
  const SentencePairs& judge = judged(page, Judge::exercises);
  const TranslationBatch batch = batches_of(trained(page, Kind::reference), judge)[0];
  double blind = 0, least = 1e9;
  for (const Named& n : position_kinds()) {
    const Trained& t = trained(page, n.kind);
    const double change = order_matters(t, batch, Order::first_word_last);
    if (n.positions == PositionKind::none)
      blind = change;
    else
      least = std::min(least, change);
    rows.push_back({n.name,
                    {grouped(t.run.model().parameters().count()), rounded(1e3 * t.step_seconds, 2),
                     rounded(t.losses.back(), 3), rounded(forced_loss(t, judge), 3),
                     rounded(quality(page, Judge::exercises, translate(t, judge.source)).bleu, 3)}});
  }
  named_table(page,
              {{"positions", "位置"},
               {"parameters", "参数"},
               {"ms per step", "毫秒/步"},
               {"training loss", "训练损失"},
               page.data().empty() ? Text{"nats, held out", "奈特（留出）"} : Text{"nats, training", "奈特（训练）"},
               {"mean d2l-bleu", "平均 d2l-bleu"}},
              rows);
  page.say(
      {"**These trainings are short, each with one seed. They cannot rank variants that lie close together**: another seed changes the "
       "order. The table shows that all of them work and what they cost: time of a step on one core, training loss of the last epoch, nats "
       "per token under teacher forcing, and the mean score of the translations.",
       "**这些训练很短，且各只有一个种子，不能给相近的变体排名**：换一个种子名次就变。这张表只说明它们都可用，以及各自的代价：单核上每步的时间、最后一轮的训练损失、强制教学下每词元的奈特、译文的平均分。"});
  page.claim(
      blind < 1e-3 && least > 100 * blind,
      {"Without positions the encoder reads a bag of words: with its first word last a source gives the same scores, to rounding. "
       "With any of the other five it does not.",
       "没有位置时编码器读到的只是一袋词：把第一个词移到末尾，分数不变（舍入误差之内）。用其余五种则会变。"},
      fmt::format("scores change by {} without positions, by at least {:.3f} with them", tiny(blind), least));
  const double mirrored = order_matters(trained(page, Kind::alibi), batch, Order::mirrored),
               turned = order_matters(trained(page, Kind::rotary), batch, Order::mirrored);
  page.claim(
      mirrored < 1e-3 && turned > 100 * mirrored,
      {"ALiBi's penalty knows how far a word is but not on which side: to an encoder a sentence and its mirror image are the same. "
       "Rotations tell them apart.",
       "ALiBi 的惩罚只知道词有多远，不知道在哪一侧：对编码器来说，句子与它的镜像没有区别。旋转则能分辨。"},
      fmt::format("mirrored, scores change by {} with ALiBi and by {:.3f} with rotations", tiny(mirrored), turned));
  page.say(
      {"That training goes well without positions too has two reasons: in short sentences the words alone say most, and the decoder's "
       "causal mask tells it where it is.",
       "没有位置也能训练得不错，原因有二：短句中词本身就说明了大部分；解码器的因果掩蔽也让它知道自己在哪里。"});
}

void language_model_step(Page& page) {
  page.heading(
      {"Exercise 10.7.3 (English edition 11.7.3): a language model", "练习 10.7.3（英文版 11.7.3）：语言模型"});
  page.say(
      {"A language model predicts the next word from those before, and there is no other sentence to attend to: the **decoder alone**, "
       "without cross-attention. (An encoder sees "
       "both sides and is trained to fill in masked words instead, as BERT; encoder and decoder together are trained on span corruption, as "
       "T5: stretches of the text are cut out, a marker is left in the place of each, and the decoder writes what was cut.)",
       "语言模型由前面的词预测下一个词，没有另一个句子可看：所以**只用解码器**，去掉交叉注意力。（编码器看得到两侧，改为填出被掩蔽的词，如 "
       "BERT；编码器加解码器则用片段破坏（span corruption）来训练，如 T5：从文本中挖去若干片段，各留一个标记，由解码器写出挖去的内容。）"});
  const Trained& like = trained(page, Kind::reference);
  const Tokenizers& t = like.run.tokenizers();
  TransformerDecoder model(network(like).config, t.target.size(), Cross::no, Rng(page.seed()).at("language"));
  SentencePairs text = like.run.text().train;
  const auto pairs = static_cast<size_t>(std::min<int64_t>(text.size(), 3000));
  text.source.resize(pairs), text.target.resize(pairs);
  const Parameters all = flatten(model);
  Adam adam;
  const LanguageTask task{model,
                          TranslationBatches(encode_pairs(text, t.source, t.target), t.source.pad(), t.target.pad(),
                                             t.target.bos(), {.rows = 16, .seed = page.seed()}),
                          t.target.pad()};
  Work work(page, training_of({{"a language model", "语言模型"}}));
  WorkObserver follower(work);
  Observer* observers[] = {&follower};
  fit(all, adam, {.epochs = page.data().empty() ? 3 : 8, .rate = constant_rate(0.003f), .clip = 1, .seed = page.seed()},
      task, observers);
  const SentencePairs& judge = judged(page, Judge::exercises);
  const auto batches = batches_of(like, judge);
  double sum = 0, tokens = 0;
  for (const TranslationBatch& b : batches)
    sum += task.sum(b.target_in, b.target_out, Run{}).item(), tokens += LanguageTask::tokens_in(b.target_lens);
  const double words = unigram_loss(batches_of(like, text), batches, t.target.size(), t.target.pad()),
               alone = sum / tokens, translating = forced_loss(like, judge);
  const auto row = [](double loss) { return std::vector<std::string>{rounded(loss, 3), rounded(std::exp(loss), 1)}; };
  named_table(page,
              {{"French, " + judged_name(page).en, "法语，" + judged_name(page).zh},
               {"nats per token", "每词元奈特"},
               {"perplexity", "困惑度"}},
              {{{"word frequencies", "词频"}, row(words)},
               {{"decoder alone", "只有解码器"}, row(alone)},
               {{"reads the English sentence too", "还读英语句子"}, row(translating)}});
  page.claim(alone < words && translating < alone,
             {"The words before narrow the choice, and the source sentence narrows it further.",
              "前面的词缩小了选择范围，源句进一步缩小。"},
             fmt::format("{:.2f} nats by word frequencies, {:.2f} by the words before, {:.2f} with the source", words,
                         alone, translating));
}

void long_input_step(Page& page) {
  page.heading(
      {"Exercises 10.7.4 and 10.7.5 (English edition 11.7.4, 11.7.5): very long inputs, and cheaper Transformers",
       "练习 10.7.4、10.7.5（英文版 11.7.4、11.7.5）：很长的输入与更省的 Transformer"});
  page.say(
      {"Every position looks at every other: time grows with the square of the length $n$, and if the weights are kept, so does memory. "
       "Here they are never kept (forward and backward work in tiles), so memory grows with $n$; the time remains. Ways out: let each "
       "position see a window, or a few chosen positions; cluster the keys (Reformer); replace softmax by a product of features that can "
       "be summed first (linear attention); project the keys to fewer (Linformer). With a window of 64 positions to either side:",
       "每个位置都看所有位置：时间随长度 $n$ 的平方增长；若保留权重，内存也是。这里从不保留权重（前向与反向都分块进行），内存只随 $n$ 增"
       "长，但时间仍在。出路有：每个位置只看一个窗口，或若干选定的位置；把键聚类（Reformer）；用可先求和的特征乘积代替 softmax（线性注意"
       "力）；把键投影成更少的几个（Linformer）。用左右各 64 个位置的窗口："});
  const SerialScope serial;
  const MultiHead heads({.width = 32, .heads = 4}, Rng(page.seed()).at("long"));
  std::vector<std::vector<std::string>> rows;
  std::vector<double> lengths, full, window;
  const Mask all_positions = Mask::none(), near = Mask::window(64, 64);
  const auto once = [&](const Tensor& x, const Mask& mask) {
    return 1e3 * thread_seconds([&] { heads(x, x, x, mask, Run{}); });
  };
  for (int64_t n = 256; n <= 4096; n *= 2) {
    const Tensor x = normal({1, n, 32}, Rng(page.seed()).at("x"));
    double a = 1e9, w = 1e9;  // in turn, so that what else the machine does falls on both
    for (int repeat = 0; repeat < 3; ++repeat) a = std::min(a, once(x, all_positions)), w = std::min(w, once(x, near));
    lengths.push_back(static_cast<double>(n)), full.push_back(a), window.push_back(w);
    rows.push_back({grouped(n), grouped(n * n), grouped(pairs_in_window(n, 64)),
                    rounded(static_cast<double>(4 * n * n * 4) / (1 << 20), 2), rounded(a, 2), rounded(w, 2)});
  }
  page.table({{"positions", "位置数"},
              {"pairs, all", "全部的位置对"},
              {"pairs, window", "窗口内的位置对"},
              {"MB the weights would take", "权重所需 MB"},
              {"all positions, ms", "全部位置，毫秒"},
              {"window, ms", "窗口，毫秒"}},
             rows);
  page.draw("long-inputs",
            curves({{"all positions", lengths, full, line_style("ro-")},
                    {"window of 64 + 64", lengths, window, line_style("bo--")}},
                   {.label = "positions", .scale = AxisScale::log}, {.label = "ms", .scale = AxisScale::log}),
            {"One attention, 4 heads, width 32, forward, one core; both axes logarithmic.",
             "一个注意力，4 个头，宽 32，前向，单核；双对数坐标。"});
  page.fact(
      {"Sixteen times the length makes 256 times as many pairs of positions, and 18 times as many within the window.",
       "长度增到十六倍，位置对增到 256 倍，窗口内的位置对增到 18 倍。"},
      fmt::format("the times grew {:.0f} and {:.0f} times in this run", full.back() / full[0],
                  window.back() / window[0]));
  page.claim(full.back() > 2 * window.back(),
             {"At 4,096 positions attention within the window takes less than half the time of attention to all.",
              "4,096 个位置时，窗口内的注意力所需时间不到全部位置的一半。"},
             fmt::format("{:.1f} ms and {:.1f} ms", window.back(), full.back()));
}

void vision_step(Page& page) {
  page.heading({"Exercise 10.7.6: images without convolution", "练习 10.7.6：不用卷积的图像分类"});
  page.say(
      {"Cut the image into patches, and let each patch be a word: flattened, multiplied by a matrix to the model's width, with a position. "
       "The encoder works on the patches; a special first token, or the mean over all patches, is classified. A $28 \\times 28$ image in "
       "patches of $4 \\times 4$ is a sentence of 49 words (vision Transformer; Dosovitskiy et al., 2021).",
       "把图像切成小块，每块当作一个词：展平，乘以矩阵变到模型的宽度，再加上位置。编码器处理这些块；最后对一个特殊的首词元、或所有块的平均"
       "作分类。$28 \\times 28$ 的图像切成 $4 \\times 4$ 的块，就是 49 个词的句子（视觉 Transformer；Dosovitskiy 等，2021）。"});
  const Rng rng = Rng(page.seed()).at("vision");
  const Linear patch(16, 32, rng.at("patch"));
  const TransformerBlock block({.hidden = 32, .ffn = 64}, Cross::no, rng.at("block"));
  const Tensor cut = patches(uniform({1, 1, 28, 28}, rng.at("image")), 4);
  Ids order = Ids::empty({49});  // patch p goes to place 10 p mod 49: 10 and 49 have no common factor
  for (int32_t p = 0; p < 49; ++p) order.mutable_ptr()[p * 10 % 49] = p;
  const Tensor mixed = unsqueeze(gather_rows(cut.viewed({49, 16}), order), 0);
  const auto classified = [&](const Tensor& words) { return mean(block(words, Mask::none(), Run{}), 1); };
  const Tensor places = sinusoidal_positions(49, 32).viewed({1, 49, 32});
  const double without = largest_difference(classified(patch(cut)), classified(patch(mixed))),
               with = largest_difference(classified(add(patch(cut), places)), classified(add(patch(mixed), places)));
  page.print(fmt::format("image (28, 28) -> patches (49, 16) -> words (49, 32) -> encoder (49, 32) -> mean (32)"));
  page.claim(without < 1e-5 && with > 1e-3,
             {"Without positions an image whose patches are shuffled is the same image; with them it is not.",
              "没有位置时，块被打乱的图像与原图无异；有位置则不同。"},
             fmt::format("the mean changes by {} without positions, by {:.4f} with them", tiny(without), with));
}

}  // namespace qkv::labs::transformer
