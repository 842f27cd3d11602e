// Lab 10.4: exercises. Other cells, other scores, a loss that sees the padding, a decoder fed with its own words.
#include <fmt/format.h>

#include <algorithm>

#include "qkv/data/text.h"
#include "qkv/labs/bahdanau.h"

namespace qkv::labs::bahdanau {
namespace {

// What an exercise compares: the loss per token on sentences that were not trained on, or without such, on those that
// were.
SentencePairs judged_on(Page& page) {
  const TranslationText& text = trained(page, Kind::reference).run.text();
  return text.valid.size() > 0 ? text.valid : text.train;
}

double epochs_of(const Trained& t) { return static_cast<double>(t.run.config().training.epochs); }

void say_settings(Page& page) {
  const Trained& reference = trained(page, Kind::reference);
  const auto pairs = grouped(reference.run.training_pairs());
  page.say(
      {fmt::format("The exercises train more briefly: {} pairs, {:.0f} epochs, an encoder that reads one way. Each is "
                   "compared with a reference, "
                   "GRU with additive attention, that was trained just so.",
                   pairs, epochs_of(reference)),
       fmt::format("练习中的训练较短：{} 对，{:.0f} 轮，单向编码器。每个都与同样训练的参照模型（GRU 加性注意力）比较。",
                   pairs, epochs_of(reference))});
}

std::vector<std::string> measures(const Trained& t, const SentencePairs& judge) {
  return {grouped(t.run.model().parameters().count()), fmt::format("{:.3f}", t.losses.back()),
          fmt::format("{:.3f}", forced_loss(t, judge)), grouped(static_cast<int64_t>(t.tokens_per_second))};
}

std::vector<Text> head(Page& page) {
  const bool new_sentences = trained(page, Kind::reference).run.validation_pairs() > 0;
  const bool book_unit = trained(page, Kind::reference).run.config().training.loss == "book";
  return {{"", ""},
          {"parameters", "参数"},
          book_unit ? Text{"last training loss, book's unit", "最后的训练损失（书中单位）"}
                    : Text{"last training loss", "最后的训练损失"},
          new_sentences ? Text{"nats per token, new sentences", "每词元奈特（新句子）"}
                        : Text{"nats per token, training sentences", "每词元奈特（训练句子）"},
          {"tokens/s, one core", "词元/秒（单核）"}};
}

double mean_words(const std::vector<std::string>& sentences) {
  double words = 0;
  for (const std::string& s : sentences) words += static_cast<double>(split_blanks(s).size());
  return words / static_cast<double>(std::max<size_t>(sentences.size(), 1));
}

Figure losses(const std::string& name, const Trained& other, const Trained& reference) {
  return curves({{"reference", reference.epochs, reference.losses, line_style("r-")},
                 {name, other.epochs, other.losses, line_style("b--")}},
                {.label = "epoch"}, {.label = "training loss", .scale = AxisScale::log});
}

}  // namespace

void lstm_step(Page& page) {
  page.heading({"Exercise 10.4.1: LSTM instead of GRU", "练习 10.4.1：用 LSTM 代替 GRU"});
  say_settings(page);
  const Trained &reference = trained(page, Kind::reference), &lstm = trained(page, Kind::lstm);
  page.say(
      {"An LSTM keeps a second state, the cell, and has four gates' worth of matrices where a GRU has three. The query "
       "is still the hidden state; "
       "the cell is handed from encoder to decoder beside it and not attended to.",
       "LSTM 另有一个状态（记忆元），矩阵是四份而不是 GRU "
       "的三份。查询仍是隐状态；记忆元随之从编码器传给解码器，但不参与注意力。"});
  const SentencePairs judge = judged_on(page);
  named_table(page, head(page),
              {{{"GRU", "GRU（门控循环单元）"}, measures(reference, judge)},
               {{"LSTM", "LSTM（长短期记忆）"}, measures(lstm, judge)}});
  page.draw("lstm", losses("LSTM", lstm, reference), {"Training loss with both cells.", "两种循环单元的训练损失。"});
  page.claim(
      lstm.losses.back() < 0.5 * lstm.losses.front(),
      {"The LSTM learns the task too, with a third more recurrent weights.", "LSTM 也能学会，循环权重多三分之一。"},
      fmt::format("loss {:.3f} -> {:.3f}", lstm.losses.front(), lstm.losses.back()));
}

void scoring_step(Page& page) {
  page.heading({"Exercise 10.4.2: scaled dot-product scoring", "练习 10.4.2：缩放点积评分"});
  const Trained &reference = trained(page, Kind::reference), &dot = trained(page, Kind::dot);
  page.say(
      {"$q^\\top k / \\sqrt{d}$ has no parameters and no tanh, so a step has less to compute. Here, however, the "
       "additive decoder is fused into one "
       "operation over all steps and others are not, so the table compares two programs as much as two scores. What "
       "the change does to learning is seen "
       "in the loss.",
       "$q^\\top k / \\sqrt{d}$ 没有参数也没有 "
       "tanh，每一步的计算更少。不过这里加性解码器的全部步骤被融合为一个运算，其他评分则没有，"
       "所以表中的速度既是两种评分之比，也是两种实现之比。它对学习的影响则见损失。"});
  const SentencePairs judge = judged_on(page);
  named_table(
      page, head(page),
      {{{"additive", "加性"}, measures(reference, judge)}, {{"scaled dot product", "缩放点积"}, measures(dot, judge)}});
  page.draw("dot", losses("scaled dot product", dot, reference),
            {"Training loss with both scores.", "两种评分的训练损失。"});
  const int64_t width = reference.run.config().model.hidden;
  const int64_t fewer = reference.run.model().parameters().count() - dot.run.model().parameters().count();
  page.claim(fewer == 2 * width * width + width && dot.losses.back() < 0.5 * dot.losses.front(),
             {"It learns the task with $2 h^2 + h$ parameters fewer.", "它用少 $2 h^2 + h$ 个的参数也能学会。"},
             fmt::format("{} fewer, loss {:.3f} -> {:.3f}", grouped(fewer), dot.losses.front(), dot.losses.back()));
}

void unmasked_step(Page& page) {
  page.heading({"Exercise 9.7.2: without masking the loss", "练习 9.7.2：不掩蔽损失"});
  const Trained &reference = trained(page, Kind::reference), &open = trained(page, Kind::unmasked);
  const int64_t steps = open.run.config().training.num_steps;
  double real = 0;
  const SentencePairs& text = open.run.text().train;
  for (const std::string& s : text.target)
    real += static_cast<double>(open.run.tokenizers().target.encode(s).size()) + 1;
  const double share = 1 - real / static_cast<double>(text.size() * steps);
  page.say({fmt::format("Every target is filled up to {} places, and {} of all places are padding. Unmasked, each of "
                        "them is a word to be learnt, and an easy one: "
                        "after `<eos>` or `<pad>` comes `<pad>`.",
                        steps, percent(share)),
            fmt::format("每个目标句都补到 {} 个位置，其中 {} "
                        "是填充。不掩蔽时，每个填充都是要学的词，而且很容易：`<eos>` 或 `<pad>` 之后总是 `<pad>`。",
                        steps, percent(share))});
  const SentencePairs judge = judged_on(page);
  std::vector<Text> columns = head(page);
  columns.push_back({"words per output", "每句输出词数"});
  const auto row = [&](const Trained& t) {
    auto cells = measures(t, judge);
    cells.push_back(fmt::format("{:.2f}", mean_words(translate(t, judge.source))));
    return cells;
  };
  named_table(page, columns, {{{"masked", "掩蔽"}, row(reference)}, {{"unmasked", "不掩蔽"}, row(open)}});
  page.say({fmt::format("The right translations have {:.2f} words. A search never writes `<pad>`, so the outputs do "
                        "not change much either.",
                        mean_words(judge.target)),
            fmt::format("正确译文平均 {:.2f} 个词。搜索从不写出 `<pad>`，所以输出也没有多大变化。",
                        mean_words(judge.target))});
  const bool book_unit = open.run.config().training.loss == "book";
  page.say(book_unit ? Text{"In the book's unit the sum is still divided by the real tokens alone, so the padding only "
                            "adds to it. (The English edition takes the mean "
                            "over all nine places in its sections 11.4 and 11.7, and prints losses below the floor of "
                            "the masked loss.)",
                            "按书中的单位，总和仍只除以真实词元数，所以填充只会使它增大。（英文版在 11.4 与 11.7 "
                            "节对全部九个位置求平均，打印的损失低于掩蔽损失的下限。）"}
                     : Text{"The mean over all places is a smaller number, for a model that is about as good: easy "
                            "places water it down. (The English edition does this in "
                            "its sections 11.4 and 11.7, and prints losses below the floor of the masked loss.) Part "
                            "of the gradient goes into the padding as well, and time with it.",
                            "对所有位置求平均得到的数更小，模型却相差不大：容易的位置把它稀释了。（英文版在 11.4 与 "
                            "11.7 节正是如此，打印的损失低于掩蔽损失的下限。）"
                            "而且一部分梯度和时间花在了填充上。"});
  const double masked_nats = forced_loss(reference, judge), open_nats = forced_loss(open, judge);
  if (book_unit)
    page.claim(
        open_nats < 3 * masked_nats,
        {"On real words the unmasked model is of the same order.", "在真实词元上，不掩蔽的模型与掩蔽的同一量级。"},
        fmt::format("{:.3f} against {:.3f} nats", open_nats, masked_nats));
  else
    page.claim(open.losses.back() < 0.7 * reference.losses.back() && open_nats > 0.7 * masked_nats &&
                   open_nats < 1.4 * masked_nats,
               {"The unmasked training reports a far lower loss; on real words the two models are about the same.",
                "不掩蔽的训练报告的损失低得多；在真实词元上两个模型相差不大。"},
               fmt::format("reported {:.3f} against {:.3f}, real {:.3f} against {:.3f}", open.losses.back(),
                           reference.losses.back(), open_nats, masked_nats));
}

void feed_back_step(Page& page) {
  page.heading({"Exercise 9.7.4: feeding predictions back", "练习 9.7.4：把预测送回输入"});
  const Trained &reference = trained(page, Kind::reference), &fed = trained(page, Kind::fed_back);
  page.say(
      {"With teacher forcing the decoder never sees its own mistakes before it has to translate. Here half of its "
       "inputs in training are what it predicts for "
       "that place itself (scheduled sampling; Bengio and others, 2015). At the beginning those are mostly wrong, so "
       "learning is harder and the training "
       "loss higher, the more so in a training as short as this one.",
       "在强制教学下，解码器直到翻译时才会遇到自己的错误。这里训练中一半的输入换成它自己对该位置的预测"
       "（计划采样；Bengio 等，2015）。"
       "开始时这些预测大多是错的，所以学习更难，训练损失更高，在如此短的训练中尤其如此。"});
  const SentencePairs judge = judged_on(page);
  const double exact = share_exact(translate(fed, judge.source), judge.target),
               plain = share_exact(translate(reference, judge.source), judge.target);
  std::vector<Text> columns = head(page);
  columns.push_back({"written exactly", "完全正确"});
  const auto row = [&](const Trained& t, double share) {
    auto cells = measures(t, judge);
    cells.push_back(percent(share));
    return cells;
  };
  named_table(
      page, columns,
      {{{"teacher forcing", "强制教学"}, row(reference, plain)}, {{"half fed back", "一半送回"}, row(fed, exact)}});
  page.draw("fed-back", losses("half fed back", fed, reference),
            {"Training loss; the inputs of the dashed curve are half the model's own words.",
             "训练损失；虚线的输入有一半是模型自己的词。"});
  page.claim(fed.losses.back() > reference.losses.back(),
             {"The training loss is higher than with teacher forcing.", "训练损失高于强制教学。"},
             fmt::format("{:.3f} against {:.3f}", fed.losses.back(), reference.losses.back()));
}

void questions_step(Page& page) {
  page.heading({"The other questions, in words", "其余问题"});
  page.say(
      {"**9.6.1** Encoder and decoder need not be of one kind: the decoder asks for states, not for where they come "
       "from. An encoder that reads both ways with a "
       "decoder that cannot is the first example, and the one that this lab trains.",
       "**9.6.1** "
       "编码器与解码器不必同类：解码器要的是状态，不问其来源。双向的编码器配单向的解码器就是第一个例子，本实验训练的正"
       "是它。"});
  page.say(
      {"**9.6.2** Whatever maps one sequence to another of different length: speech to text, text to summary, question "
       "to answer, image regions to a caption.",
       "**9.6.2** 凡是把一个序列变为另一个不同长度序列的任务：语音转文字、文本摘要、问答、为图像写说明。"});
  page.say(
      {"**9.7.3** If layers or widths differ, a linear layer makes the decoder's first states from the encoder's last: "
       "$s_0 = \\tanh(W h_T + b)$, one for each "
       "layer. The encoder that reads both ways has states twice as wide, and this is how they come in.",
       "**9.7.3** 层数或宽度不同时，用线性层由编码器的最后状态生成解码器的初始状态：$s_0 = \\tanh(W h_T + "
       "b)$，每层一个。"
       "双向编码器的状态宽一倍，正是这样接入的。"});
  page.say(
      {"**9.7.6** The output layer may share its matrix with the target embedding, may see context and embedding "
       "beside the state (as Bahdanau's does), or may "
       "be spared for large vocabularies by a softmax over a tree or over samples.",
       "**9.7.6** 输出层可与目标嵌入共用矩阵，可在状态之外再看上下文与嵌入（Bahdanau "
       "原文如此），词表很大时也可用树形或采样的 softmax 省去计算。"});
  page.say(
      {"**9.7.1** More data, a wider model, an encoder that reads both ways, a falling learning rate: `qkv train "
       "--preset bahdanau --dump-config` prints all settings.",
       "**9.7.1** 更多数据、更宽的模型、双向编码器、递减的学习率：`qkv train --preset bahdanau --dump-config` "
       "列出全部设置。"});
}

}  // namespace qkv::labs::bahdanau
