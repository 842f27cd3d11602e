// Lab 10.4: shapes and sizes of the encoder and of the decoders without and with attention; the masked loss.
#include <fmt/format.h>

#include <cmath>

#include "qkv/attention/weights.h"
#include "qkv/core/check.h"
#include "qkv/labs/bahdanau.h"
#include "qkv/labs/show.h"
#include "qkv/models/seq2seq.h"
#include "qkv/ops/loss.h"
#include "qkv/tensor/probe.h"

namespace qkv::labs::bahdanau {
namespace {

// The book's demo: ten words, embeddings of 8, two layers of 16.
Seq2Seq demo(ScorerKind attention, const Rng& rng) {
  return Seq2Seq({.embed = 8, .hidden = 16, .layers = 2, .dropout = 0, .attention = attention}, {10, 10}, rng);
}

Ids zero_ids() {
  Ids x = Ids::empty({4, 7});
  std::fill_n(x.mutable_ptr(), x.numel(), 0);
  return x;
}

struct LastWeights : Probe {
  Tensor weights;
  void attention(std::string_view, const Weights& w) override { weights = w.matrix(); }
};

// Parameter counts at the book's sizes by part of the model. A part is a parameter's name up to the second dot.
struct Sizes {
  std::vector<std::pair<std::string, int64_t>> parts;
  int64_t total = 0;
};

Sizes book_sizes(ScorerKind attention) {
  Seq2Seq model({.embed = 32, .hidden = 32, .layers = 2, .attention = attention}, {184, 201}, Rng(0));
  Sizes out;
  const Parameters parameters = flatten(model);
  for (const auto& entry : parameters.entries()) {
    const size_t dot = entry.name.find('.');
    const std::string part =
        entry.name.starts_with("output") ? "output" : entry.name.substr(0, entry.name.find('.', dot + 1));
    if (out.parts.empty() || out.parts.back().first != part) out.parts.emplace_back(part, 0);
    out.parts.back().second += entry.shape.numel();
    out.total += entry.shape.numel();
  }
  return out;
}

Text listed(const Sizes& sizes) {
  std::vector<Text> out;
  for (const auto& [part, count] : sizes.parts) out.emplace_back(fmt::format("{:<20} {:>7}", part, grouped(count)));
  out.push_back(tr("all                  {count:>7}", "count"_a = grouped(sizes.total)));
  return in_lines(out);
}

// x (B, L): positions at or beyond a row's length become 0.
Tensor sequence_mask(Tensor x, const Ids& lengths) {
  x = x.copied();
  for (int64_t b = 0; b < x.size(0); ++b)
    for (int64_t i = lengths.ptr()[b]; i < x.size(1); ++i) x.mutable_ptr()[b * x.size(1) + i] = 0;
  return x;
}

}  // namespace

void baseline_step(Page& page) {
  page.heading(tr("The baseline: a whole sentence in one vector (9.6, 9.7)"));
  page.say(tr(
      "An **encoder** reads the source with a recurrent network, $h_t = f(x_t, h_{t-1})$. A **decoder** starts from "
      "its last state and writes the target word by word. Every step gets the encoder's last state $c = h_T$ again "
      "(the **context variable**), but that is all the decoder ever learns about the source: a sentence of three words "
      "and one of sixteen have to fit into the same vector."));
  page.formula(
      "s_{t'} = g(y_{t'-1}, c, s_{t'-1}), \\quad P(y_{t'} \\mid y_1 \\ldots y_{t'-1}, x) = \\mathrm{softmax}(W s_{t'} "
      "+ b)");
  const Seq2Seq model = demo(ScorerKind::none, Rng(page.seed()).at("baseline"));
  const Ids x = zero_ids();
  const Tensor logits = model.logits(x, {}, x, Run{});
  const auto state = model.start(x, {}, Run{});
  page.print(
      tr("vocabulary 10, embed 8, hidden 16, 2 layers, X zeros (4, 7)\n"
         "context  {context}\n"
         "state    {layers} layers of {state}\n"
         "output   {output}",
         "context"_a = state.context.shape(), "layers"_a = state.layers.size(), "state"_a = state.layers[0].h.shape(),
         "output"_a = logits.shape()));
  page.fact(tr("A batch of 4 sentences of 7 words gives scores for 10 words at every position."),
            tr("scores {shape}", "shape"_a = logits.shape()));
  const Sizes sizes = book_sizes(ScorerKind::none);
  page.say(tr("At the book's sizes (vocabularies 184 and 201, width 32, two layers):"));
  page.print(listed(sizes));
  page.fact(tr("The baseline has {total} parameters.", "total"_a = grouped(sizes.total)));
  page.beside_the_book(tr("parameters of the baseline"), "47,369", grouped(sizes.total));
  page.say(tr(
      "The book's decoder takes $c$ from the state passed to it. In training that is the encoder's last state; in "
      "translation it is the decoder's own, so the context drifts away from the source. Here $c$ stays $h_T$ in both "
      "cases, as in the English edition."));
}

void attention_step(Page& page) {
  page.heading(tr("Attention: a new look at every step"));
  page.say(tr(
      "Bahdanau, Cho and Bengio (2015) let the decoder choose. The query is its state before the step, the keys and "
      "values are the encoder's states at all words, and the context becomes a weighted mean, computed anew at every "
      "step:"));
  page.formula(
      "c_{t'} = \\sum_{t=1}^{T} \\alpha(s_{t'-1}, h_t) h_t, \\quad \\alpha = \\mathrm{softmax}_t(w_v^\\top \\tanh(W_q "
      "s_{t'-1} + W_k h_t))");
  const Seq2Seq model = demo(ScorerKind::additive, Rng(page.seed()).at("attention"));
  const Ids x = zero_ids();
  LastWeights seen;
  const Tensor logits = model.logits(x, {}, x, Run{.probe = &seen});
  const auto state = model.start(x, {}, Run{});
  page.print(
      tr("vocabulary 10, embed 8, hidden 16, 2 layers, X zeros (4, 7)\n"
         "encoder states  {states}\n"
         "state           {layers} layers of {state}\n"
         "weights         {weights}\n"
         "output          {output}",
         "states"_a = state.values.shape(), "layers"_a = state.layers.size(), "state"_a = state.layers[0].h.shape(),
         "weights"_a = seen.weights.viewed({4, 7, 7}).shape(), "output"_a = logits.shape()));
  double off = 0;
  for (int64_t row = 0; row < 28; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < 7; ++i) sum += seen.weights.ptr()[row * 7 + i];
    off = std::max(off, std::abs(sum - 1));
  }
  page.fact(
      tr("The output shape is the same; in addition, each target word has weights over the source words that sum to "
         "1."),
      tr("weights {weights}, sums off by at most {off}", "weights"_a = seen.weights.viewed({4, 7, 7}).shape(),
         "off"_a = tiny(off)));
  const Sizes sizes = book_sizes(ScorerKind::additive);
  page.print(listed(sizes));
  const int64_t more = sizes.total - book_sizes(ScorerKind::none).total;
  page.fact(tr("Attention adds two matrices of 32 × 32 and a vector of 32: {more} parameters, {total} in all.",
               "more"_a = grouped(more), "total"_a = grouped(sizes.total)));
  page.beside_the_book(tr("parameters with attention"), "49,449", grouped(sizes.total));
}

void masked_loss_step(Page& page) {
  page.heading(tr("A loss that ignores padding"));
  page.say(tr("Padding only fills the array; it need not be predicted. Its positions are masked:"));
  const Tensor demo_rows({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor masked = sequence_mask(demo_rows, Ids({2}, {1, 2}));
  page.print("sequence_mask([[1, 2, 3], [4, 5, 6]], lengths [1, 2])\n" + shown(masked));
  page.fact(tr("A row is 0 beyond its length."));
  page.say(tr(
      "The loss is the cross-entropy at every position times 0 or 1, then the mean over **all** positions of the row. "
      "Three identical rows with equal scores for ten words, lengths 4, 2 and 0:"));
  constexpr int32_t kPad = 1;
  const Tensor logits = ones({3, 4, 10});
  const std::vector<int32_t> lengths = {4, 2, 0};
  Ids targets = Ids::empty({3, 4});
  for (int64_t i = 0; i < 12; ++i) targets.mutable_ptr()[i] = i % 4 < lengths[static_cast<size_t>(i / 4)] ? 5 : kPad;
  const Tensor each = cross_entropy(logits, targets, {.ignore_id = kPad, .reduction = Reduction::none});
  std::vector<double> loss(3, 0);
  for (int64_t i = 0; i < 12; ++i) loss[static_cast<size_t>(i / 4)] += each.ptr()[i] / 4.0;
  page.print(fmt::format("{:.4f}  {:.4f}  {:.4f}", loss[0], loss[1], loss[2]));
  page.fact(tr("$\\ln 10$, half of it, and 0."), fmt::format("ln 10 = {:.4f}", std::log(10)));
  page.say(tr(
      "The book reports the sum of these over an epoch, divided by the number of real tokens. Since every row was "
      "divided by its 10 positions, a printed 0.030 means 0.30 nats per token, a perplexity of 1.35. Losses here are "
      "in nats per token unless the book's unit is named."));
}

}  // namespace qkv::labs::bahdanau
