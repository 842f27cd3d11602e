// Lab 10.4: exercises by experiment. A decoder fed with its own words, other cells, another score.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "qkv/labs/bahdanau.h"
#include "qkv/labs/both.h"

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
  page.say(both(
      "The models of this exercise and of the next three are trained on {} pairs for {:.0f} epochs, with an encoder that reads "
      "in one direction. Each is compared with a reference, GRU with additive attention, that was trained just so.",
      "本练习与后面三个练习的模型用 {} 对、{:.0f} 轮训练，编码器为单向。每个都与同样训练的参照模型（GRU 加性注意力）比较。",
      pairs, epochs_of(reference)));
}

std::vector<std::string> measures(const Trained& t, const SentencePairs& judge) {
  return {grouped(t.run.model().parameters().count()), rounded(t.losses.back(), 3), rounded(forced_loss(t, judge), 3),
          grouped(static_cast<int64_t>(t.tokens_per_second))};
}

std::vector<Text> head(Page& page) {
  const bool new_sentences = trained(page, Kind::reference).run.validation_pairs() > 0;
  const bool book_unit = trained(page, Kind::reference).run.config().book.loss == LossUnit::book;
  return {{"", ""},
          {"parameters", "参数"},
          book_unit ? Text{"last training loss, book's unit", "最后的训练损失（书中单位）"}
                    : Text{"last training loss", "最后的训练损失"},
          new_sentences ? Text{"nats per token, new sentences", "每词元奈特（新句子）"}
                        : Text{"nats per token, training sentences", "每词元奈特（训练句子）"},
          {"tokens/s, one core", "词元/秒（单核）"}};
}

Figure losses(const std::string& name, const Trained& other, const Trained& reference) {
  return curves({{"reference", reference.epochs, reference.losses, line_style("r-")},
                 {name, other.epochs, other.losses, line_style("b--")}},
                {.label = "epoch"}, {.label = "training loss", .scale = AxisScale::log});
}

}  // namespace

void feed_back_step(Page& page) {
  page.heading({"Exercise 9.7.4: feeding predictions back", "练习 9.7.4：把预测送回输入"});
  say_settings(page);
  const Trained &reference = trained(page, Kind::reference), &fed = trained(page, Kind::fed_back);
  page.say(
      {"With teacher forcing the decoder never sees its own mistakes before it has to translate. Here half of its inputs in training are "
       "what it predicts for that place itself (scheduled sampling; Bengio and others, 2015). At the beginning those are mostly wrong, so "
       "learning is harder and the training loss higher.",
       "在强制教学下，解码器直到翻译时才会遇到自己的错误。这里训练中一半的输入换成它自己对该位置的预测（计划采样；Bengio 等，2015）。开始时"
       "这些预测大多是错的，所以学习更难，训练损失更高。"});
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
  page.claim(
      fed.losses.back() > reference.losses.back(),
      {"The training loss is higher than with teacher forcing.", "训练损失高于强制教学。"},
      fmt::format("{:.3f} half fed back, {:.3f} with teacher forcing", fed.losses.back(), reference.losses.back()));
}

void plain_lstm_step(Page& page) {
  page.heading({"Exercise 9.7.5: LSTM in the baseline", "练习 9.7.5：基线中用 LSTM"});
  const Trained &gru = trained(page, Kind::plain), &lstm = trained(page, Kind::plain_lstm),
                &reference = trained(page, Kind::reference);
  const SentencePairs judge = judged_on(page);
  const double gru_nats = forced_loss(gru, judge), lstm_nats = forced_loss(lstm, judge),
               with = forced_loss(reference, judge);
  page.say(
      {"The same data and settings, no attention: the encoder hands over its last state, and with an LSTM its last cell too.",
       "数据与设置相同，没有注意力：编码器交出最后的隐状态；用 LSTM 时还交出最后的记忆元。"});
  named_table(page, head(page),
              {{{"GRU, no attention", "GRU，无注意力"}, measures(gru, judge)},
               {{"LSTM, no attention", "LSTM，无注意力"}, measures(lstm, judge)},
               {{"GRU with attention", "GRU，有注意力"}, measures(reference, judge)}});
  if (page.data().empty())
    page.claim(
        with < std::min(gru_nats, lstm_nats),
        {"No choice of cell makes up for the missing attention.", "无论选哪种循环单元，都弥补不了注意力的缺失。"},
        fmt::format("new sentences, nats per token: GRU {:.3f}, LSTM {:.3f}, with attention {:.3f}", gru_nats,
                    lstm_nats, with));
  page.say(both(
      "**Answer.** Replacing the cell changes the loss by {:.0f} % here; what limits the baseline is the one vector that all of "
      "a sentence must pass through.",
      "**答：**这里换循环单元只使损失改变 {:.0f} %；限制基线的是整句必须通过的那一个向量。",
      100 * std::abs(lstm_nats / gru_nats - 1)));
}

void lstm_step(Page& page) {
  page.heading({"Exercise 10.4.1 (English edition 11.4.1): LSTM instead of GRU",
                "练习 10.4.1（英文版 11.4.1）：用 LSTM 代替 GRU"});
  const Trained &reference = trained(page, Kind::reference), &lstm = trained(page, Kind::lstm);
  page.say(
      {"An LSTM keeps a second state, the cell, and has four gates' worth of matrices where a GRU has three. The query is still the hidden "
       "state; the cell is handed from encoder to decoder beside it and not attended to.",
       "LSTM 另有一个状态（记忆元），矩阵是四份而不是 GRU 的三份。查询仍是隐状态；记忆元随之从编码器传给解码器，但不参与注意力。"});
  const SentencePairs judge = judged_on(page);
  named_table(page, head(page),
              {{{"GRU", "GRU（门控循环单元）"}, measures(reference, judge)},
               {{"LSTM", "LSTM（长短期记忆）"}, measures(lstm, judge)}});
  page.draw("lstm", losses("LSTM", lstm, reference), {"Training loss with both cells.", "两种循环单元的训练损失。"});
  const double gru_nats = forced_loss(reference, judge), lstm_nats = forced_loss(lstm, judge);
  const double slower = 100 * (reference.tokens_per_second / lstm.tokens_per_second - 1);
  if (page.data().empty())
    page.claim(gru_nats < lstm_nats,
               {"After the same number of epochs the GRU is ahead on new sentences.",
                "训练同样的轮数后，GRU 在新句子上领先。"},
               fmt::format("GRU {:.3f}, LSTM {:.3f} nats per token", gru_nats, lstm_nats));
  page.say(
      {fmt::format(
           "**Answer.** Attention works with an LSTM as it is. With these settings the LSTM learns {} ({:.3f} against "
           "{:.3f} nats per token after {:.0f} epochs), and an epoch takes {:.0f} % more time.",
           lstm_nats > gru_nats ? "more slowly" : "no more slowly", lstm_nats, gru_nats, epochs_of(reference), slower),
       fmt::format(
           "**答：**换成 LSTM，注意力无需改动。在这些设置下 LSTM 学得{}（{:.0f} 轮后每词元 {:.3f} 奈特，GRU 为 {:.3f}），"
           "每轮时间多 {:.0f} %。",
           lstm_nats > gru_nats ? "更慢" : "并不更慢", epochs_of(reference), lstm_nats, gru_nats, slower)});
}

void scoring_step(Page& page) {
  page.heading({"Exercise 10.4.2 (English edition 11.4.2): scaled dot-product scoring",
                "练习 10.4.2（英文版 11.4.2）：缩放点积评分"});
  const Trained &reference = trained(page, Kind::reference), &dot = trained(page, Kind::dot);
  page.say(
      {"$q^\\top k / \\sqrt{d}$ has no parameters and no tanh, so a step has less to compute. Here the additive decoder is fused into one "
       "operation over all steps and others are not, so that the saving does not show in the tokens per second of the table.",
       "$q^\\top k / \\sqrt{d}$ 没有参数也没有 tanh，每一步的计算更少。不过这里加性解码器的全部步骤被融合为一个运算，其他评分则没有，"
       "所以表中每秒的词元数看不出节省。"});
  const SentencePairs judge = judged_on(page);
  named_table(
      page, head(page),
      {{{"additive", "加性"}, measures(reference, judge)}, {{"scaled dot product", "缩放点积"}, measures(dot, judge)}});
  page.draw("dot", losses("scaled dot product", dot, reference),
            {"Training loss with both scores.", "两种评分的训练损失。"});
  const double additive_nats = forced_loss(reference, judge), dot_nats = forced_loss(dot, judge);
  page.fact({"The dot product has $2 h^2 + h$ parameters fewer.", "点积少用 $2 h^2 + h$ 个参数。"},
            fmt::format("{} fewer with h = {}",
                        grouped(reference.run.model().parameters().count() - dot.run.model().parameters().count()),
                        reference.run.config().seq2seq().hidden));
  if (page.data().empty())
    page.claim(additive_nats < dot_nats,
               {"After the same number of epochs additive scoring is ahead on new sentences.",
                "训练同样的轮数后，加性评分在新句子上领先。"},
               fmt::format("additive {:.3f}, scaled dot product {:.3f} nats per token", additive_nats, dot_nats));
  page.say(
      {fmt::format(
           "**Answer.** A step becomes cheaper, but an epoch teaches {}: {:.3f} against {:.3f} nats per token after {:.0f} epochs. "
           "Nothing learned stands between states and scores, so the states themselves must serve as queries and keys; a "
           "Transformer multiplies them by matrices first.",
           dot_nats > additive_nats ? "less" : "no less", dot_nats, additive_nats, epochs_of(reference)),
       fmt::format("**答：**每一步更省，但每一轮学到的{}：{:.0f} 轮后每词元 {:.3f} 奈特，加性为 {:.3f}。"
                   "状态与分数之间没有可学习的东西，状态本身必须充当查询和键；Transformer 则先把它们乘以矩阵。",
                   dot_nats > additive_nats ? "更少" : "并不更少", epochs_of(reference), dot_nats, additive_nats)});
}

}  // namespace qkv::labs::bahdanau
