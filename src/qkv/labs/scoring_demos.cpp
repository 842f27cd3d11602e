// Lab 10.3: the book's demos of additive and scaled dot-product attention, with equal, random and different keys.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/labs/scoring.h"
#include "qkv/labs/show.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/shape.h"

namespace qkv::labs::scoring {
namespace {

Ids two_and_six() { return Ids({2}, {2, 6}); }

// Rows 0..3, 4..7, ... for both batch elements: (2, 10, 4).
Tensor counting_values() { return tile(arange(0, 40).viewed({1, 10, 4}), {2, 1, 1}); }

Tensor expected_output() { return Tensor({2, 1, 4}, {2, 3, 4, 5, 10, 11, 12, 13}); }

double effective_keys(const Attended& a) {
  double total = 0;
  const Tensor entropy = a.weights.entropy();
  for (float h : entropy.data()) total += std::exp(h) / static_cast<double>(entropy.numel());
  return total;
}

}  // namespace

void equal_keys(Page& page) {
  page.heading({"Two scores, one answer: equal keys", "两种评分，同一个答案：相同的键"});
  page.say(
      {"**Additive attention** is a little network with one hidden layer, so query and key may have different lengths; it has no biases. "
       "**Scaled dot-product attention** needs no parameters, but equal lengths $d$.",
       "**加性注意力**是只有一个隐藏层、没有偏置的小网络，所以查询和键可以有不同的长度。**缩放点积注意力**不需要参数，但要求长度 $d$ "
       "相同。"});
  page.formula("a(q, k) = w_v^\\top \\tanh(W_q q + W_k k), \\quad a(q, k) = \\frac{q^\\top k}{\\sqrt{d}}");
  page.say(
      {"The book's demo: random queries (2, 1, 20), keys (2, 10, 2) that are all ones, values 0 to 39 in rows of four for both batch "
       "elements, valid lengths 2 and 6, 8 hidden units, dropout 0.1 that is off outside training. Then the same with the dot product and "
       "queries (2, 1, 2). Where keys are equal, so are their scores, whatever the parameters: the weights are uniform over the valid keys "
       "and the output is the mean of the first 2 and the first 6 rows of values.",
       "书中的演示：随机查询 (2, 1, 20)，全为 1 的键 (2, 10, 2)，两个批量元素的值都是 0 到 39、每行四个，有效长度为 2 和 6，8 "
       "个隐藏单元，训练之外不起作用的暂退法 0.1。"
       "然后换成点积，查询为 (2, 1, 2)。键相同，分数就相同，与参数无关：权重在有效的键上均匀，输出是值的前 2 行和前 6 行的平均。"});
  const Rng rng = Rng(page.seed()).at("equal-keys");
  const Tensor keys = ones({2, 10, 2}), values = counting_values();
  const Additive additive = Additive::random(20, 2, 8, rng.at("additive"));
  const Tensor q20 = normal({2, 1, 20}, rng.at("q20")), q2 = normal({2, 1, 2}, rng.at("q2"));
  const Mask mask = Mask::valid_lens(two_and_six());
  const Attended added = attend(additive, q20, keys, values, mask, {}, {.dropout = 0.1f});
  const Attended dotted = attend(ScaledDot{}, q2, keys, values, mask, {}, {.dropout = 0.5f});
  page.print("additive:\n" + shown(added.output) + "\nscaled dot product:\n" + shown(dotted.output));
  const Tensor maps = reshape(stack({added.weights.matrix(), dotted.weights.matrix()}), {2, 2, 10});
  page.draw("equal-keys",
            heatmaps(maps, "Keys", "Queries", {"additive", "scaled dot product"}, {.y_tokens = {"0", "1"}}),
            {"Both maps are 1/2 on two keys and 1/6 on six.", "两幅图都是：两个键各 1/2，六个键各 1/6。"});
  const double off = std::max(largest_difference(added.output, expected_output()),
                              largest_difference(dotted.output, expected_output()));
  page.claim(off < 1e-4,
             {"Both give [[2, 3, 4, 5]] and [[10, 11, 12, 13]].", "两者都给出 [[2, 3, 4, 5]] 和 [[10, 11, 12, 13]]。"},
             "largest difference " + tiny(off));

  const Attended noisy =
      attend(ScaledDot{}, q2, keys, values, mask, {.training = true, .rng = rng.at("dropout")}, {.dropout = 0.5f});
  page.say(
      {"In training, dropout is applied to the weights on their way to the values: at rate 0.5 each is set to 0 or doubled, by lot. So the "
       "same attention now gives another output, below: a sum of the rows that survived, no longer their mean. What is kept for looking "
       "at are the weights before dropout.",
       "训练时，暂退法作用于即将与值相乘的权重：暂退率为 0.5 时，每个权重随机地置零或加倍。所以同一个注意力现在给出另一个输出（如下）：它是幸存各行的"
       "加权和，不再是平均。保留下来供查看的是暂退之前的权重。"});
  page.print(shown(noisy.output));
  page.claim(largest_difference(noisy.weights.matrix(), dotted.weights.matrix()) == 0,
             {"Dropout changes the output of training, never the weights that are shown.",
              "暂退法改变训练时的输出，但不改变显示出来的权重。"},
             "largest change of a weight 0");
}

void random_keys(Page& page) {
  page.heading({"The English edition's demo: random keys", "英文版的演示：随机的键"});
  page.say(
      {"The English edition draws keys and values at random, with the same lengths. Now the weights inside the valid part differ, and "
       "beyond it they are 0 as before.",
       "英文版随机抽取键和值，有效长度相同。这时有效部分内的权重各不相同，之外仍为 0。"});
  const Rng rng = Rng(page.seed()).at("random-keys");
  const Tensor keys = normal({2, 10, 2}, rng.at("k")), values = normal({2, 10, 4}, rng.at("v"));
  const Mask mask = Mask::valid_lens(two_and_six());
  const Attended dotted =
      attend(ScaledDot{}, normal({2, 1, 2}, rng.at("q2")), keys, values, mask, {}, {.dropout = 0.5f});
  const Attended added = attend(Additive::random(20, 2, 8, rng.at("additive")), normal({2, 1, 20}, rng.at("q20")), keys,
                                values, mask, {}, {.dropout = 0.1f});
  const Tensor maps = reshape(stack({dotted.weights.matrix(), added.weights.matrix()}), {2, 2, 10});
  page.print(text("scaled dot product: ", dotted.output.shape(), ", additive: ", added.output.shape()));
  page.draw("random-keys",
            heatmaps(maps, "Keys", "Queries", {"scaled dot product", "additive"}, {.y_tokens = {"0", "1"}}),
            {"Random keys get different weights, within the valid lengths 2 and 6.",
             "随机的键得到不同的权重，但都在有效长度 2 和 6 之内。"});
  bool masked = true;
  for (int64_t p = 0; p < 2; ++p)
    for (int64_t c = 0; c < 10; ++c)
      masked = masked && (c < 2 || maps.at({p, 0, c}) == 0) && (c < 6 || maps.at({p, 1, c}) == 0);
  page.claim(masked && dotted.output.shape() == Shape{2, 1, 4} && added.output.shape() == Shape{2, 1, 4},
             {"Outputs are (2, 1, 4), and no key beyond its length has weight.",
              "输出形状为 (2, 1, 4)，超出长度的键没有权重。"},
             "largest weight beyond the lengths 0");
}

void different_keys(Page& page) {
  page.heading({"Exercise 10.3.1: do both scores still agree?", "练习 10.3.1：两种评分还一致吗？"});
  page.say(
      {"Only equal keys made them agree. Below the same queries and the same keys go to both scores: keys of ones, random keys, and the "
       "random keys ten times as long. The dot product grows with the key, so long keys end in a hard choice. The additive score passes "
       "through tanh and can never leave $\\pm \\sum_j \\lvert w_j \\rvert$ ($w_j$ the elements of $w_v$): its weights stay within a "
       "factor $\\exp(2 \\sum_j \\lvert w_j \\rvert)$ however long the keys. And additive attention has parameters: before training it "
       "knows nothing of likeness, whereas the dot product measures it from the start.",
       "只有相同的键才使它们一致。下面把同样的查询和键交给两种评分：全为 1 的键、随机的键、放大十倍的随机键。点积随键的长度增长，长键导致非"
       "此即彼的选择。加性评分要经过 tanh，绝不会超出 $\\pm \\sum_j \\lvert w_j \\rvert$（$w_j$ 是 $w_v$ 的元素）：无论键多长，权重之比都不"
       "超过 $\\exp(2 \\sum_j \\lvert w_j \\rvert)$。另外，加性注意力有参数：训练之前它对相似一无所知，而点积从一开始就在度量相似。"});
  const Rng rng = Rng(page.seed()).at("different-keys");
  const Tensor q = normal({1, 4, 2}, rng.at("q")), k = normal({1, 10, 2}, rng.at("k")), v = zeros({1, 10, 1});
  const Additive additive = Additive::random(2, 2, 8, rng.at("additive"));
  const Tensor cases[] = {ones({1, 10, 2}), k, scale(k, 10)};
  Tensor maps = Tensor::empty({2, 3, 4, 10});
  std::vector<std::vector<std::string>> rows;
  const char* names[] = {"1", "k", "10 k"};
  for (int64_t c = 0; c < 3; ++c) {
    const Attended a = attend(additive, q, cases[c], v), s = attend(ScaledDot{}, q, cases[c], v);
    std::copy_n(a.weights.matrix().ptr(), 40, maps.mutable_ptr() + c * 40);
    std::copy_n(s.weights.matrix().ptr(), 40, maps.mutable_ptr() + (3 + c) * 40);
    rows.push_back({fmt::format("${}$", names[c]),
                    rounded(largest_difference(a.weights.matrix(), s.weights.matrix()), 3),
                    rounded(effective_keys(a), 2), rounded(effective_keys(s), 2)});
  }
  Figure figure = heatmaps(maps, "Keys", "Queries", {"keys of ones", "random keys", "ten times as long"},
                           {.colours = {.low = 0, .high = 1}});
  figure.panels[0].y.label = "additive";
  figure.panels[3].y.label = "scaled dot";
  page.draw("different-keys", figure,
            {"Top: additive. Bottom: scaled dot product. They agree on equal keys only.",
             "上：加性；下：缩放点积。只有键都相同时两者一致。"});
  page.table({{"keys", "键"},
              {"largest difference of a weight", "权重的最大差"},
              {"effective keys, additive", "有效键数，加性"},
              {"effective keys, dot", "有效键数，点积"}},
             rows);

  int64_t differ = 0, sharper = 0;
  double worst_ratio = 0;
  for (uint64_t s = 0; s < 100; ++s) {
    const Rng r = rng.at(s);
    const Tensor qs = normal({1, 4, 2}, r.at("q")), ks = normal({1, 10, 2}, r.at("k"));
    const Additive net = Additive::random(2, 2, 8, r.at("additive"));
    differ += largest_difference(attend(net, qs, ks, v).weights.matrix(),
                                 attend(ScaledDot{}, qs, ks, v).weights.matrix()) > 0.05;
    const Attended a = attend(net, qs, scale(ks, 10), v), d = attend(ScaledDot{}, qs, scale(ks, 10), v);
    sharper += effective_keys(d) < effective_keys(a);
    double bound = 0;
    for (float w : net.w_v.data()) bound += 2 * std::abs(w);
    for (int64_t i = 0; i < 4; ++i) {
      const Tensor row = a.weights.row(0, 0, i);
      const auto [low, high] = std::minmax_element(row.data().begin(), row.data().end());
      worst_ratio = std::max(worst_ratio, std::log(*high / *low) / bound);
    }
  }
  page.claim(
      differ >= 95 && sharper >= 95,
      {"With random keys the two scores differ by more than 0.05 somewhere, and with long keys the dot product is the sharper, in "
       "at least 95 of 100 draws.",
       "在 100 次抽样中至少有 95 次：随机键下两种评分在某处相差超过 0.05，长键下点积更尖锐。"},
      fmt::format("they differ in {} of 100 draws, the dot product is sharper in {}", differ, sharper));
  page.claim(worst_ratio <= 1 + 1e-5,
             {"The weights of additive attention never leave their bound, in all 100 draws.",
              "在全部 100 次抽样中，加性注意力的权重从未越过其界。"},
             fmt::format("largest log-ratio of two weights {:.3f} of the bound", worst_ratio));
}

}  // namespace qkv::labs::scoring
