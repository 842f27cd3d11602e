// Lab 10.1: pictures of weights, and attention as a database that can be asked approximately.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/labs/cues.h"
#include "qkv/labs/show.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/reduce.h"
#include "qkv/ops/shape.h"
#include "qkv/ops/softmax.h"

namespace qkv::labs::cues {
namespace {

const std::vector<std::string> kNames = {"turing", "hopper", "lovelace", "shannon", "noether"};

// How often each letter occurs: (names, 26).
Tensor letters(const std::vector<std::string>& names) {
  Tensor counts = zeros({static_cast<int64_t>(names.size()), 26});
  for (size_t i = 0; i < names.size(); ++i)
    for (char c : names[i]) counts.mutable_ptr()[i * 26 + static_cast<size_t>(c - 'a')] += 1;
  return counts;
}

std::string year(const Attended& a, int64_t query) {
  return a.weights.column_mass().numel() && sum(a.weights.row(0, 0, query)).item() == 0
             ? "—"
             : rounded(a.output.at({query, 0}), 1);
}

}  // namespace

void identity_map(Page& page) {
  page.heading({"Weights as a picture", "把权重画成图"});
  page.say(
      {"A row of the heat map is a query, a column a key, the colour a weight. The simplest picture is the identity: a query puts all "
       "its weight on the key that equals it. It is what attention gives when ten keys point in ten different directions and the "
       "queries are the same vectors, long enough for softmax to choose.",
       "热图的一行是一个查询，一列是一个键，颜色是权重。最简单的图是单位矩阵：查询把全部权重给予与它相等的那个键。当十个键指向十个不同方"
       "向，而查询就是这些向量，并且长到足以让 softmax 作出选择时，注意力给出的正是它。"});
  const Tensor x = scale(eye(10), 40);
  const Tensor weights = attend(Dot{}, x, x, eye(10)).weights.matrix();
  page.draw("identity", heatmaps(weights, "Keys", "Queries", {}),
            {"The weight is 1 where query and key are the same, else 0.", "查询与键相同处权重为 1，其余为 0。"});
  const double off = largest_difference(weights.viewed({10, 10}), eye(10));
  page.claim(off == 0, {"The weights are the identity matrix, to the bit.", "权重逐位等于单位矩阵。"},
             fmt::format("largest |α − I| {}", off));
}

void random_map(Page& page) {
  page.heading({"Exercise 10.1.2: random scores", "练习 10.1.2：随机分数"});
  page.say(
      {"Ten by ten random numbers from [0, 1) and a softmax over each row. The colours look lively only because the scale is stretched: "
       "scores that differ by less than 1 give weights that differ by less than a factor $e$, so a row is nearly an average. A row's "
       "effective number of keys is $\\exp(H)$, $H$ its entropy: 1 for a choice, 10 for an average. The second map has the same scores, "
       "ten times as large.",
       "从 [0, 1) 取十乘十个随机数，对每一行做 softmax。颜色显得丰富，只是因为色标被拉伸：相差不到 1 的分数，权重之比小于 $e$，所以每行几乎"
       "就是平均。一行的有效键数是 $\\exp(H)$，$H$ 为熵：1 表示作出选择，10 表示平均。第二幅图用同样的分数，放大十倍。"});
  const Tensor scores = uniform({10, 10}, Rng(page.seed()).at("random-map"));
  const Tensor soft = softmax(scores), sharp = softmax(scale(scores, 10));
  const Tensor both = stack({soft, sharp});
  page.draw("random-softmax", heatmaps(both, "Keys", "Queries", {"softmax(S)", "softmax(10 S)"}, {}),
            {"Random scores as attention weights. Both maps have one scale.",
             "把随机分数当作注意力权重。两幅图共用一个色标。"});
  const Tensor entropy = Weights(soft.viewed({1, 1, 10, 10})).entropy(),
               sharp_entropy = Weights(sharp.viewed({1, 1, 10, 10})).entropy();
  double keys = 0, sharp_keys = 0, worst = 0, ratio = 0;
  for (int64_t i = 0; i < 10; ++i) {
    keys += std::exp(entropy.ptr()[i]) / 10, sharp_keys += std::exp(sharp_entropy.ptr()[i]) / 10;
    double total = 0;
    for (int64_t j = 0; j < 10; ++j) total += soft.at({i, j});
    worst = std::max(worst, std::abs(total - 1));
    const auto [low, high] = std::minmax_element(soft.ptr() + i * 10, soft.ptr() + i * 10 + 10);
    ratio = std::max(ratio, static_cast<double>(*high / *low));
  }
  page.claim(worst < 1e-6 && ratio < std::exp(1.0),
             {"Every row sums to one, and no weight is $e$ times another of its row.",
              "每行之和为一，同一行中没有一个权重达到另一个的 $e$ 倍。"},
             fmt::format("largest |Σα − 1| {}, largest ratio of two weights {:.2f}", tiny(worst), ratio));
  page.claim(keys > 8.5 && sharp_keys < keys - 1,
             {"Random scores below 1 spread the weight over nearly all keys; ten times the score sharpens it.",
              "小于 1 的随机分数把权重摊到几乎所有键上；分数放大十倍则变得尖锐。"},
             fmt::format("effective keys of 10: {:.2f}, with ten times the scores {:.2f}", keys, sharp_keys));
}

void database(Page& page) {
  page.heading({"A database that forgives (exercise 11.1.1, English edition)", "宽容的数据库（英文版练习 11.1.1）"});
  page.say(
      {"A database holds pairs of key and value, and attention reads it: here five names and years of birth. A key is the count of "
       "each letter, and a name is compared with a key by distance. **Exact look-up** is the score that is 0 for the same letters and "
       "minus infinity else. **Approximate look-up**, what databases call fuzzy matching, is a kernel: the boxcar kernel answers with "
       "all keys within a radius, the Gaussian prefers the nearest and is differentiable. A **constant** score answers with the "
       "average of the whole table. Only the score changes, the database does not.",
       "数据库存放键值对，注意力则读取它：这里是五个人名和出生年份。键是各字母出现的次数，名字与键用距离比较。**精确查找**的评分：字母相同"
       "为 0，否则为负无穷。**近似查找**（数据库所说的模糊匹配）是一个核：矩形核返回半径以内的所有键，高斯核偏爱最近的，而且可微。**常数**"
       "评分返回整张表的平均。改变的只是评分，数据库不变。"});
  const Tensor k = letters(kNames), v({5, 1}, {1912, 1906, 1815, 1916, 1882});
  const std::vector<std::string> asked = {"hopper", "shanon", "lovelase"};
  const Tensor q = letters(asked);
  const Attended exact = attend(Boxcar::bandwidth(0.5f), q, k, v), near = attend(Boxcar::bandwidth(1.5f), q, k, v);
  const Attended soft = attend(Gaussian::bandwidth(1), q, k, v), all = attend(Constant{}, q, k, v);
  const Tensor maps = reshape(stack({exact.weights.matrix(), near.weights.matrix(), soft.weights.matrix()}), {3, 3, 5});
  std::vector<std::vector<std::string>> rows;
  for (int64_t i = 0; i < 3; ++i)
    rows.push_back({asked[static_cast<size_t>(i)], year(exact, i), year(near, i), year(soft, i), year(all, i)});
  page.table({{"query", "查询"},
              {"exact", "精确"},
              {"radius 1.5", "半径 1.5"},
              {"Gaussian, $h = 1$", "高斯，$h = 1$"},
              {"constant", "常数"}},
             rows);
  page.draw(
      "database",
      heatmaps(maps, "", "", {"exact", "boxcar 1.5", "Gaussian 1"},
               {.colours = {.low = 0, .high = 1}, .x_tokens = kNames, .y_tokens = asked, .cell_values = true}),
      {"One table asked in three ways. The two misspelt names find nothing exactly, and their owners approximately.",
       "同一张表，三种问法。两个拼错的名字精确查找一无所获，近似查找则找到了本人。"});
  page.claim(year(exact, 0) == "1906.0" && exact.empty_rows == 2 && exact.output.at({1, 0}) == 0,
             {"Exact look-up is one-hot where the key exists, and empty, not an average, where it does not.",
              "键存在时精确查找是独热的；不存在时结果为空，而不是平均值。"},
             fmt::format("f(hopper) = {}, empty rows: {}", year(exact, 0), exact.empty_rows));
  page.claim(year(near, 1) == "1916.0" && year(near, 2) == "1815.0" && soft.weights.row(0, 0, 1).at({3}) > 0.9 &&
                 soft.weights.row(0, 0, 2).at({2}) > 0.9,
             {"A kernel finds both misspelt names.", "核评分找到了两个拼错的名字。"},
             fmt::format("weight of shannon for \"shanon\" {:.3f}, of lovelace for \"lovelase\" {:.3f}",
                         soft.weights.row(0, 0, 1).at({3}), soft.weights.row(0, 0, 2).at({2})));
}

void kinds_of_weights(Page& page) {
  page.heading({"What weights may be", "权重的几种约束"});
  page.say(
      {"The sum $\\sum_i \\alpha_i v_i$ makes sense under several rules. Weights that are only non-negative reach the cone of the values; "
       "weights that also sum to one stay inside their convex hull, which is the usual case; one weight of 1 is a look-up; all equal is "
       "average pooling. Any non-negative similarity $K(q, k)$ can be divided by its sum, and that is a softmax: the "
       "score is $\\log K$. Choosing one key by lot, with the weights as probabilities, has no derivative; models that do so are trained by "
       "reinforcement learning. A weighted mean has one, and is what this chapter stays with.",
       "求和 $\\sum_i \\alpha_i v_i$ 在几种约束下都有意义。权重只要求非负时，输出落在值张成的锥内；再要求和为一，输出就在凸包之内，这是通常"
       "的情形；只有一个权重为 1 是查找；全部相等是平均汇聚。任何非负的相似度 $K(q, k)$ 都可以除以其总和，而这其实就是 softmax：评分就是 "
       "$\\log K$。若以权重为概率抽取一个键，就不可导，这样的模型要用强化学习来训练；加权平均可导，本章用的都是它。"});
  page.formula("\\frac{K(q, k_i)}{\\sum_j K(q, k_j)} = \\mathrm{softmax}(\\log K(q, k_i))");
  const Rng rng = Rng(page.seed()).at("kinds");
  const Tensor q = normal({20, 3}, rng.at("q")), k = normal({30, 3}, rng.at("k")), v = normal({30, 1}, rng.at("v"));
  double worst = 0;
  const Attended gaussian = attend(Gaussian{}, q, k, v);
  for (int64_t i = 0; i < 20; ++i) {
    double weighted = 0, total = 0;
    for (int64_t j = 0; j < 30; ++j) {
      double square = 0;
      for (int64_t f = 0; f < 3; ++f) square += std::pow(static_cast<double>(q.at({i, f})) - k.at({j, f}), 2);
      total += std::exp(-square / 2), weighted += std::exp(-square / 2) * v.ptr()[j];
    }
    worst = std::max(worst, std::abs(weighted / total - gaussian.output.at({i, 0})));
  }
  page.claim(worst < 1e-5,
             {"Dividing a Gaussian kernel by its sum is softmax of its logarithm.",
              "高斯核除以其总和，等于对其对数做 softmax。"},
             "largest difference " + tiny(worst));
}

}  // namespace qkv::labs::cues
