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
    if (j == 0 || square < least) best = j, least = square;
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
  page.heading({"Exercise 10.3.2: different lengths, matrix products only", "练习 10.3.2：长度不同，只用矩阵乘法"});
  page.say(
      {"Put a matrix between them: $a(q, k) = q^\\top W k$ with $W$ of query length times key length. It is a dot product after the query "
       "has been carried into the keys' space, or the keys into the query's; which is cheaper depends on which of the two is more "
       "numerous. With $W = W_q^\\top W_k$ of low rank both are carried into a third space: that is a head of section 10.5.",
       "在两者之间放一个矩阵：$a(q, k) = q^\\top W k$，$W$ 的大小为查询长度乘以键长度。这相当于先把查询变换到键的空间再做点积，或把键变换到"
       "查询的空间；哪种更省，取决于两者谁更多。若 $W = W_q^\\top W_k$ 是低秩的，则两者都被变换到第三个空间：这就是 10.5 节的一个头。"});
  const Rng rng = Rng(page.seed()).at("bilinear");
  const Tensor q = normal({4, 20}, rng.at("q")), k = normal({10, 2}, rng.at("k")), v = normal({10, 4}, rng.at("v"));
  const Bilinear scorer = Bilinear::random(20, 2, rng.at("W"));
  const Attended by_matrix = attend(scorer, q, k, v);
  const Attended query_moved = attend(Dot{}, matmul(q, scorer.W), k, v),
                 key_moved = attend(Dot{}, q, matmul(k, scorer.W, Transpose::no, Transpose::yes), v);
  page.draw("bilinear", heatmaps(by_matrix.weights.matrix(), "Keys", "Queries", {}),
            {"Queries of length 20 weigh keys of length 2.", "长度为 20 的查询给长度为 2 的键加权。"});
  const double off = std::max(largest_difference(by_matrix.output, query_moved.output),
                              largest_difference(by_matrix.output, key_moved.output));
  page.claim(off < 1e-5,
             {"$(Q W) K^\\top$ and $Q (K W^\\top)^\\top$ are the same attention.",
              "$(Q W) K^\\top$ 与 $Q (K W^\\top)^\\top$ 是同一个注意力。"},
             "largest difference " + tiny(off));
}

void vector_sum(Page& page) {
  page.heading({"Exercise 10.3.3: is the sum of the vectors a better score?", "练习 10.3.3：向量之和是更好的评分吗？"});
  page.say(
      {"No: it is blind. A score from $q + k$ by summing the elements is $\\sum_j q_j + \\sum_j k_j$. The first sum is the same for every "
       "key of a row, and softmax ignores what is added to a whole row. The query drops out, and what remains is a pooling by the key "
       "alone. (Additive attention adds too, but bends the sum with tanh before it reduces it; that is what keeps the query in.)",
       "不是：它是盲的。把 $q + k$ 的元素相加得到的评分是 $\\sum_j q_j + \\sum_j k_j$。第一个和对一行中所有的键都相同，而 softmax 不理会整"
       "行同加的数。查询被消去，剩下的是只看键的汇聚。（加性注意力也是相加，但在归约之前先用 tanh 弯曲了这个和；查询正是因此得以保留。）"});
  const Rng rng = Rng(page.seed()).at("vector-sum");
  constexpr int64_t d = 8, m = 10;
  const Tensor k = normal({m, d}, rng.at("k")), q = k + normal({m, d}, rng.at("noise"), 0, 0.2f);
  const Attended summed = attend(VectorSum{}, q, k, k), dotted = attend(ScaledDot{.scale = 1}, q, k, k);
  page.draw(
      "vector-sum",
      heatmaps(pair_of(summed.weights.matrix(), dotted.weights.matrix()), "Keys", "Queries",
               {"sum of q + k", "dot product"}, {.colours = {.low = 0, .high = 1}}),
      {"Query i is key i with some noise. The sum weighs the keys alike for every query; the dot product finds the diagonal.",
       "第 i 个查询是第 i 个键加上少许噪声。向量和对每个查询都给出同样的权重；点积找到了对角线。"});
  double moved = 0;
  const Tensor w = summed.weights.matrix();
  for (int64_t i = 1; i < m; ++i) moved = std::max(moved, largest_difference(w.part(0, {m}), w.part(i * m, {m})));
  Tape tape;
  const Tensor leaf = parameter(q), key_leaf = parameter(k);
  tape.backward(sum(attend(VectorSum{}, leaf, key_leaf, k).output));
  const double gradient = length_of(tape.grad(leaf));
  page.claim(
      moved == 0 && gradient == 0 && length_of(tape.grad(key_leaf)) > 0,
      {"Under the sum no query changes any weight, and the gradient with respect to the query is exactly 0; the keys have one.",
       "在向量和评分下，任何查询都不改变权重，对查询的梯度恰为 0，对键的则不然。"},
      fmt::format("largest change of a weight {}; gradient of the query {}, of the keys {:.2f}", moved, gradient,
                  length_of(tape.grad(key_leaf))));
  int64_t sum_found = 0, dot_found = 0;
  for (uint64_t s = 0; s < 100; ++s) {
    const Tensor ks = normal({m, d}, rng.at(s).at("k")), qs = ks + normal({m, d}, rng.at(s).at("noise"), 0, 0.2f);
    const Attended by_sum = attend(VectorSum{}, qs, ks, ks), by_dot = attend(Dot{}, qs, ks, ks);
    for (int64_t i = 0; i < m; ++i) sum_found += heaviest(by_sum, i) == i, dot_found += heaviest(by_dot, i) == i;
  }
  page.claim(
      sum_found == 100 && dot_found > 700,
      {"Asked for the key that a query was made from, the sum is right once in ten, by chance; the dot product mostly.",
       "要找出查询由哪个键生成：向量和十次中碰对一次，点积大多正确。"},
      fmt::format("right of 1,000: sum {}, dot product {}", sum_found, dot_found));
}

void distance(Page& page) {
  page.heading({"Attention by distance (exercise 11.3.1, English edition)", "按距离的注意力（英文版练习 11.3.1）"});
  page.say({"The Gaussian score and the dot product are relatives:", "高斯评分与点积是近亲："});
  page.formula(
      "-\\frac{1}{2} \\lVert q - k_i \\rVert^2 = q^\\top k_i - \\frac{1}{2} \\lVert k_i \\rVert^2 - \\frac{1}{2} \\lVert q \\rVert^2");
  page.say(
      {"The last term is the same for every key and softmax drops it. So distance attention is dot-product attention with a bias for each "
       "key, $-\\frac{1}{2} \\lVert k_i \\rVert^2$, and nothing else is needed of the keys: one line to add to a dot-product layer. If all "
       "keys have one length, the bias drops out too. In a Transformer they nearly have: a key is $W_k x$ of a layer-normalised $x$, and "
       "while all $x$ have one length, the keys' lengths differ somewhat, in a way that $W_k$ can learn. So in practice a plain dot "
       "product is usually enough. Where lengths differ much, it favours the long key over the near one.",
       "最后一项对每个键都相同，被 softmax 消去。所以距离注意力就是给每个键加上偏置 $-\\frac{1}{2} \\lVert k_i \\rVert^2$ 的点积注意力，对"
       "键别无所求：在点积层里加一行即可。若所有键长度相同，偏置也被消去。Transformer 中的键大致如此：键是 $W_k x$，$x$ 经过层规范化，长度"
       "都相同，而键的长度会有些差别，但 $W_k$ 可以学着去调节。所以实践中点积通常已经够用。长度相差很大时，点积偏爱长的键而不是近的键。"});
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
      heatmaps(pair_of(plain.weights.matrix(), gaussian.weights.matrix()), "Keys", "Queries",
               {"dot product", "distance"}, {.colours = {.low = 0, .high = 1}}),
      {"Queries and keys on a circle, but key 0 is twice as far out. The dot product favours it whenever a query points its way; by "
       "distance its neighbours are nearer.",
       "查询和键都在一个圆上，只有键 0 远一倍。只要查询大致朝向它，点积就偏爱它；按距离，则是它的邻居更近。"});
  const double off = largest_difference(gaussian.weights.matrix(), biased.weights.matrix());
  page.claim(off < 1e-5, {"The Gaussian score is the dot product with a key bias.", "高斯评分就是带键偏置的点积。"},
             "largest difference of a weight " + tiny(off));
  const double same =
      largest_difference(attend(Gaussian{}, q, unit, v).weights.matrix(), attend(Dot{}, q, unit, v).weights.matrix());
  page.claim(
      same < 1e-5,
      {"With keys of one length, distance and plain dot product agree.", "键的长度都相同时，距离与普通点积一致。"},
      "largest difference of a weight " + tiny(same));
  const Tensor keys = linear(LayerNorm(64)(normal({1000, 64}, rng.at("x"))), xavier_uniform({64, 64}, rng.at("W_k")));
  double mean = 0, square = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    const double length = length_of(keys.part(i * 64, {64}));
    mean += length / 1000, square += length * length / 1000;
  }
  page.fact(
      {"How much keys $W_k x$ of 1,000 layer-normalised random $x$ of width 64 differ in length, with a random $W_k$.",
       "1,000 个层规范化的随机 $x$（宽 64）得到的键 $W_k x$ 的长度相差多少（$W_k$ 随机）。"},
      fmt::format("mean length {:.2f}, standard deviation {:.2f}", mean, std::sqrt(square - mean * mean)));
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
      {"Under the distance the nearest key always weighs most; under the dot product of unequal lengths often not.",
       "按距离，最近的键权重总是最大；长度不等时按点积则常常不是。"},
      fmt::format("of 800 queries: distance {}, dot product {}", by_distance, by_dot));
}

}  // namespace qkv::labs::scoring
