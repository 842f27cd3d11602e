// Lab 10.6: self-attention and positional encoding. Tokens that attend to each other, and why they need positions.
#include "qkv/labs/self_attention.h"

#include <fmt/format.h>

#include "qkv/attention/multi_head.h"
#include "qkv/attention/positions.h"
#include "qkv/data/shuffle.h"
#include "qkv/labs/sections.h"
#include "qkv/labs/show.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/embedding.h"
#include "qkv/ops/reduce.h"

namespace qkv::labs {
namespace self_attention {
namespace {

// Rows of (1, n, D) in another order.
Tensor reordered(const Tensor& x, const std::vector<int64_t>& order) {
  std::vector<int32_t> ids(order.begin(), order.end());
  return embedding(x.viewed({x.size(1), x.size(2)}), Ids({x.size(1)}, ids)).viewed(x.shape());
}

Tensor attend_to_self(const MultiHead& heads, const Tensor& x, const Mask& mask = Mask::none()) {
  return heads(x, x, x, mask, {});
}

}  // namespace

void definition(Page& page) {
  page.heading(tr("Tokens that attend to each other"));
  page.say(tr(
      "In **self-attention** the queries, keys and values are the same tokens: every token queries all tokens, itself "
      "included, and gets its own answer."));
  page.formula("y_i = f(x_i, (x_1, x_1), \\ldots, (x_n, x_n))");
  page.say(tr(
      "The book's demo: width 100, 5 heads, dropout 0.5, a batch of 2 sequences of 4 tokens, with valid lengths 3 and "
      "2."));
  const MultiHead heads({.width = 100, .heads = 5, .dropout = 0.5f}, Rng(page.seed()).at("demo"));
  const Tensor x = ones({2, 4, 100}), y = attend_to_self(heads, x, Mask::valid_lens(Ids({2}, {3, 2})));
  page.print(fmt::format("{} -> {}", x.shape().str(), y.shape().str()));
  page.fact(tr("The output has the shape of the input, so such layers can be stacked."));
}

void order_is_lost(Page& page) {
  page.heading(tr("A set, not a sequence"));
  page.say(tr(
      "A weighted sum does not depend on the order of its terms. If the tokens change places, the outputs change "
      "places with them and nothing else changes: for a permutation $P$, $f(P x) = P f(x)$. Take \"dog bites man\" and "
      "\"man bites dog\", and average the outputs of self-attention for each:"));
  const Rng rng = Rng(page.seed()).at("order");
  const int64_t width = 32;
  const MultiHead heads({.width = width, .heads = 4}, rng.at("heads"));
  const Tensor words = normal({3, width}, rng.at("words"));
  const Tensor one = embedding(words, Ids({1, 3}, {0, 1, 2})), other = embedding(words, Ids({1, 3}, {2, 1, 0}));
  const Tensor places = sinusoidal_positions(3, width);
  const auto meaning = [&](const Tensor& x) { return mean(attend_to_self(heads, x), 1); };
  const double plain = largest_difference(meaning(one), meaning(other));
  const double placed = largest_difference(meaning(one + places), meaning(other + places));
  named_table(page, {verbatim(""), tr("largest difference")},
              {{tr("words alone"), {tiny(plain)}}, {tr("words and positions"), {tiny(placed)}}});
  page.claim(
      plain < 1e-6 && placed > 1e-2,
      tr("Without positions the two sentences are the same; with a vector added for each position they are not."),
      tr("the two differ by {plain} without positions, by {placed:.2f} with them", "plain"_a = tiny(plain),
         "placed"_a = placed));

  page.say(tr("The same for ten tokens in random order:"));
  const int64_t n = 10;
  const Tensor x = normal({1, n, width}, rng.at("x")), p = sinusoidal_positions(n, width);
  const std::vector<int64_t> order = shuffled(n, rng.at("shuffle"));
  const auto broken = [&](const auto& f) { return largest_difference(f(reordered(x, order)), reordered(f(x), order)); };
  const double none = broken([&](const Tensor& t) { return attend_to_self(heads, t); });
  const double with = broken([&](const Tensor& t) { return attend_to_self(heads, t + p); });
  const double causal = broken([&](const Tensor& t) { return attend_to_self(heads, t, Mask::causal()); });
  named_table(page, {verbatim(""), tr("$f(P x)$ and $P f(x)$ differ by")},
              {{tr("self-attention"), {tiny(none)}},
               {tr("with positions added"), {tiny(with)}},
               {tr("without positions, causal mask"), {tiny(causal)}}});
  page.claim(
      none < 1e-6 && with > 1e-2 && causal > 1e-2,
      tr("Self-attention alone commutes with every permutation (up to rounding: sums are taken in another order too). "
         "Positions break this, and so does a causal mask."),
      tr("differ by {alone} alone, {positions:.2f} with positions, {causal:.2f} with a causal mask",
         "alone"_a = tiny(none), "positions"_a = with, "causal"_a = causal));
}

}  // namespace self_attention

Lab self_attention_lab() {
  using namespace self_attention;
  return {"10.6",
          "self-attention",
          tr("Self-attention and positional encoding"),
          {definition, operations, times, five_tokens, layers_needed, gradients_by_distance, order_is_lost, encoding,
           binary, relative_positions, looking_back, deep_stacks, deep_gradients, learned_positions, where_they_look,
           relative_biases},
          false,
          4};
}

}  // namespace qkv::labs
