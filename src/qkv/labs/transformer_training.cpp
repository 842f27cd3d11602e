// Lab 10.7: the book's model trained, and what it writes.
#include <fmt/format.h>

#include <algorithm>

#include "qkv/eval/d2l_bleu.h"
#include "qkv/labs/both.h"
#include "qkv/labs/transformer.h"

namespace qkv::labs::transformer {
namespace {

// Loss after epoch 10, 20, ... of the PyTorch run that the book shows, read off its figure.
const std::vector<double> kBook = {.1811, .1265, .0969, .0757, .0634, .0535, .0525, .0459, .0407, .0414,
                                   .0404, .0366, .0357, .0346, .0365, .0341, .0317, .0307, .0327, .0296};

void train_on_book(Page& page, const Trained& model) {
  page.say(
      {"The book's settings: 601 pairs, 200 epochs of batches of 64, dropout 0.1, Adam with rate 0.005, gradients "
       "clipped at 1, Glorot's initialisation. The dotted curve is the book's own PyTorch run. One thing is not the book's: "
       "what is used below is the mean of the weights after the last 20 epochs.",
       "书中的设置：601 对，批量 64，200 轮，暂退 0.1，Adam 学习率 0.005，梯度裁剪到 1，Glorot 初始化。"
       "点线是书中 PyTorch 的运行结果。只有一点与书不同：下面用的是最后 20 轮之后权重的平均。"});
  Series ours{"here",
              {model.epochs.begin() + 4, model.epochs.end()},
              {model.losses.begin() + 4, model.losses.end()},
              line_style("r-")};
  Series book{"book", {}, kBook, line_style("k:")};
  for (size_t i = 0; i < kBook.size(); ++i) book.x.push_back(10 * static_cast<double>(i + 1));
  page.draw("loss", curves({ours, book}, {.label = "epoch"}, {.label = "loss (book's unit)", .scale = AxisScale::log}),
            {"Training loss in the book's unit: the loss per token divided by 10, with dropout at work.",
             "训练损失，按书中的单位：每词元损失除以 10，含暂退。"});
  const double last = model.losses.back();
  named_table(
      page, {{"", ""}, {"loss", "损失"}, {"tokens/s", "词元/秒"}},
      {{{"here, one core", "本程序，单核"}, {rounded(last, 4), grouped(static_cast<int64_t>(model.tokens_per_second))}},
       {{"book, PyTorch on a GPU", "书，GPU 上的 PyTorch"}, {"0.030", "5,203"}},
       {{"21 published runs", "21 次公开运行"}, {"0.030–0.033", "4,006–5,993"}}});
  if (is_books_data(page))
    page.claim(
        last > 0.0161 && last < 0.036,
        {"The loss ends where the published runs end, give or take a tenth: below 0.036 and above the floor of 0.0161 "
         "that sentences with several translations set.",
         "损失收敛到公开运行的范围附近（相差不过一成）：低于 0.036，高于一句多译所决定的下限 0.0161。"},
        rounded(last, 4));
}

void train_on_built_in(Page& page, const Trained& model) {
  const TranslationConfig& c = model.run.config();
  const SentencePairs& held = judged(page, Judge::model);
  page.say(both(
      "The book's model, 32 wide with two layers and 4 heads, on {} pairs of the built-in corpus: batches of {}, {} epochs, Adam "
      "with a rate that rises to {} in {} steps and falls along a cosine, no dropout. Validation is on {} sentences with a pair "
      "of words that no training sentence combines. Translations are judged by {} held-out sentences: others of that kind, which "
      "neither training nor validation has seen. (`--data fra.txt` does the book's experiment; `qkv train --preset transformer` "
      "is the same on more data with a wider model.)",
      "用书中的模型（宽 32，两层，4 个头）训练内置语料的 {0} 对句子：批量 {1}，{2} 轮，Adam，学习率在 {4} 步内升至 {3}，再按余弦"
      "下降，无暂退。验证集有 {5} 个句子，都含有训练集从未组合过的两个词。译文用 {6} 个留出句子评判：同类的另一些句子，训练和验证"
      "都没有见过。（`--data fra.txt` 做书中的实验；`qkv train --preset transformer` 用更多数据和更宽的模型做同样的事。）",
      grouped(model.run.training_pairs()), c.training.batch_rows, c.training.epochs, c.training.rate, c.training.warmup,
      grouped(model.run.validation_pairs()), held.size()));
  page.draw("loss",
            curves({{"training", model.epochs, model.losses, line_style("r-")},
                    {"validation", model.epochs, model.valid_losses, line_style("r--")}},
                   {.label = "epoch"}, {.label = "loss, nats per token", .scale = AxisScale::log}),
            {"Loss after every epoch.", "每轮之后的损失。"});
  const double exact = quality(page, Judge::model, translate(model, held.source)).exact;
  page.table({{"parameters", "参数"},
              {"training loss", "训练损失"},
              {"validation loss", "验证损失"},
              {"held-out sentences exact", "留出句子完全正确"},
              {"tokens/s, one core", "词元/秒（单核）"}},
             {{grouped(model.run.model().parameters().count()), rounded(model.losses.back(), 3),
               rounded(model.valid_losses.back(), 3), percent(exact),
               grouped(static_cast<int64_t>(model.tokens_per_second))}});
  page.claim(
      model.valid_losses.back() < 0.25 * model.valid_losses.front() && exact > 0.5,
      {"The loss on new sentences falls to less than a quarter of what it was after one epoch, and more than half of them are written "
       "without a mistake.",
       "新句子上的损失降到第一轮之后的四分之一以下，且半数以上的句子一字不错。"},
      fmt::format("loss {:.3f} to {:.3f}; {} of {} exact", model.valid_losses.front(), model.valid_losses.back(),
                  percent(exact), held.size()));
}

}  // namespace

void training_step(Page& page) {
  page.heading({"Training", "训练"});
  const Trained& model = trained(page, Kind::model);
  if (page.data().empty())
    train_on_built_in(page, model);
  else
    train_on_book(page, model);
}

void sentences_step(Page& page) {
  page.heading({"Four sentences", "四个句子"});
  const bool built_in = page.data().empty();
  if (built_in)
    page.say(
        {"Held-out sentences, the first that have a question, a negation, a swap of adjective and noun, and a past tense.",
         "取自留出集：第一个疑问句、第一个否定句、第一个形容词与名词换位的句子、第一个过去时的句子。"});
  else
    page.say(
        {"`he's calm .` is not in the training set, and no recurrent model in any published run of the book got it right. "
         "A Transformer often does: 18 of 21 PyTorch runs.",
         "`he's calm .` 不在训练集中，书中所有公开运行里没有一个循环模型译对。Transformer 却常常译对：21 次 PyTorch 运行中有 18 次。"});
  const SentencePairs& pairs = shown_pairs(page);
  const auto written = translate(trained(page, Kind::model), pairs.source);
  std::string out;
  double mean = 0;
  for (size_t i = 0; i < written.size(); ++i) {
    const double score = d2l_bleu(written[i], pairs.target[i]);
    mean += score / static_cast<double>(written.size());
    out += fmt::format("{}{}\n  wanted  {}\n  {:.3f}   {}", i ? "\n" : "", pairs.source[i], pairs.target[i], score,
                       written[i]);
  }
  page.print(out);
  page.say({"The number is the book's own score (`d2l-bleu`, see lab 10.4): 1 for an exact translation.",
            "数字是书中自定义的分数（`d2l-bleu`，见 10.4 节实验）：完全正确为 1。"});
  if (built_in) return;
  named_table(page, {{"mean of the four", "四句平均"}, {"d2l-bleu", "d2l-bleu"}, {"all four exact", "四句全对"}},
              {{{"here, the mean of 20 epochs' weights", "本程序，20 轮权重的平均"},
                {rounded(mean, 3), mean == 1 ? "1 of 1" : "0 of 1"}},
               {{"book", "书"}, {"1.000", "1 of 1"}},
               {{"21 published PyTorch runs", "21 次公开的 PyTorch 运行"}, {"0.940", "15 of 21"}},
               {{"the same with Bahdanau attention", "同样，Bahdanau 注意力"}, {"0.883", "0 of 21"}}});
  page.say(
      {"One run of one seed proves little: the published runs differ among themselves by more than most changes one would "
       "like to judge by them. Twenty seeds of this program (docs/results/d2l-transformer.md) have a mean of 0.966.",
       "一个种子的一次运行说明不了多少：公开运行之间的差别，比人们想用它来评判的多数改动的效果还大。"
       "本程序 20 个种子的平均是 0.966（docs/results/d2l-transformer.md）。"});
}

}  // namespace qkv::labs::transformer
