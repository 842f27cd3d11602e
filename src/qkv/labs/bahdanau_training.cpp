// Lab 10.4: baseline and attention on the same data, and what they write.
#include <fmt/format.h>

#include <algorithm>

#include "qkv/eval/d2l_bleu.h"
#include "qkv/labs/bahdanau.h"

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
      {"The book's settings: 601 pairs, width 32, two layers, dropout 0.1, batches of 64, Adam with rate 0.005, "
       "gradients clipped at "
       "1; 300 epochs for the baseline, 250 with attention. The dotted curves are the book's own PyTorch run.",
       "书中的设置：601 对，宽 32，两层，暂退 0.1，批量 64，Adam 学习率 0.005，梯度裁剪到 1；基线 300 轮，注意力 "
       "250 轮。"
       "点线是书中 PyTorch 的运行结果。"});
  page.draw(
      "losses",
      curves({curve("baseline", baseline.epochs, baseline.losses, "b-"),
              curve("attention", attention.epochs, attention.losses, "r-"),
              book_curve("baseline, book", kBookBaseline, "b:"), book_curve("attention, book", kBookAttention, "r:")},
             {.label = "epoch"}, {.label = "loss (book's unit)", .scale = AxisScale::log}),
      {"Training loss in the book's unit: the loss per token divided by 10.",
       "训练损失，按书中的单位：每词元损失除以 10。"});
  named_table(page,
              {{"", ""},
               {"loss, here", "损失（本程序）"},
               {"loss, book", "损失（书）"},
               {"21 published runs", "21 次公开运行"},
               {"tokens/s, here, one core", "词元/秒（本程序，单核）"},
               {"tokens/s, book's GPU", "词元/秒（书，GPU）"}},
              {{{"baseline", "基线"},
                {fmt::format("{:.4f}", baseline.losses.back()), "0.019", "0.019–0.021",
                 grouped(static_cast<int64_t>(baseline.tokens_per_second)), "12,745"}},
               {{"attention", "注意力"},
                {fmt::format("{:.4f}", attention.losses.back()), "0.021", "0.019–0.022",
                 grouped(static_cast<int64_t>(attention.tokens_per_second)), "4,949"}}});
  const double a = attention.losses.back(), b = baseline.losses.back();
  if (is_books_data(page))
    page.claim(a > 0.018 && a < 0.023 && b > 0.0161 && b < 0.023,
               {"Both end where the book's runs end: attention between 0.018 and 0.023, the baseline between the floor "
                "0.0161 and 0.023.",
                "两者都收敛到书中的范围：注意力在 0.018 与 0.023 之间，基线在下限 0.0161 与 0.023 之间。"},
               fmt::format("{:.4f} / {:.4f}", a, b));
}

void train_on_built_in(Page& page, const Trained& baseline, const Trained& attention) {
  const TranslationConfig& c = attention.run.config();
  page.say(
      {fmt::format("{} pairs, width {}, one layer, an encoder that reads both ways, batches of {}, Adam with a rate "
                   "that falls from {} along a cosine, {} epochs: the "
                   "same for both. Validation is on sentences with a pair of words that no training sentence combines. "
                   "(`qkv train --preset bahdanau` is the same on more data with a wider model.)",
                   grouped(attention.run.training_pairs()), c.model.hidden, c.training.batch_rows, c.training.rate,
                   c.training.epochs),
       fmt::format("{} 对，宽 {}，一层，双向编码器，批量 {}，Adam，学习率从 {} 起按余弦下降，{} "
                   "轮：两者相同。验证集的句子含有训练集从未组合过的两个词。"
                   "（`qkv train --preset bahdanau` 用更多数据和更宽的模型做同样的事。）",
                   grouped(attention.run.training_pairs()), c.model.hidden, c.training.batch_rows, c.training.rate,
                   c.training.epochs)});
  page.draw("losses",
            curves({curve("baseline, training", baseline.epochs, baseline.losses, "b-"),
                    curve("baseline, validation", baseline.epochs, baseline.valid_losses, "b--"),
                    curve("attention, training", attention.epochs, attention.losses, "r-"),
                    curve("attention, validation", attention.epochs, attention.valid_losses, "r--")},
                   {.label = "epoch"}, {.label = "loss, nats per token", .low = 0.02, .scale = AxisScale::log}),
            {"The baseline learns its training sentences, yet falls behind on new ones: it has to pack a sentence into "
             "one vector.",
             "基线能学会训练句子，但在新句子上落后：它必须把整句压进一个向量。"});
  const std::vector<AlignedPair>& held = held_out(page);
  const SentencePairs test = sentences_of(held);
  const double exact_a = share_exact(translate(attention, test.source), test.target),
               exact_b = share_exact(translate(baseline, test.source), test.target);
  const auto row = [](const Trained& t, double exact) {
    return std::vector<std::string>{
        grouped(t.run.model().parameters().count()), fmt::format("{:.3f}", t.losses.back()),
        fmt::format("{:.3f}", *std::min_element(t.valid_losses.begin(), t.valid_losses.end())), percent(exact),
        grouped(static_cast<int64_t>(t.tokens_per_second))};
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
             {"On new sentences attention has the lower loss.", "在新句子上，注意力的损失更低。"},
             fmt::format("{:.3f} against {:.3f}", attention.valid_losses.back(), baseline.valid_losses.back()));
  page.claim(exact_a > exact_b + 0.1,
             {"It writes far more of the held-out sentences without a mistake.", "留出句子中一字不错的远多于基线。"},
             fmt::format("{} against {} of {}", percent(exact_a), percent(exact_b), test.size()));
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
  page.say({fmt::format("The book remarks that attention trains much more slowly: 2.6 times on its GPU, where every "
                        "step of the decoder is a "
                        "handful of small kernels. Here the decoder with its attention is one fused operation on the "
                        "CPU, and the ratio in this "
                        "run was {:.2f} (processor time of the fastest epoch, one core).",
                        ratio),
            fmt::format("书中指出，加上注意力后训练慢得多：在其 GPU 上为 2.6 "
                        "倍，因为解码器的每一步都是若干个小内核。这里解码器连同注意力在 CPU "
                        "上是一个融合运算，本次运行的比值为 {:.2f}（单核，最快一轮的处理器时间）。",
                        ratio)});
}

void sentences_step(Page& page) {
  page.heading({"Four sentences", "四个句子"});
  std::vector<std::string> source, wanted;
  if (page.data().empty()) {
    page.say(
        {"Held-out sentences, the first that have a question, a negation, a swap of adjective and noun, and a past "
         "tense.",
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
        {"The first two and the last stand in the training set with this one translation. `he's calm .` does not: no "
         "recurrent model in "
         "any published run of the book got it right.",
         "第一、二、四句在训练集中，且只有这一种译文。`he's calm .` "
         "不在其中：书中所有公开运行里没有一个循环模型译对。"});
    for (const BookSentence& s : book_sentences()) source.emplace_back(s.source), wanted.emplace_back(s.target);
  }
  const auto plain = translate(trained(page, Kind::baseline), source),
             attended = translate(trained(page, Kind::attention), source);
  std::string out;
  double mean_plain = 0, mean_attended = 0;
  for (size_t i = 0; i < source.size(); ++i) {
    const double p = d2l_bleu(plain[i], wanted[i]), a = d2l_bleu(attended[i], wanted[i]);
    mean_plain += p / static_cast<double>(source.size()), mean_attended += a / static_cast<double>(source.size());
    out += fmt::format("{}{}\n  wanted            {}\n  baseline   {:.3f}  {}\n  attention  {:.3f}  {}", i ? "\n" : "",
                       source[i], wanted[i], p, plain[i], a, attended[i]);
  }
  page.print(out);
  page.say(
      {"The numbers are the book's own score, which is not the usual BLEU: precisions of one and two words with the "
       "exponents 1/2 and 1/4, times a "
       "penalty for short output. An exact translation has 1.",
       "数字是书中自定义的分数，并非通常的 BLEU：一元与二元精确率的指数为 1/2 与 "
       "1/4，再乘以对过短输出的惩罚。完全正确为 1。"});
  if (page.data().empty()) return;
  named_table(
      page,
      {{"mean of the four", "四句平均"}, {"here", "本程序"}, {"book", "书"}, {"21 published runs", "21 次公开运行"}},
      {{{"baseline", "基线"}, {fmt::format("{:.3f}", mean_plain), "0.776", "0.677"}},
       {{"attention", "注意力"}, {fmt::format("{:.3f}", mean_attended), "0.914", "0.883"}}});
  if (is_books_data(page))
    page.claim(mean_attended >= 0.5,
               {"The decoder with attention gets at least half of what there is to get.",
                "带注意力的解码器至少得到一半的分数。"},
               fmt::format("mean d2l-bleu {:.3f}", mean_attended));
}

}  // namespace qkv::labs::bahdanau
