// Lab 10.4: exercises answered by experiment: a decoder fed with its own words, other cells, another score.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "qkv/labs/bahdanau.h"

namespace qkv::labs::bahdanau {
namespace {

double epochs_of(const Trained& t) { return static_cast<double>(t.run.config().training.epochs); }

void say_settings(Page& page) {
  const Trained& reference = trained(page, Kind::reference);
  const auto pairs = grouped(reference.run.training_pairs());
  page.say(tr(
      "The models of this exercise and of the next three are trained on {pairs} pairs for {epochs:.0f} epochs, with a "
      "unidirectional encoder. Each is compared with a reference, a GRU with additive attention, trained in the same "
      "way.",
      "pairs"_a = pairs, "epochs"_a = epochs_of(reference)));
}

std::vector<std::string> measures(const Trained& t, const SentencePairs& judge) {
  return {grouped(t.run.model().parameters().count()), rounded(t.losses.back(), 3), rounded(forced_loss(t, judge), 3),
          grouped(static_cast<int64_t>(t.tokens_per_second))};
}

std::vector<Text> head(Page& page) {
  const bool new_sentences = trained(page, Kind::reference).run.validation_pairs() > 0;
  const bool book_unit = trained(page, Kind::reference).run.config().book.loss == LossUnit::book;
  return {verbatim(""), tr("parameters"), book_unit ? tr("last training loss, book's unit") : tr("last training loss"),
          new_sentences ? tr("nats per token, new sentences") : tr("nats per token, training sentences"),
          tr("tokens/s, one core")};
}

Figure losses(const Label& name, const Trained& other, const Trained& reference) {
  return curves({{tr("reference"), reference.epochs, reference.losses, line_style("r-")},
                 {name, other.epochs, other.losses, line_style("b--")}},
                {.label = tr("epoch")}, {.label = tr("training loss"), .scale = AxisScale::log});
}

}  // namespace

SentencePairs judged_on(Page& page) {
  const TranslationText& text = trained(page, Kind::reference).run.text();
  return text.valid.size() > 0 ? text.valid : text.train;
}

void feed_back_step(Page& page) {
  page.exercise("9.7.4");
  say_settings(page);
  const Trained &reference = trained(page, Kind::reference), &fed = trained(page, Kind::fed_back);
  page.say(
      tr("With teacher forcing the decoder never sees its own mistakes until it has to translate. Here half of its "
         "training inputs are its own predictions for that position (scheduled sampling; Bengio and others, 2015). At "
         "first these are mostly wrong, so learning is harder and the training loss is higher."));
  const SentencePairs judge = judged_on(page);
  const double exact = share_exact(translate(fed, judge.source), judge.target),
               plain = share_exact(translate(reference, judge.source), judge.target);
  std::vector<Text> columns = head(page);
  columns.push_back(tr("exact translations"));
  const auto row = [&](const Trained& t, double share) {
    auto cells = measures(t, judge);
    cells.push_back(percent(share));
    return cells;
  };
  named_table(page, columns, {{tr("teacher forcing"), row(reference, plain)}, {tr("half fed back"), row(fed, exact)}});
  page.draw("fed-back", losses(tr("half fed back"), fed, reference),
            tr("Training loss; for the dashed curve, half of the inputs are the model's own words."));
  page.claim(fed.losses.back() > reference.losses.back(), tr("The training loss is higher than with teacher forcing."),
             tr("{fed:.3f} half fed back, {forced:.3f} with teacher forcing", "fed"_a = fed.losses.back(),
                "forced"_a = reference.losses.back()));
}

void plain_lstm_step(Page& page) {
  page.exercise("9.7.5");
  const Trained &gru = trained(page, Kind::plain), &lstm = trained(page, Kind::plain_lstm),
                &reference = trained(page, Kind::reference);
  const SentencePairs judge = judged_on(page);
  const double gru_nats = forced_loss(gru, judge), lstm_nats = forced_loss(lstm, judge),
               with = forced_loss(reference, judge);
  page.say(tr(
      "The same data and settings without attention: the encoder hands over its last state and, with an LSTM, its last "
      "cell too."));
  named_table(page, head(page),
              {{tr("GRU, no attention"), measures(gru, judge)},
               {tr("LSTM, no attention"), measures(lstm, judge)},
               {tr("GRU with attention"), measures(reference, judge)}});
  if (page.data().empty())
    page.claim(
        with < std::min(gru_nats, lstm_nats), tr("No choice of cell makes up for the missing attention."),
        tr("new sentences, nats per token: GRU {gru_nats:.3f}, LSTM {lstm_nats:.3f}, with attention {attention:.3f}",
           "gru_nats"_a = gru_nats, "lstm_nats"_a = lstm_nats, "attention"_a = with));
  page.say(tr(
      "**Answer.** Replacing the cell changes the loss by {change:.0f} % here; the baseline is limited by the single "
      "vector that the whole sentence must pass through.",
      "change"_a = 100 * std::abs(lstm_nats / gru_nats - 1)));
}

void lstm_step(Page& page) {
  page.exercise("10.4.1");
  const Trained &reference = trained(page, Kind::reference), &lstm = trained(page, Kind::lstm);
  page.say(tr(
      "An LSTM keeps a second state, the cell, and has four sets of matrices where a GRU has three. The query is still "
      "the hidden state; the cell is passed from encoder to decoder along with it, but attention does not use it."));
  const SentencePairs judge = judged_on(page);
  named_table(page, head(page), {{tr("GRU"), measures(reference, judge)}, {tr("LSTM"), measures(lstm, judge)}});
  page.draw("lstm", losses("LSTM", lstm, reference), tr("Training loss with both cells."));
  const double gru_nats = forced_loss(reference, judge), lstm_nats = forced_loss(lstm, judge);
  const double slower = 100 * (reference.tokens_per_second / lstm.tokens_per_second - 1);
  if (page.data().empty())
    page.claim(gru_nats < lstm_nats, tr("After the same number of epochs the GRU is ahead on new sentences."),
               tr("GRU {gru_nats:.3f}, LSTM {lstm_nats:.3f} nats per token", "gru_nats"_a = gru_nats,
                  "lstm_nats"_a = lstm_nats));
  const double epochs = epochs_of(reference);
  if (lstm_nats > gru_nats)
    page.say(
        tr("**Answer.** Attention works with an LSTM unchanged. With these settings the LSTM learns more slowly "
           "({lstm:.3f} against {gru:.3f} nats per token after {epochs:.0f} epochs), and an epoch takes {slower:.0f} % "
           "more time.",
           "lstm"_a = lstm_nats, "gru"_a = gru_nats, "epochs"_a = epochs, "slower"_a = slower));
  else
    page.say(
        tr("**Answer.** Attention works with an LSTM unchanged. With these settings the LSTM learns no more slowly "
           "({lstm:.3f} against {gru:.3f} nats per token after {epochs:.0f} epochs), and an epoch takes {slower:.0f} % "
           "more time.",
           "lstm"_a = lstm_nats, "gru"_a = gru_nats, "epochs"_a = epochs, "slower"_a = slower));
}

void scoring_step(Page& page) {
  page.exercise("10.4.2");
  const Trained &reference = trained(page, Kind::reference), &dot = trained(page, Kind::dot);
  page.say(tr(
      "$q^\\top k / \\sqrt{d}$ has no parameters and no tanh, so each step computes less. Here, however, only the "
      "additive decoder is fused into one operation over all steps, so the tokens per second in the table do not show "
      "the saving."));
  const SentencePairs judge = judged_on(page);
  named_table(page, head(page),
              {{tr("additive"), measures(reference, judge)}, {tr("scaled dot product"), measures(dot, judge)}});
  page.draw("dot", losses(tr("scaled dot product"), dot, reference), tr("Training loss with both scores."));
  const double additive_nats = forced_loss(reference, judge), dot_nats = forced_loss(dot, judge);
  page.fact(tr("The dot product has $2 h^2 + h$ fewer parameters."),
            tr("{fewer} fewer with h = {hidden}",
               "fewer"_a = grouped(reference.run.model().parameters().count() - dot.run.model().parameters().count()),
               "hidden"_a = reference.run.config().seq2seq().hidden));
  if (page.data().empty())
    page.claim(additive_nats < dot_nats,
               tr("After the same number of epochs additive scoring is ahead on new sentences."),
               tr("additive {additive_nats:.3f}, scaled dot product {dot_nats:.3f} nats per token",
                  "additive_nats"_a = additive_nats, "dot_nats"_a = dot_nats));
  const double epochs = epochs_of(reference);
  if (dot_nats > additive_nats)
    page.say(
        tr("**Answer.** Each step is cheaper, but the model learns less per epoch: {dot:.3f} against {additive:.3f} "
           "nats per token after {epochs:.0f} epochs. There are no learned parameters between states and scores, so "
           "the states themselves must serve as queries and keys; a Transformer multiplies them by matrices first.",
           "dot"_a = dot_nats, "additive"_a = additive_nats, "epochs"_a = epochs));
  else
    page.say(
        tr("**Answer.** Each step is cheaper, and the model learns no less per epoch: {dot:.3f} against {additive:.3f} "
           "nats per token after {epochs:.0f} epochs. There are no learned parameters between states and scores, so "
           "the states themselves must serve as queries and keys; a Transformer multiplies them by matrices first.",
           "dot"_a = dot_nats, "additive"_a = additive_nats, "epochs"_a = epochs));
}

}  // namespace qkv::labs::bahdanau
