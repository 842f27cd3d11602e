// Lab 10.3: a score for different lengths, the sum of the vectors as a score, and attention by distance.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/labs/scoring.h"
#include "qkv/labs/show.h"
#include "qkv/nn/init.h"
#include "qkv/nn/layers.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/matmul.h"
#include "qkv/ops/reduce.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/tape.h"

namespace qkv::labs::scoring {
namespace {

int64_t heaviest(const Attended& a, int64_t query) { return a.weights.top_k(0, 0, query, 1).front().key; }

int64_t nearest(const Tensor& q, const Tensor& k, int64_t query) {
  int64_t best = 0;
  double least = 0;
  for (int64_t j = 0; j < k.size(0); ++j) {
    double square = 0;
    for (int64_t f = 0; f < k.size(1); ++f) square += std::pow(static_cast<double>(q.at({query, f})) - k.at({j, f}), 2);
    if (j == 0 || square < least) {
      best = j;
      least = square;
    }
  }
  return best;
}

// Two weight matrices (n, m) side by side.
Tensor pair_of(const Tensor& a, const Tensor& b) { return reshape(stack({a, b}), {2, a.size(-2), a.size(-1)}); }

// Points around the origin: (count, 2).
Tensor on_circle(int64_t count, double start, double radius) {
  Tensor points = Tensor::empty({count, 2});
  for (int64_t i = 0; i < count; ++i) {
    const double angle = start + 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(count);
    points.mutable_ptr()[2 * i] = static_cast<float>(radius * std::cos(angle));
    points.mutable_ptr()[2 * i + 1] = static_cast<float>(radius * std::sin(angle));
  }
  return points;
}

// -|k|^2 / 2 for each key: (1, m).
Tensor length_bias(const Tensor& k) { return scale(sum(mul(k, k), -1), -0.5f).viewed({1, k.size(0)}); }

}  // namespace

void bilinear(Page& page) {
  page.exercise("10.3.2");
  page.say(tr(
      "Put a matrix between them: $a(q, k) = q^\\top W k$ where $W$ has shape query length by key length. It is a dot "
      "product after the query has been mapped into the keys' space, or the keys into the query's; which is cheaper "
      "depends on whether there are more queries or more keys. With $W = W_q^\\top W_k$ of low rank both are mapped "
      "into a third space: that is one head of section 10.5."));
  const Rng rng = Rng(page.seed()).at("bilinear");
  const Tensor q = normal({4, 20}, rng.at("q")), k = normal({10, 2}, rng.at("k")), v = normal({10, 4}, rng.at("v"));
  const Bilinear scorer = Bilinear::random(20, 2, rng.at("W"));
  const Attended by_matrix = attend(scorer, q, k, v);
  const Attended query_moved = attend(Dot{}, matmul(q, scorer.W), k, v),
                 key_moved = attend(Dot{}, q, matmul(k, scorer.W, Transpose::no, Transpose::yes), v);
  page.draw("bilinear", heatmaps(by_matrix.weights.matrix(), tr("Keys"), tr("Queries"), {}),
            tr("Queries of length 20 weigh keys of length 2."));
  const double off = std::max(largest_difference(by_matrix.output, query_moved.output),
                              largest_difference(by_matrix.output, key_moved.output));
  page.claim(off < 1e-5, tr("$(Q W) K^\\top$ and $Q (K W^\\top)^\\top$ are the same attention."),
             tr("largest difference {difference}", "difference"_a = tiny(off)));
}

void vector_sum(Page& page) {
  page.exercise("10.3.3");
  page.say(tr(
      "No: it ignores the query. Summing the elements of $q + k$ gives the score $\\sum_j q_j + \\sum_j k_j$. The "
      "first sum is the same for every key of a row, and softmax ignores a constant added to a whole row. The query "
      "drops out, and only pooling by the key remains. (Additive attention adds too, but applies tanh before it sums "
      "up; that keeps the query in.)"));
  const Rng rng = Rng(page.seed()).at("vector-sum");
  constexpr int64_t d = 8, m = 10;
  const Tensor k = normal({m, d}, rng.at("k")), q = k + normal({m, d}, rng.at("noise"), 0, 0.2f);
  const Attended summed = attend(VectorSum{}, q, k, k), dotted = attend(ScaledDot{.scale = 1}, q, k, k);
  page.draw(
      "vector-sum",
      heatmaps(pair_of(summed.weights.matrix(), dotted.weights.matrix()), tr("Keys"), tr("Queries"),
               {tr("sum of q + k"), tr("dot product")}, {.colours = {.low = 0, .high = 1}}),
      tr("Query i is key i with some noise. The sum gives every query the same weights; the dot product finds the "
         "diagonal."),
      report::BenchLink("scores").set("score", "dot").set("q", q).set("k", k).set("v", k));
  double moved = 0;
  const Tensor w = summed.weights.matrix();
  for (int64_t i = 1; i < m; ++i) moved = std::max(moved, largest_difference(w.part(0, {m}), w.part(i * m, {m})));
  Tape tape;
  const Tensor leaf = parameter(q), key_leaf = parameter(k);
  tape.backward(sum(attend(VectorSum{}, leaf, key_leaf, k).output));
  const double gradient = length_of(tape.grad(leaf));
  page.claim(
      moved == 0 && gradient == 0 && length_of(tape.grad(key_leaf)) > 0,
      tr("With the sum no query changes any weight, and the gradient with respect to the query is exactly 0; that of "
         "the keys is not."),
      tr("largest change of a weight {change}; gradient of the query {query}, of the keys {keys:.2f}",
         "change"_a = moved, "query"_a = gradient, "keys"_a = length_of(tape.grad(key_leaf))));
  int64_t sum_found = 0, dot_found = 0;
  for (uint64_t s = 0; s < 100; ++s) {
    const Tensor ks = normal({m, d}, rng.at(s).at("k")), qs = ks + normal({m, d}, rng.at(s).at("noise"), 0, 0.2f);
    const Attended by_sum = attend(VectorSum{}, qs, ks, ks), by_dot = attend(Dot{}, qs, ks, ks);
    for (int64_t i = 0; i < m; ++i) {
      sum_found += heaviest(by_sum, i) == i;
      dot_found += heaviest(by_dot, i) == i;
    }
  }
  page.claim(
      sum_found == 100 && dot_found > 700,
      tr("Asked which key a query was made from, the sum is right one time in ten, by chance; the dot product is right "
         "most of the time."),
      tr("sum {sum_found}, dot product {dot_found} right of 1,000", "sum_found"_a = sum_found,
         "dot_found"_a = dot_found));
}

void distance(Page& page) {
  page.exercise("11.3.1");
  page.say(tr("The Gaussian score and the dot product are closely related:"));
  page.formula(
      "-\\frac{1}{2} \\lVert q - k_i \\rVert^2 = q^\\top k_i - \\frac{1}{2} \\lVert k_i \\rVert^2 - \\frac{1}{2} "
      "\\lVert q \\rVert^2");
  page.say(tr(
      "The last term is the same for every key, so softmax drops it. Attention by distance is therefore dot-product "
      "attention with a bias per key, $-\\frac{1}{2} \\lVert k_i \\rVert^2$: one line to add to a dot-product layer. "
      "If all keys have the same length, the bias drops out too. In a Transformer this is nearly so: a key is $W_k x$ "
      "for a layer-normalised $x$; all $x$ have the same length, but the keys' lengths differ somewhat, in a way that "
      "$W_k$ can learn. So in practice a plain dot product is usually enough. Where lengths differ a lot, it favours "
      "the long key over the near one."));
  const Rng rng = Rng(page.seed()).at("distance");
  const Tensor q = on_circle(8, 0, 2), v = normal({10, 4}, rng.at("v"));
  Tensor k = on_circle(10, 0.3, 2);
  for (int64_t f = 0; f < 2; ++f) k.mutable_ptr()[f] *= 2;
  Tensor unit = k.copied();
  for (int64_t i = 0; i < 10; ++i) {
    const double length = length_of(k.part(2 * i, {2}));
    for (int64_t f = 0; f < 2; ++f) unit.mutable_ptr()[2 * i + f] = static_cast<float>(unit.ptr()[2 * i + f] / length);
  }
  const Attended gaussian = attend(Gaussian{}, q, k, v), biased = attend(Dot{}, q, k, v, Mask::bias(length_bias(k))),
                 plain = attend(Dot{}, q, k, v);
  page.draw(
      "distance",
      heatmaps(pair_of(plain.weights.matrix(), gaussian.weights.matrix()), tr("Keys"), tr("Queries"),
               {tr("dot product"), tr("distance")}, {.colours = {.low = 0, .high = 1}}),
      tr("Queries and keys on a circle, but key 0 is twice as far out. The dot product favours it whenever a query "
         "points in its direction; by distance its neighbours are nearer."),
      report::BenchLink("scores").set("score", "gaussian").set("q", q).set("k", k).set("v", v));
  const double off = largest_difference(gaussian.weights.matrix(), biased.weights.matrix());
  page.claim(off < 1e-5, tr("The Gaussian score is the dot product with a key bias."),
             tr("largest difference of a weight {difference}", "difference"_a = tiny(off)));
  const double same =
      largest_difference(attend(Gaussian{}, q, unit, v).weights.matrix(), attend(Dot{}, q, unit, v).weights.matrix());
  page.claim(same < 1e-5, tr("With keys of the same length, distance and plain dot product agree."),
             tr("largest difference of a weight {difference}", "difference"_a = tiny(same)));
  const Tensor keys = linear(LayerNorm(64)(normal({1000, 64}, rng.at("x"))), xavier_uniform({64, 64}, rng.at("W_k")));
  double mean = 0, square = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    const double length = length_of(keys.part(i * 64, {64}));
    mean += length / 1000;
    square += length * length / 1000;
  }
  page.fact(
      tr("How much the keys $W_k x$ differ in length, for 1,000 random layer-normalised $x$ of width 64 and a random "
         "$W_k$."),
      tr("mean length {mean:.2f}, standard deviation {deviation:.2f}", "mean"_a = mean,
         "deviation"_a = std::sqrt(square - mean * mean)));
  int64_t by_distance = 0, by_dot = 0;
  for (uint64_t s = 0; s < 100; ++s) {
    const Tensor qs = normal({8, 2}, rng.at(s).at("q")), ks = normal({10, 2}, rng.at(s).at("k"));
    const Attended g = attend(Gaussian{}, qs, ks, ks), p = attend(Dot{}, qs, ks, ks);
    for (int64_t i = 0; i < 8; ++i) {
      const int64_t near = nearest(qs, ks, i);
      by_distance += g.weights.row(0, 0, i).at({near}) >= g.weights.row(0, 0, i).at({heaviest(g, i)}) * (1 - 1e-5f);
      by_dot += heaviest(p, i) == near;
    }
  }
  page.claim(
      by_distance == 800 && by_dot < 640,
      tr("By distance the nearest key always has the largest weight; by dot product, with keys of unequal length, "
         "often not."),
      tr("distance {by_distance}, dot product {by_dot} of 800 queries", "by_distance"_a = by_distance,
         "by_dot"_a = by_dot));
}

}  // namespace qkv::labs::scoring
