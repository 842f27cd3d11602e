// Lab 10.5: multi-head attention. The definition, the shapes, heads as one product, and the number of parameters.
#include "qkv/labs/multi_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "qkv/attention/attend.h"
#include "qkv/labs/sections.h"
#include "qkv/labs/show.h"
#include "qkv/labs/stopwatch.h"
#include "qkv/nn/module.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/probe.h"

namespace qkv::labs {
namespace multi_head {
namespace {

struct Watch : Probe {
  Weights weights;
  void attention(std::string_view, const Weights& seen) override { weights = seen; }
};

// The weights (B, H, n, m) of an attention without dropout.
Tensor weights_of(const MultiHead& heads, const Tensor& queries, const Tensor& keys, const Mask& mask) {
  Watch watch;
  heads(queries, keys, keys, mask, {.probe = &watch});
  return watch.weights.matrix();
}

// Rows begin to end of a weight matrix, which make the columns of a projection that belong to one head.
Linear rows_of(const Linear& all, int64_t begin, int64_t end) {
  Linear part;
  part.weight = slice(all.weight, 0, begin, end);
  return part;
}

// The definition taken literally: one head after another, then W_o.
Tensor head_by_head(const MultiHead& all, const Tensor& queries, const Tensor& keys, const Mask& mask) {
  const int64_t width = all.to_q.weight.size(0) / all.heads, shared = all.heads / all.key_heads;
  std::vector<Tensor> found;
  for (int64_t h = 0; h < all.heads; ++h) {
    const int64_t at = h * width, key_at = h / shared * width;
    const Tensor q = rows_of(all.to_q, at, at + width)(queries), k = rows_of(all.to_k, key_at, key_at + width)(keys),
                 v = rows_of(all.to_v, key_at, key_at + width)(keys);
    found.push_back(attend(ScaledDot{}, q, k, v, mask).output);
  }
  return all.to_out(concat(std::span<const Tensor>(found), 2));
}

struct Race {
  double together = 1e9, apart = 1e9;  // seconds, the best of several runs
  std::vector<std::string> cells() const { return {rounded(together * 1e3, 3), rounded(apart * 1e3, 3)}; }
};

Race race(const MultiHead& heads, const Tensor& x) {
  Race r;
  for (int run = 0; run < 7; ++run) {
    r.together = std::min(r.together, seconds([&] { heads(x, x, x, Mask::none(), {}); }));
    r.apart = std::min(r.apart, seconds([&] { head_by_head(heads, x, x, Mask::none()); }));
  }
  return r;
}

struct Rows {
  double worst_sum = 0;  // max |sum of a row - 1|
  bool zeros_beyond = true;
};

Rows rows_beyond(const Tensor& w, std::span<const int32_t> lens) {
  Rows r;
  const int64_t keys = w.size(3), per_batch = w.size(1) * w.size(2);
  for (int64_t row = 0; row < w.numel() / keys; ++row) {
    double total = 0;
    for (int64_t k = 0; k < keys; ++k) {
      const float weight = w.ptr()[row * keys + k];
      total += weight;
      const bool seen = k < lens[static_cast<size_t>(row / per_batch)];
      r.zeros_beyond = r.zeros_beyond && (seen ? weight > 0 : weight == 0);
    }
    r.worst_sum = std::max(r.worst_sum, std::abs(total - 1));
  }
  return r;
}

}  // namespace

void definition(Page& page) {
  page.heading(tr("Several attentions side by side"));
  page.say(tr(
      "One attention gives a query one set of weights: it looks in one way. A word in a sentence may need several "
      "things at once: the word before it, the verb it belongs to, the first word. **Multi-head attention** runs $H$ "
      "attentions on the same queries, keys and values, each with its own linear maps, so that each can look for "
      "something different in a different place:"));
  page.formula("h_i = f(W_i^q q, W_i^k k, W_i^v v), \\quad i = 1, \\ldots, H");
  page.say(tr("The results are concatenated, and a final linear map mixes them:"));
  page.formula("y = W_o [h_1; h_2; \\ldots; h_H], \\quad W_o \\in R^{p_o \\times H p_v}");
  page.say(tr(
      "With $p_q = p_k = p_v = p_o / H$ the $H$ matrices of one kind, stacked, form a single $p_o \\times p_o$ matrix. "
      "So a projection of all heads is **one** matrix product, and the whole costs about as much as one head of full "
      "width. There are no biases by default. $f$ can be any attention; here it is the scaled dot product, divided by "
      "the square root of a head's width $p_o / H$."));
}

void shapes(Page& page) {
  page.heading(tr("The book's demo: shapes"));
  page.say(
      tr("Width 100, 5 heads, dropout 0.5; a batch of 2 with 4 queries and 6 keys each, of which the first 3 and the "
         "first 2 are valid. Everything is filled with ones."));
  const Rng rng = Rng(page.seed()).at("shapes");
  const MultiHead heads({.width = 100, .heads = 5, .dropout = 0.5f}, rng.at("heads"));
  const Ids lens({2}, {3, 2});
  const Mask mask = Mask::valid_lens(lens);
  const Tensor x = ones({2, 4, 100}), y = ones({2, 6, 100});
  const Tensor out = heads(x, y, y, mask, {}), even = weights_of(heads, x, y, mask);
  page.print(
      tr("queries          {queries}\n"
         "keys and values  {keys}\n"
         "valid lengths    [3, 2]\n"
         "weights          {weights}\n"
         "output           {output}",
         "queries"_a = x.shape().str(), "keys"_a = y.shape().str(), "weights"_a = even.shape().str(),
         "output"_a = out.shape().str()));
  page.fact(tr("The output has one vector of the full width for each query."),
            tr("shape {shape}", "shape"_a = out.shape().str()));
  page.say(
      tr("The weights have a head axis, (B, H, n, m). The book stores them as (B H, n, m), with batch element $b$ and "
         "head $j$ in row $b H + j$, and repeats every valid length $H$ times; here one length applies to all heads. "
         "Equal keys share the weight evenly, so inputs of ones give 1/3 three times and 1/2 twice. With random inputs "
         "the heads differ, and what holds for one attention holds for each of them:"));
  const Tensor q = normal({2, 4, 100}, rng.at("q")), k = normal({2, 6, 100}, rng.at("k"));
  const Tensor w = weights_of(heads, q, k, mask);
  page.draw("demo-heads", heatmaps(w, tr("Keys"), tr("Queries"), head_names(5), {.colours = {.low = 0, .high = 1}}),
            tr("Five heads with random weights. Top: the batch element of length 3; bottom: the one of length 2."));
  const Rows rows = rows_beyond(w, lens.data());
  page.claim(
      std::abs(even.at({0, 4, 3, 2}) - 1.0 / 3) < 1e-6 && std::abs(even.at({1, 0, 0, 1}) - 0.5) < 1e-6,
      tr("Equal keys: 1/3 for a length of 3, 1/2 for a length of 2, in every head."),
      tr("weights {third:.6f} and {half:.6f}", "third"_a = even.at({0, 4, 3, 2}), "half"_a = even.at({1, 0, 0, 1})));
  page.claim(rows.zeros_beyond && rows.worst_sum < 1e-6,
             tr("Every row of every head sums to one, and keys beyond the length get exactly 0."),
             tr("largest |Σα − 1| {worst}", "worst"_a = tiny(rows.worst_sum)));
  Watch watch;
  const Tensor trained = heads(q, k, k, mask, {.training = true, .rng = rng.at("dropout"), .probe = &watch});
  const double moved = largest_difference(trained, heads(q, k, k, mask, {}));
  page.claim(largest_difference(watch.weights.matrix(), w) == 0 && moved > 1e-3,
             tr("The weights shown are those before dropout; the output in training is after dropout."),
             tr("weights change by 0, output by {change:.2f}", "change"_a = moved));
}

void blocks(Page& page) {
  page.heading(tr("Which numbers belong to which head"));
  page.say(
      tr("After the projection, a vector of width $h$ is cut into $H$ blocks: columns $(j - 1) h / H + 1$ to $j h / H$ "
         "belong to head $j$. The book reshapes (B, n, h) to (B, n, H, h/H), swaps the middle axes and gets (B H, n, "
         "h/H); afterwards it reverses these steps. Two tokens of width 6, three heads:"));
  const Tensor x = arange(0, 12).viewed({1, 2, 6});
  const Tensor apart = reshape(permute(reshape(x, {1, 2, 3, 2}), {0, 2, 1, 3}), {3, 2, 2});
  const Tensor back = reshape(permute(reshape(apart, {1, 3, 2, 2}), {0, 2, 1, 3}), {1, 2, 6});
  page.print(fmt::format("{}:\n{}\n{}:\n{}", x.shape().str(), shown(x), apart.shape().str(), shown(apart)));
  page.claim(largest_difference(back, x) == 0 && apart.at({1, 0, 0}) == 2 && apart.at({2, 1, 1}) == 11,
             tr("Head $j$ gets block $j$ of every token, and the way back is exact."),
             tr("largest difference {difference} after the round trip", "difference"_a = largest_difference(back, x)));
  page.say(
      tr("Here no data is moved for this: the attention kernel knows that the heads are the inner axis and reads block "
         "$j$ in place. To see that a block belongs to its head alone, change the rows of $W_q$ that produce one block "
         "and see which maps change:"));
  const Rng rng = Rng(page.seed()).at("blocks");
  MultiHead heads({.width = 32, .heads = 4}, rng.at("heads"));
  const Tensor tokens = normal({1, 6, 32}, rng.at("tokens"));
  const Tensor before = weights_of(heads, tokens, tokens, Mask::none());
  Tensor moved = zeros({4, 4});
  bool only_own = true;
  double others = 0;
  for (int64_t j = 0; j < 4; ++j) {
    MultiHead other = heads;
    other.to_q.weight = heads.to_q.weight.copied();
    const Tensor noise = normal({8, 32}, rng.at("noise").at(static_cast<uint64_t>(j)), 0, 0.3f);
    for (int64_t i = 0; i < noise.numel(); ++i) other.to_q.weight.mutable_ptr()[j * 8 * 32 + i] += noise.ptr()[i];
    const Tensor after = weights_of(other, tokens, tokens, Mask::none());
    for (int64_t h = 0; h < 4; ++h) {
      const double by = largest_difference(before.part(h * 36, {36}), after.part(h * 36, {36}));
      moved.mutable_ptr()[j * 4 + h] = static_cast<float>(by);
      if (j != h) others = std::max(others, by);
      only_own = only_own && (j == h ? by > 1e-3 : by == 0);
    }
  }
  std::vector<std::vector<std::string>> cells;
  for (int64_t j = 0; j < 4; ++j) {
    cells.push_back({fmt::format("{}–{}", 8 * j + 1, 8 * j + 8)});
    for (int64_t h = 0; h < 4; ++h) cells.back().push_back(fmt::format("{:.3g}", moved.at({j, h})));
  }
  page.table({tr("rows of $W_q$ changed"), tr("head 1"), tr("head 2"), tr("head 3"), tr("head 4")}, cells);
  page.claim(only_own,
             tr("A change in block $j$ changes the weights of head $j$, and not a single bit of any other head."),
             tr("largest change of another head's weight {change}", "change"_a = others));
}

void loop(Page& page) {
  page.heading(tr("One product, or a loop over the heads"));
  page.say(tr(
      "By the definition, every head does three small products and an attention; the results are concatenated and "
      "multiplied by $W_o$. The program does three large products, one attention over all heads, and the product with "
      "$W_o$. Compare the two on the same weights: with lengths, with one length per query, and with a causal mask:"));
  const Rng rng = Rng(page.seed()).at("loop");
  const MultiHead heads({.width = 64, .heads = 8}, rng.at("heads"));
  const Tensor q = normal({2, 5, 64}, rng.at("q")), k = normal({2, 7, 64}, rng.at("k"));
  const std::pair<Text, Mask> masks[] = {
      {tr("lengths (B)"), Mask::valid_lens(Ids({2}, {4, 7}))},
      {tr("lengths (B, n)"), Mask::valid_lens(Ids({2, 5}, {1, 2, 3, 4, 5, 7, 6, 5, 4, 3}))},
      {tr("causal"), Mask::causal()}};
  double worst = 0;
  std::vector<std::pair<Text, std::vector<std::string>>> table;
  for (const auto& [name, mask] : masks) {
    const double by = largest_difference(heads(q, k, k, mask, {}), head_by_head(heads, q, k, mask));
    worst = std::max(worst, by);
    table.push_back({name, {tiny(by)}});
  }
  named_table(page, {tr("mask"), tr("largest difference")}, table);
  page.claim(worst < 1e-6, tr("Both are the same up to rounding."),
             tr("largest difference {difference}", "difference"_a = tiny(worst)));
  const MultiHead wide({.width = 256, .heads = 16}, rng.at("wide"));
  const Race many = race(wide, normal({4, 32, 256}, rng.at("x"))),
             single = race(wide, normal({1, 1, 256}, rng.at("x")));
  named_table(page, {tr("width 256, 16 heads"), tr("one product, ms"), tr("loop, ms")},
              {{tr("4 lines of 32 tokens"), many.cells()}, {tr("a single token"), single.cells()}});
  page.say(tr(
      "Both do the same multiplications, so with 128 tokens the times are close: a product of 128 x 256 by 256 x 16 "
      "numbers already keeps a processor core busy. The loop adds a fixed cost per call, 49 products instead of 4, "
      "which shows when there is little work: with the single token of a decoder step. The book's concern is parallel "
      "computation, where one large product matters most: it keeps a device with thousands of arithmetic units busy, "
      "while a sequence of small products leaves most of them idle."));
}

void sizes(Page& page) {
  page.heading(tr("How large it is"));
  page.say(tr(
      "Four matrices of $h \\times h$: the number of parameters, $4 h^2$, does not depend on the number of heads. More "
      "heads mean narrower heads. $h$ must be divisible by $H$:"));
  const Rng rng = Rng(page.seed()).at("sizes");
  std::string refusal;
  try {
    MultiHead({.width = 100, .heads = 3}, rng);
  } catch (const Error& e) {
    refusal = e.what();
  }
  page.print(tr("error: {message}", "message"_a = refusal));
  std::vector<std::vector<std::string>> rows;
  for (int64_t heads : {1, 2, 5, 10, 20}) {
    const int64_t plain = count_parameters(MultiHead({.width = 100, .heads = heads}, rng));
    const int64_t biased = count_parameters(MultiHead({.width = 100, .heads = heads, .bias = Linear::Bias::yes}, rng));
    rows.push_back({std::to_string(heads), std::to_string(100 / heads), grouped(plain), grouped(biased)});
  }
  page.table({tr("heads"), tr("width of a head"), tr("parameters"), tr("with biases")}, rows);

  const MultiHead uneven({.width = 100, .heads = 5, .query_width = 20, .key_width = 10, .value_width = 6}, rng);
  const Tensor out = uneven(ones({2, 4, 20}), ones({2, 6, 10}), ones({2, 6, 6}), Mask::none(), {});
  page.fact(tr("Queries, keys and values of widths 20, 10 and 6 are accepted too; the output is as wide as before."),
            tr("output {shape}, {parameters} parameters", "shape"_a = out.shape().str(),
               "parameters"_a = grouped(count_parameters(uneven))));
}

void grouped_heads(Page& page) {
  page.heading(tr("Grouped heads"));
  const Rng rng = Rng(page.seed()).at("sizes");
  page.say(
      tr("A decoder stores the keys and values of all earlier tokens, $2 h$ numbers per token. **Grouped heads** store "
         "fewer: $H_k$ heads of keys and values, each shared by $H / H_k$ query heads (one for all: Shazeer, 2019; "
         "groups: Ainslie and others, 2023). This is equivalent to a full model in which some heads have equal key and "
         "value matrices:"));
  std::vector<std::vector<std::string>> cache;
  double worst = 0;
  bool counted = true;
  const Tensor x = normal({2, 6, 96}, rng.at("x"));
  for (int64_t kept : {8, 4, 2, 1}) {
    const MultiHead small({.width = 96, .heads = 8, .key_heads = kept}, rng.at("grouped"));
    MultiHead full = small;
    full.key_heads = 8;
    const auto repeated = [&](const Tensor& w) {
      return reshape(repeat_interleave(reshape(w, {kept, 12 * 96}), 8 / kept, 0), {96, 96});
    };
    full.to_k.weight = repeated(small.to_k.weight);
    full.to_v.weight = repeated(small.to_v.weight);
    worst = std::max(worst, largest_difference(small(x, x, x, Mask::causal(), {}), full(x, x, x, Mask::causal(), {})));
    const int64_t parameters = count_parameters(small), numbers = 2 * small.project(x, x).k.size(2);
    counted = counted && parameters == 2 * 96 * 96 + 2 * 96 * kept * 12 && numbers == 2 * kept * 12;
    cache.push_back({std::to_string(kept), grouped(parameters), std::to_string(numbers)});
  }
  page.table({tr("key heads, out of 8"), tr("parameters, width 96"), tr("numbers stored per token")}, cache);
  page.claim(counted && worst < 1e-6,
             tr("Grouped heads equal full ones with repeated matrices, and store $2 H_k h / H$ numbers per token."),
             tr("largest difference {difference}", "difference"_a = tiny(worst)));
}

}  // namespace multi_head

Lab multi_head_lab() {
  using namespace multi_head;
  return {"10.5",
          "multi-head",
          tr("Multi-head attention"),
          {definition, shapes, blocks, loop, sizes, grouped_heads, one_against_several, drawn, distances, importance,
           pruning},
          false,
          3};
}

}  // namespace qkv::labs
