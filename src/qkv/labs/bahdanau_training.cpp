// Lab 10.4: baseline and attention on the same data, and what they write.
#include <fmt/format.h>

#include <algorithm>

#include "qkv/eval/d2l_bleu.h"
#include "qkv/labs/bahdanau.h"
#include "qkv/labs/both.h"

namespace qkv::labs::bahdanau {
namespace {

// Loss after epoch 10, 20, ... of the PyTorch run that the book shows, read off its figures.
const std::vector<double> kBookBaseline = {.2048, .1440, .1092, .0844, .0665, .0545, .0463, .0410, .0359, .0331,
                                           .0303, .0281, .0267, .0252, .0246, .0235, .0226, .0220, .0218, .0209,
                                           .0202, .0203, .0200, .0202, .0205, .0196, .0197, .0194, .0192, .0191};
const std::vector<double> kBookAttention = {.2025, .1350, .1004, .0773, .0620, .0514, .0447, .0398, .0348,
                                            .0332, .0297, .0281, .0265, .0249, .0248, .0236, .0232, .0222,
                                            .0217, .0216, .0211, .0212, .0212, .0205, .0208};

Series book_curve(const std::string& name, const std::vector<double>& losses, std::string_view format) {
  Series out{name, {}, losses, line_style(format)};
  for (size_t i = 0; i < losses.size(); ++i) out.x.push_back(10 * static_cast<double>(i + 1));
  return out;
}

// Without the first 4 % of many epochs, which would squeeze the rest.
Series curve(const std::string& name, const std::vector<double>& epochs, const std::vector<double>& losses,
             std::string_view format) {
  const auto skip = static_cast<std::ptrdiff_t>(epochs.size() / 25);
  return {name, {epochs.begin() + skip, epochs.end()}, {losses.begin() + skip, losses.end()}, line_style(format)};
}

void train_on_book(Page& page, const Trained& baseline, const Trained& attention) {
  page.say(
      {"The book's settings: 601 pairs, width 32, two layers, dropout 0.1, batches of 64, Adam with rate 0.005, gradients clipped at 1; "
       "300 epochs for the baseline, 250 with attention. The dotted curves are the book's own PyTorch run.",
       "书中的设置：601 对，宽 32，两层，暂退 0.1，批量 64，Adam 学习率 0.005，梯度裁剪到 1；基线 300 轮，注意力 250 轮。点线是书中 "
       "PyTorch 的运行结果。"});
  page.draw(
      "losses",
      curves({curve("baseline", baseline.epochs, baseline.losses, "b-"),
              curve("attention", attention.epochs, attention.losses, "r-"),
              book_curve("baseline, book", kBookBaseline, "b:"), book_curve("attention, book", kBookAttention, "r:")},
             {.label = "epoch"}, {.label = "loss (book's unit)", .scale = AxisScale::log}),
      {"Training loss in the book's unit: the loss per token divided by 10.",
       "训练损失，按书中的单位：每词元损失除以 10。"});
  std::vector<double> baselines, attentions;
  for (const BookRun& run : book_runs(page))
    baselines.push_back(run.baseline_loss), attentions.push_back(run.attention_loss);
  const double a = median(attentions), b = median(baselines);
  named_table(
      page,
      {{"", ""},
       {"loss, here, median of 5 seeds", "损失（本程序，5 个种子的中位数）"},
       {"loss, book", "损失（书）"},
       {"21 published runs", "21 次公开运行"},
       {"tokens/s, here, one core", "词元/秒（本程序，单核）"},
       {"tokens/s, book's GPU", "词元/秒（书，GPU）"}},
      {{{"baseline", "基线"},
        {rounded(b, 4), "0.019", "0.019–0.021", grouped(static_cast<int64_t>(baseline.tokens_per_second)), "12,745"}},
       {{"attention", "注意力"},
        {rounded(a, 4), "0.021", "0.019–0.022", grouped(static_cast<int64_t>(attention.tokens_per_second)), "4,949"}}});
  if (is_books_data(page))
    page.claim(
        a > 0.018 && a < 0.023 && b > 0.0161 && b < 0.023,
        {"In the median of five seeds both end where the book's runs end: attention between 0.018 and 0.023, the baseline between the floor "
         "0.0161 and 0.023.",
         "5 个种子的中位数都收敛到书中的范围：注意力在 0.018 与 0.023 之间，基线在下限 0.0161 与 0.023 之间。"},
        fmt::format("attention {:.4f}, baseline {:.4f}", a, b));
}

void train_on_built_in(Page& page, const Trained& baseline, const Trained& attention) {
  const TranslationConfig& c = attention.run.config();
  page.say(both(
      "{} pairs, width {}, one layer, a bidirectional encoder, batches of {}, Adam with a rate that falls from {} along a "
      "cosine, {} epochs: the same for both. Validation is on sentences with a pair of words that no training sentence combines. "
      "(`qkv train --preset bahdanau` is the same on more data with a wider model.)",
      "{} 对，宽 {}，一层，双向编码器，批量 {}，Adam，学习率从 {} 起按余弦下降，{} 轮：两者相同。验证集的句子含有训练集从未组合过"
      "的两个词。（`qkv train --preset bahdanau` 用更多数据和更宽的模型做同样的事。）",
      grouped(attention.run.training_pairs()), c.seq2seq().hidden, c.training.batch_rows, c.training.rate,
      c.training.epochs));
  page.draw(
      "losses",
      curves({curve("baseline, training", baseline.epochs, baseline.losses, "b-"),
              curve("baseline, validation", baseline.epochs, baseline.valid_losses, "b--"),
              curve("attention, training", attention.epochs, attention.losses, "r-"),
              curve("attention, validation", attention.epochs, attention.valid_losses, "r--")},
             {.label = "epoch"}, {.label = "loss, nats per token", .low = 0.02, .scale = AxisScale::log}),
      {"The baseline learns its training sentences, yet falls behind on new ones: it has to pack a sentence into one vector.",
       "基线能学会训练句子，但在新句子上落后：它必须把整句压进一个向量。"});
  const std::vector<AlignedPair>& held = held_out(page);
  const SentencePairs test = sentences_of(held);
  const double exact_a = share_exact(translate(attention, test.source), test.target),
               exact_b = share_exact(translate(baseline, test.source), test.target);
  const auto row = [](const Trained& t, double exact) {
    return std::vector<std::string>{grouped(t.run.model().parameters().count()), rounded(t.losses.back(), 3),
                                    rounded(*std::min_element(t.valid_losses.begin(), t.valid_losses.end()), 3),
                                    percent(exact), grouped(static_cast<int64_t>(t.tokens_per_second))};
  };
  named_table(page,
              {{"", ""},
               {"parameters", "参数"},
               {"training loss", "训练损失"},
               {"validation loss", "验证损失"},
               {"held-out sentences exact", "留出句子完全正确"},
               {"tokens/s, one core", "词元/秒（单核）"}},
              {{{"baseline", "基线"}, row(baseline, exact_b)}, {{"attention", "注意力"}, row(attention, exact_a)}});
  page.claim(attention.valid_losses.back() < 0.7 * baseline.valid_losses.back(),
             {"On new sentences attention has the lower loss, by more than 30 %.",
              "在新句子上，注意力的损失更低，低三成以上。"},
             fmt::format("attention {:.3f}, baseline {:.3f} nats per token", attention.valid_losses.back(),
                         baseline.valid_losses.back()));
  page.claim(
      exact_a > exact_b + 0.1,
      {"It writes far more of the held-out sentences without a mistake.", "留出句子中一字不错的远多于基线。"},
      fmt::format("{} with attention, {} without, of {} sentences", percent(exact_a), percent(exact_b), test.size()));
}

// The book's score, by hand.
void bleu_example(Page& page) {
  page.say(
      {"The numbers are the book's own score, which is not the usual BLEU: precisions $p_n$ of the words ($n = 1$) and of the pairs of "
       "words ($n = 2 = k$), times a penalty for short output. An exact translation has 1.",
       "数字是书中自定义的分数，并非通常的 BLEU：一元（$n = 1$）与二元（$n = 2 = k$）精确率 $p_n$，再乘以对过短输出的惩罚。完全正确为 1。"});
  page.formula("\\exp(\\min(0, 1 - L / L')) \\prod_{n=1}^{k} p_n^{1/2^n}");
  page.fact(
      {"The book's example: wanted A B C D E F ($L = 6$), written A B B C D ($L' = 5$). $p_1 = 4/5$, $p_2 = 3/4$, penalty $\\exp(-1/5)$.",
       "书中的例子：标签序列 A B C D E F（$L = 6$），预测序列 A B B C D（$L' = 5$）。$p_1 = 4/5$，$p_2 = 3/4$，惩罚 $\\exp(-1/5)$。"},
      fmt::format("score {:.3f}", d2l_bleu("A B B C D", "A B C D E F")));
}

// The four sentences with every seed, and what they can tell.
void say_seeds(Page& page) {
  std::vector<std::vector<std::string>> rows;
  std::vector<double> plain, attended, plain_known, attended_known;
  const auto four = book_sentences();
  const auto scores = [&](const std::vector<std::string>& written, std::vector<double>& all,
                          std::vector<double>& known) {
    double sum = 0, without = 0;  // the third is the one that is not in the training set
    for (size_t i = 0; i < four.size(); ++i) {
      const double score = d2l_bleu(written[i], four[i].target);
      sum += score / 4, without += i == 2 ? 0 : score / 3;
    }
    all.push_back(sum), known.push_back(without);
    return rounded(sum, 3);
  };
  for (const BookRun& run : book_runs(page))
    rows.push_back({std::to_string(run.seed), scores(run.baseline, plain, plain_known), run.baseline[2],
                    scores(run.attention, attended, attended_known), run.attention[2]});
  page.say(
      {"One seed proves little. The mean of the four sentences, and what becomes of `he's calm .`, with five seeds:",
       "一个种子说明不了多少。五个种子下四句的平均分，以及 `he's calm .` 的译文："});
  page.table({{"seed", "种子"},
              {"baseline, mean", "基线，平均"},
              {"baseline, he's calm .", "基线，he's calm ."},
              {"attention, mean", "注意力，平均"},
              {"attention, he's calm .", "注意力，he's calm ."}},
             rows);
  named_table(page,
              {{"mean of the four", "四句平均"},
               {"here, median of 5 seeds", "本程序，5 个种子的中位数"},
               {"book", "书"},
               {"21 published runs", "21 次公开运行"}},
              {{{"baseline", "基线"}, {rounded(median(plain), 3), "0.776", "0.677"}},
               {{"attention", "注意力"}, {rounded(median(attended), 3), "0.914", "0.883"}}});
  if (is_books_data(page))
    page.claim(median(plain_known) > 0.99 && median(attended_known) > 0.99,
               {"In the median both decoders write the three sentences of the training set exactly.",
                "按中位数，两种解码器都把训练集中的三句译得完全正确。"},
               fmt::format("mean score of the three: baseline {:.3f}, attention {:.3f}", median(plain_known),
                           median(attended_known)));
  page.say(
      {"So all that differs is one sentence that nobody was taught, and luck decides it: these four cannot tell whether attention helps. "
       "(The book's baseline is behind for another reason: when it translates, its context drifts away from the source; see above.) "
       "Attention pays on longer sentences and new ones: this lab without `--data` translates held-out sentences, of which the baseline "
       "gets one or two in ten and attention about six.",
       "可见差别只在一个谁也没学过的句子上，全凭运气：这四句无法说明注意力是否有用。（书中的基线落后另有原因：翻译时它的上下文会偏离源句，"
       "见上文。）注意力的好处在于较长的和新的句子：不带 `--data` 时，本实验翻译留出句子，基线十句中对一两句，注意力约对六句。"});
}

}  // namespace

void training_step(Page& page) {
  page.heading({"Training: baseline against attention", "训练：基线与注意力"});
  const Trained& baseline = trained(page, Kind::baseline);
  const Trained& attention = trained(page, Kind::attention);
  if (page.data().empty())
    train_on_built_in(page, baseline, attention);
  else
    train_on_book(page, baseline, attention);
  const double ratio = baseline.tokens_per_second / attention.tokens_per_second;
  page.say(both(
      "The book remarks that attention trains much more slowly: 2.6 times on its GPU, where every step of the decoder is a "
      "handful of small kernels. Here the decoder with its attention is one fused operation on the CPU, and the ratio in this "
      "run was {:.2f} (processor time of the fastest epoch, one core).",
      "书中指出，加上注意力后训练慢得多：在其 GPU 上为 2.6 倍，因为解码器的每一步都是若干个小内核。这里解码器连同注意力在 CPU 上"
      "是一个融合运算，本次运行的比值为 {:.2f}（单核，最快一轮的处理器时间）。",
      ratio));
}

void sentences_step(Page& page) {
  page.heading({"Four sentences", "四个句子"});
  std::vector<std::string> source, wanted;
  if (page.data().empty()) {
    page.say(
        {"Held-out sentences, the first that have a question, a negation, a swap of adjective and noun, and a past tense.",
         "取自留出集：第一个疑问句、第一个否定句、第一个形容词与名词换位的句子、第一个过去时的句子。"});
    for (const char* sign : {" ?", " not ", " red ", " did not "}) {
      const auto& held = held_out(page);
      const auto fits = [&](const AlignedPair& p) {
        return p.source.find(sign) != p.source.npos &&
               std::find(source.begin(), source.end(), p.source) == source.end();
      };
      if (const auto at = std::find_if(held.begin(), held.end(), fits); at != held.end())
        source.push_back(at->source), wanted.push_back(at->target);
    }
  } else {
    page.say(
        {"The first two and the last stand in the training set with this one translation. `he's calm .` does not: no recurrent model in "
         "any published run of the book got it right.",
         "第一、二、四句在训练集中，且只有这一种译文。`he's calm .` 不在其中：书中所有公开运行里没有一个循环模型译对。"});
    for (const BookSentence& s : book_sentences()) source.emplace_back(s.source), wanted.emplace_back(s.target);
  }
  const auto plain = translate(trained(page, Kind::baseline), source),
             attended = translate(trained(page, Kind::attention), source);
  std::string out;
  for (size_t i = 0; i < source.size(); ++i)
    out += fmt::format("{}{}\n  wanted            {}\n  baseline   {:.3f}  {}\n  attention  {:.3f}  {}", i ? "\n" : "",
                       source[i], wanted[i], d2l_bleu(plain[i], wanted[i]), plain[i], d2l_bleu(attended[i], wanted[i]),
                       attended[i]);
  page.print(out);
  bleu_example(page);
  if (!page.data().empty()) say_seeds(page);
}

}  // namespace qkv::labs::bahdanau
