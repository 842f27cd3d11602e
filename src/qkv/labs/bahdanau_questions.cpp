// Lab 10.4: a loss that sees the padding, and the questions that are answered in words.
#include <fmt/format.h>

#include <algorithm>

#include "qkv/core/parallel.h"
#include "qkv/data/text.h"
#include "qkv/labs/bahdanau.h"
#include "qkv/labs/both.h"
#include "qkv/labs/work.h"

namespace qkv::labs::bahdanau {
namespace {

constexpr size_t kSeeds = 3;

double mean_words(const std::vector<std::string>& sentences) {
  double words = 0;
  for (const std::string& s : sentences) words += static_cast<double>(split_blanks(s).size());
  return words / static_cast<double>(std::max<size_t>(sentences.size(), 1));
}

// A way to train, and what came of it with each seed.
struct Way {
  bool masked, mixed;  // mixed: batches of sentences of any length
  std::vector<double> reported = std::vector<double>(kSeeds), nats = reported, words = reported;
};

TranslationConfig config_of_way(const Page& page, const Way& way, size_t seed) {
  TranslationConfig c = config_of(page, Kind::reference);
  if (page.data().empty()) c.data.corpus_size = 2000, c.training.epochs = 6, c.training.by_length = !way.mixed;
  c.book.mask_loss = way.masked;
  c.training.seed += static_cast<int64_t>(seed);
  return c;
}

void train_all(const Page& page, std::vector<Way>& ways) {
  Work work(page, training_of({{"with and without masking the loss", "掩蔽与不掩蔽损失"}}), ways.size() * kSeeds);
  parallel_for(static_cast<int64_t>(ways.size() * kSeeds), 1e12, [&](int64_t i) {
    const SerialScope serial;
    WorkObserver follower(work, static_cast<size_t>(i));
    const size_t seed = static_cast<size_t>(i) % kSeeds;
    Way& way = ways[static_cast<size_t>(i) / kSeeds];
    const auto model = train(config_of_way(page, way, seed), &follower);
    const TranslationText& text = model->run.text();
    const SentencePairs& judge = text.valid.size() > 0 ? text.valid : text.train;
    way.reported[seed] = model->losses.back();
    way.nats[seed] = forced_loss(*model, judge);
    way.words[seed] = mean_words(translate(*model, judge.source));
  });
}

// The median over the seeds of unmasked over masked, on real words.
double ratio(const Way& open, const Way& masked) {
  std::vector<double> out(kSeeds);
  for (size_t i = 0; i < kSeeds; ++i) out[i] = open.nats[i] / masked.nats[i];
  return median(out);
}

std::vector<std::string> row(const Way& way) {
  return {rounded(median(way.reported), 3), rounded(median(way.nats), 3),
          fmt::format("{:.3f}–{:.3f}", *std::min_element(way.nats.begin(), way.nats.end()),
                      *std::max_element(way.nats.begin(), way.nats.end())),
          rounded(median(way.words), 2)};
}

void say_padding(Page& page) {
  const TranslationRun& run = trained(page, Kind::reference).run;
  const int64_t steps = run.config().book.num_steps;
  double real = 0;
  const SentencePairs& text = run.text().train;
  for (const std::string& s : text.target) real += static_cast<double>(run.tokenizers().target.encode(s).size()) + 1;
  const std::string share = percent(1 - real / static_cast<double>(text.size() * steps));
  page.say(both(
      "Every target is filled up to {} places, and {} of all places are padding. Unmasked, each of them is a word to be learnt, "
      "and an easy one: after `<eos>` or `<pad>` comes `<pad>`.",
      "每个目标句都补到 {} 个位置，其中 {} 是填充。不掩蔽时，每个填充都是要学的词，而且很容易：`<eos>` 或 `<pad>` 之后总是 "
      "`<pad>`。",
      steps, share));
}

void judge_built_in(Page& page, const Way& masked, const Way& open, const Way& masked_mixed, const Way& open_mixed) {
  page.say(
      {"The mean over all places is a smaller number, because easy places water it down. (The English edition does this in "
       "its sections 11.4 and 11.7, and prints losses below the floor of the masked loss.)",
       "对所有位置求平均得到的数更小，因为容易的位置把它稀释了。（英文版在 11.4 与 11.7 节正是如此，打印的损失低于掩蔽损失的下限。）"});
  page.claim(median(open_mixed.reported) < 0.7 * median(masked_mixed.reported) &&
                 median(open.reported) < 0.7 * median(masked.reported),
             {"The unmasked training reports a far lower loss.", "不掩蔽的训练报告的损失低得多。"},
             fmt::format("{:.3f} unmasked, {:.3f} masked", median(open.reported), median(masked.reported)));
  page.say(both(
      "On real words the two are close: the loss of the unmasked model is {:.2f} times that of the masked one in batches of like "
      "length and {:.2f} times in mixed ones, see also how far seeds differ. Padding teaches nothing about words. What it "
      "changes is how much a word counts: the masked loss is a mean over the real words of a batch, so that in batches of like "
      "length a word of a short sentence counts for more than a word of a long one; the unmasked loss divides every batch by the "
      "same number of places, and every word counts alike, as it does in the column of nats. That is one reason why the unmasked "
      "model may come out ahead. It is weaker in batches of mixed lengths, which all have about as many words; what is left there is "
      "small, and these few seeds do not say where it comes from.",
      "在真实词元上两者接近：不掩蔽的模型的损失，在长度相近的批量中是掩蔽的 {:.2f} 倍，在长短混合的批量中是 {:.2f} 倍（种子之间的"
      "差别见表）。填充不会教给模型任何关于词的东西，它改变的是每个词的分量：掩蔽的损失是对一个批量中真实词元求平均，所以在长度相"
      "近的批量中，短句中的一个词比长句中的一个词分量更重；不掩蔽的损失把每个批量除以同样的位置数，每个词分量相同，正如表中奈特一"
      "列的算法。这是不掩蔽的模型可能领先的一个原因。长短混合的批量词数相近，这个原因就弱得多；剩下的差别很小，这几个种子还说明不了它的来源。",
      ratio(open, masked), ratio(open_mixed, masked_mixed)));
  const double fair = ratio(open_mixed, masked_mixed);
  page.claim(fair > 0.85 && fair < 1.15,
             {"With batches of mixed lengths the two differ by less than 15 % on real words.",
              "用长短混合的批量时，两者在真实词元上相差不到 15 %。"},
             fmt::format("unmasked over masked: {:.2f}, median of {} seeds", fair, kSeeds));
}

}  // namespace

void first_questions_step(Page& page) {
  page.heading({"Exercises 9.6.1, 9.6.2 and 9.7.1, in words", "练习 9.6.1、9.6.2、9.7.1（文字回答）"});
  page.say(
      {"**9.6.1** Encoder and decoder need not be of one kind: the decoder asks for states, not for where they come from. A bidirectional "
       "encoder with a decoder that cannot be is the first example, and the one that this lab trains.",
       "**9.6.1** 编码器与解码器不必同类：解码器要的是状态，不问其来源。双向的编码器配单向的解码器就是第一个例子，本实验训练的正是它。"});
  page.say(
      {"**9.6.2** Whatever maps one sequence to another of different length: speech to text, text to summary, question "
       "to answer, image regions to a caption.",
       "**9.6.2** 凡是把一个序列变为另一个不同长度序列的任务：语音转文字、文本摘要、问答、为图像写说明。"});
  page.say(
      {"**9.7.1** More data, a wider model, a bidirectional encoder, a falling learning rate: `qkv train "
       "--preset bahdanau --dump-config` prints all settings.",
       "**9.7.1** 更多数据、更宽的模型、双向编码器、递减的学习率：`qkv train --preset bahdanau --dump-config` 列出全部设置。"});
}

void unmasked_step(Page& page) {
  page.heading({"Exercise 9.7.2: without masking the loss", "练习 9.7.2：不掩蔽损失"});
  say_padding(page);
  const bool built_in = page.data().empty();
  std::vector<Way> ways = {{true, false}, {false, false}};
  if (built_in) ways.push_back({true, true}), ways.push_back({false, true});
  train_all(page, ways);
  const TranslationConfig c = config_of_way(page, ways[0], 0);
  page.say(
      {fmt::format(
           "Medians of {} trainings of {} epochs each{}:", kSeeds, c.training.epochs,
           built_in
               ? ", with batches of sentences of like length as everywhere in this lab, and with batches of mixed lengths"
               : ""),
       fmt::format("每行为 {} 次训练（各 {} 轮）的中位数{}：", kSeeds, c.training.epochs,
                   built_in ? "；批量或由长度相近的句子组成（本实验其余各处都是如此），或长短混合" : "")});
  std::vector<std::pair<Text, std::vector<std::string>>> rows = {{{"masked", "掩蔽"}, row(ways[0])},
                                                                 {{"unmasked", "不掩蔽"}, row(ways[1])}};
  if (built_in)
    rows.push_back({{"masked, mixed lengths", "掩蔽，长短混合"}, row(ways[2])}),
        rows.push_back({{"unmasked, mixed lengths", "不掩蔽，长短混合"}, row(ways[3])});
  named_table(
      page,
      {{"", ""},
       built_in ? Text{"loss reported", "报告的损失"} : Text{"loss reported, book's unit", "报告的损失（书中单位）"},
       built_in ? Text{"nats per real word, new sentences", "每个真实词元的奈特（新句子）"}
                : Text{"nats per real word, training sentences", "每个真实词元的奈特（训练句子）"},
       {"least–most", "最小–最大"},
       {"words per output", "每句输出词数"}},
      rows);
  if (built_in)
    judge_built_in(page, ways[0], ways[1], ways[2], ways[3]);
  else
    page.say(
        {"In the book's unit the sum is still divided by the real tokens alone, so the padding only adds to it. (The English edition "
         "takes the mean over all nine places in its sections 11.4 and 11.7, and prints losses below the floor of the masked loss.)",
         "按书中的单位，总和仍只除以真实词元数，所以填充只会使它增大。（英文版在 11.4 与 11.7 "
         "节对全部九个位置求平均，打印的损失低于掩蔽损失的下限。）"});
  page.say(
      {"**Answer.** Without the mask the reported loss no longer means what it says, and time goes into places that nobody reads; the "
       "translations stay about as good, since a search never writes `<pad>`.",
       "**答：**不掩蔽时，报告的损失不再名副其实，时间也花在没有人读的位置上；译文大致一样好，因为搜索从不写出 `<pad>`。"});
}

void states_question_step(Page& page) {
  page.heading({"Exercise 9.7.3: encoder and decoder of different sizes", "练习 9.7.3：编码器与解码器大小不同"});
  page.say(
      {"**9.7.3** If layers or widths differ, a linear layer makes the decoder's first states from the encoder's last: $s_0 = \\tanh(W h_T "
       "+ b)$, one for each layer. A bidirectional encoder has states twice as wide, and this is how they come in.",
       "**9.7.3** 层数或宽度不同时，用线性层由编码器的最后状态生成解码器的初始状态：$s_0 = \\tanh(W h_T + b)$，每层一个。双向编码器的状态宽"
       "一倍，正是这样接入的。"});
}

void output_question_step(Page& page) {
  page.heading({"Exercise 9.7.6: other output layers", "练习 9.7.6：其他输出层"});
  page.say(
      {"**9.7.6** The output layer may share its matrix with the target embedding, may see context and embedding beside the state (as "
       "Bahdanau's does), or may be spared for large vocabularies by a softmax over a tree or over samples.",
       "**9.7.6** 输出层可与目标嵌入共用矩阵，可在状态之外再看上下文与嵌入（Bahdanau "
       "原文如此），词表很大时也可用树形或采样的 softmax 省去计算。"});
}

}  // namespace qkv::labs::bahdanau
