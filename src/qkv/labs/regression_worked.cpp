// Lab 10.2, first part: the notes' example of three people, attend, the batched product, and what slips in formulas
// would do.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/labs/regression.h"
#include "qkv/labs/show.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/matmul.h"
#include "qkv/ops/shape.h"
#include "qkv/ops/softmax.h"

namespace qkv::labs::regression {
namespace {

const Sample kPeople = {{51, 56, 58}, {40, 43, 48}};  // waist in cm, body mass in kg

Vector softmax_of(const Vector& scores) {
  const double top = *std::max_element(scores.begin(), scores.end());
  Vector out;
  double total = 0;
  for (double s : scores) total += std::exp(s - top);
  for (double s : scores) out.push_back(std::exp(s - top) / total);
  return out;
}

double pooled(const Vector& weights, const Vector& y) {
  double f = 0;
  for (size_t i = 0; i < y.size(); ++i) f += weights[i] * y[i];
  return f;
}

double largest_difference(std::span<const float> a, std::span<const float> b) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(double{a[i]} - b[i]));
  return worst;
}

}  // namespace

void three_points_step(Page& page) {
  page.heading({"Three people, one query", "三个人，一个查询"});
  page.say(
      {"Waists of 51, 56 and 58 cm are the keys, the body masses of these people, 40, 43 and 48 kg, the values. What is the mass of someone "
       "with a waist of 57? A first answer is the mean of the two neighbours, 45.5 kg; it never looks at the first person. Attention looks "
       "at everybody: the score says how near a key is, softmax turns scores into attention weights, and the answer is the weighted mean of "
       "the values.",
       "腰围 51、56、58 厘米是键，对应的体重 40、43、48 公斤是值。腰围 57 的人有多重？最直接的回答是取两个相邻值的平均 45.5 公斤，但第一个"
       "人完全没有用上。注意力汇聚会看所有人：注意力分数表示键离查询有多近，softmax 把分数变成注意力权重，答案就是值的加权平均。"});
  page.formula("f(q) = \\sum_i \\alpha(q, k_i) v_i, \\quad \\alpha(q, k_i) = \\softmax_i(-\\frac{1}{2} (q - k_i)^2)");
  const Vector scores = {-18, -0.5, -0.5}, alpha = softmax_of(scores);
  const KernelRegression people = model(kPeople);
  const double f = people.predict(Points::of({57})).values.values[0];
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < 3; ++i)
    rows.push_back({fmt::format("{}", kPeople.x[i]), fmt::format("{}", kPeople.y[i]), rounded(scores[i], 1),
                    fmt::format("{:.8g}", alpha[i])});
  page.table({{"waist $k_i$, cm", "腰围 $k_i$（厘米）"},
              {"body mass $v_i$, kg", "体重 $v_i$（公斤）"},
              {"score", "注意力分数"},
              {"attention weight", "注意力权重"}},
             rows);
  page.claim(std::abs(f - 45.49999993) < 1e-8 && std::abs(pooled(alpha, kPeople.y) - f) < 1e-12,
             {"A waist of 57 gives 45.5, with weights of about 0, 1/2 and 1/2.",
              "腰围 57 的预测值是 45.5，三个注意力权重约为 0、1/2、1/2。"},
             fmt::format("f(57) = {:.8f}", f));

  Vector x, narrow, wide;
  for (int i = 0; i <= 120; ++i) x.push_back(49 + i * 0.1);
  narrow = people.predict(Points::of(x)).values.values;
  wide = people.with({.bandwidth = {3}}).predict(Points::of(x)).values.values;
  LineStyle points = line_style("ko"), query = line_style("ro");
  points.dash = query.dash = Dash::none;
  page.draw(
      "three-people",
      curves({{"width 1", x, narrow, line_style("b--")},
              {"width 3", x, wide, line_style("m-.")},
              {"people", kPeople.x, kPeople.y, points},
              {"query 57", {57}, {f}, query}},
             {.label = "waist, cm", .low = 49, .high = 61}, {.label = "body mass, kg", .low = 38, .high = 50}),
      {"Every waist is a query. With width 1 the answer steps from one person to the next; with width 3 everyone has a say everywhere.",
       "每个腰围都是一个查询。宽度为 1 时，预测从一个人跳到另一个人；宽度为 3 时，每个人处处都有份量。"});
}

void attend_step(Page& page) {
  page.heading({"Kernel regression is attention", "核回归就是注意力"});
  page.say(
      {"The library has two ways to this number: `KernelRegression` sums kernels in double precision, `attend` is the attention of the "
       "rest of the chapter, here with the Gaussian scorer. On the fifty points and fifty queries of this section both give the same curve "
       "and the same weights; what follows holds for either.",
       "程序库有两条路得到这个数：`KernelRegression` 以双精度对核求和；`attend` 就是本章其余部分使用的注意力，这里配上高斯评分函数。对本节"
       "的五十个训练点和五十个查询，两者给出同样的曲线和同样的注意力权重，所以下面的结论对两者都成立。"});
  const Sample s = page_sample(page);
  const KernelRegression nadaraya = model(s);
  const Tensor expected = column(nadaraya.predict(Points::of(test_x())).values.values);
  const Attended pool = attend(Gaussian{}, column(test_x()), column(s.x), column(s.y));
  const double curve = largest_difference(pool.output.data(), expected.data());
  const double map = largest_difference(pool.weights.matrix().data(), nadaraya.weights(Points::of(test_x())).data());
  page.print("attend(Gaussian{}, x_test, x_train, y_train).output");
  page.claim(curve < 1e-5 && map < 1e-6,
             {"Nadaraya-Watson regression and `attend` with the Gaussian scorer agree.",
              "Nadaraya-Watson 回归与使用高斯评分函数的 `attend` 结果一致。"},
             fmt::format("largest difference: output {:.1e}, weights {:.1e}", curve, map));
  double low = 1, off = 0;
  const Tensor weights = pool.weights.matrix().viewed({50, 50});
  for (int64_t i = 0; i < 50; ++i) {
    double total = 0;
    for (int64_t j = 0; j < 50; ++j) total += weights.at({i, j}), low = std::min(low, double{weights.at({i, j})});
    off = std::max(off, std::abs(total - 1));
  }
  page.claim(low >= 0 && off < 1e-5,
             {"For every query the weights are not negative and sum to 1.", "对每个查询，注意力权重非负且总和为 1。"},
             fmt::format("smallest {:.1e}, sums within {:.0e} of 1", low, std::max(off, 1e-7)));
}

namespace {

/// The book's arrays for leave-one-out training: every point is a query to the 49 others.
void leave_one_out_shapes(Page& page) {
  page.say(
      {"So does the book train, with arrays made of copies. `repeat_interleave` repeats every element where it stands, `repeat` (here `tile`) "
       "the whole; the first makes a row of equal queries, the second a row of all keys. Without the diagonal, where a point would see "
       "itself, a row of 50 keys has 49 left:",
       "书中就是这样训练的，数组由复制得来。`repeat_interleave` 把每个元素就地重复，`repeat`（这里叫 `tile`）把整体重复：前者给出一行相同的"
       "查询，后者给出一行全部的键。去掉对角线（那里是点看见自己），一行 50 个键剩下 49 个："});
  const Sample s = page_sample(page);
  const Tensor x = column(s.x), y = column(s.y);
  const Tensor queries = reshape(repeat_interleave(x, 50, 0), {50, 50}), all = tile(reshape(x, {1, 50}), {50, 1});
  Tensor keys = Tensor::empty({50, 49}), values = Tensor::empty({50, 49});
  for (int64_t i = 0, at = 0; i < 50; ++i)
    for (int64_t j = 0; j < 50; ++j)
      if (j != i) keys.mutable_ptr()[at] = all.at({i, j}), values.mutable_ptr()[at++] = y.ptr()[j];
  const Tensor distance = sub(slice(queries, 1, 0, 49), keys), weights = softmax(scale(mul(distance, distance), -0.5f));
  const Tensor f = matmul(reshape(weights, {50, 1, 49}), reshape(values, {50, 49, 1}));
  const auto row = [](const char* name, const Tensor& t) { return fmt::format("\n{:<26}{}", name, t.shape().str()); };
  const Tensor two({2}, {1, 2});
  page.print(fmt::format("repeat_interleave([1, 2], 3) = {}\nrepeat([1, 2], 3)            = {}",
                         shown(repeat_interleave(two, 3, 0)), shown(tile(two, {3}))) +
             row("x, as a column", x) + row("queries, every x 50 times", queries) + row("all keys in every row", all) +
             row("keys without the diagonal", keys) + row("values likewise", values) + "\n" +
             fmt::format("weights x values          (50, 1, 49) x (50, 49, 1) -> {}", f.shape().str()));
  const Tensor masked = attend(Gaussian{}, x, x, y, Mask::drop(eye(50))).output;
  const double off = largest_difference(f.data(), masked.data());
  page.claim(off < 1e-5,
             {"Nothing need be copied: attention with the diagonal masked gives the same 50 answers.",
              "其实什么都不必复制：掩蔽对角线的注意力给出同样的 50 个答案。"},
             fmt::format("largest difference {:.1e}", off));
}

}  // namespace

void batched_product_step(Page& page) {
  page.heading({"Weighted sums as a batched product", "用批量矩阵乘法计算加权和"});
  page.say(
      {"A query's answer is a row of weights times a column of values. With many queries, each with keys of its own (as in leave-one-out "
       "training), these are many small products at once: shapes $(n, a, b)$ and $(n, b, c)$ give $(n, a, c)$.",
       "一个查询的答案，是一行注意力权重乘以一列值。若有许多查询，且每个查询有自己的键（如留一法训练），就是同时做许多个小矩阵乘法：形状 "
       "$(n, a, b)$ 与 $(n, b, c)$ 得到 $(n, a, c)$。"});
  const Tensor shapes = matmul(ones({2, 1, 4}), ones({2, 4, 6}));
  const Tensor product = matmul(full({2, 1, 10}, 0.1f), arange(0, 20).viewed({2, 10, 1}));
  page.print(fmt::format("(2, 1, 4) x (2, 4, 6) -> ({}, {}, {})\n[[[{:.1f}]], [[{:.1f}]]]", shapes.size(0),
                         shapes.size(1), shapes.size(2), product.ptr()[0], product.ptr()[1]));
  page.fact({"Ten equal weights of 0.1 average the values 0 ... 9, and 10 ... 19.",
             "十个相等的权重 0.1 对 0…9 和 10…19 求平均。"},
            fmt::format("{:.4f} and {:.4f}", product.ptr()[0], product.ptr()[1]));
  leave_one_out_shapes(page);
}

void errata_step(Page& page) {
  page.heading({"If the formula is copied with a slip", "公式抄错会怎样"});
  page.say(
      {"Notes are written in haste. Each slip below was found in notes on this section; taken at its word, each gives a different "
       "estimator, and working out which one is a good exercise. All are tried on the three people, query 57, $w = 1$.",
       "笔记难免写得匆忙。下面每处笔误都来自关于本节的笔记；如果照字面执行，每处都会变成另一个估计量，想清楚它变成了什么是很好的练习。这里"
       "都用三个人、查询 57、$w = 1$ 来试。"});
  const Vector &x = kPeople.x, &y = kPeople.y;
  const auto kernel = [&](double q, size_t i) { return std::exp(-0.5 * (q - x[i]) * (q - x[i])); };
  const double total = kernel(57, 0) + kernel(57, 1) + kernel(57, 2), average = mean(y);
  const double no_minus = pooled(softmax_of({18, 0.5, 0.5}), y);
  // exp(-(x - x_i) w / 2)^2 = exp(-(x - x_i) w): the query's part is a factor of every weight.
  const auto square_outside = [&](double q) { return pooled(softmax_of({x[0] - q, x[1] - q, x[2] - q}), y); };
  double i_below = 0, no_value = 0, value_below = 0;
  for (size_t i = 0; i < 3; ++i) {
    i_below += kernel(57, i) / (3 * kernel(57, i)) * y[i];
    no_value += kernel(57, i) / total;
    value_below += kernel(57, i) / (total * y[i]);
  }
  const auto same = [](const std::string& s) { return Text{s, s}; };
  const auto number = [&](double v) { return same(fmt::format("{:.4g}", v)); };
  page.word_table({{"slip", "笔误"}, {"$f(57)$", "$f(57)$"}, {"right reading", "正确写法"}},
                  {{same("softmax(½(q − k)²), 003"), number(no_minus), same("softmax(−½(q − k)²)")},
                   {same("f(x) = 1/n, 000"), number(1.0 / 3), same("f(x) = (1/n) Σ yᵢ")},
                   {same("exp(−½(x − xᵢ)w)², 000"), number(square_outside(57)), same("exp(−½((x − xᵢ)w)²)")},
                   {same("Σⱼ exp(−½(x − xᵢ)²), 000, 002"), number(i_below), same("Σⱼ exp(−½(x − xⱼ)²)")},
                   {{"yᵢ in the denominator, 000", "yᵢ 写进分母，000"},
                    number(value_below),
                    {"yᵢ beside the fraction", "yᵢ 写在分式旁边"}},
                   {{"no factor yᵢ, 002", "漏掉因子 yᵢ，002"}, number(no_value), same("… yᵢ")}});
  page.claim(std::abs(no_minus - 40) < 1e-6,
             {"Without the minus sign the farthest person gets all the attention, and the answer is 40.0.",
              "少了负号，最远的人得到全部注意力，答案变成 40.0。"},
             fmt::format("f(57) = {:.6f}", no_minus));
  page.claim(std::abs(1.0 / 3 - average) > 1,
             {"$1/n$ alone is no average: it forgets what is averaged.", "只写 $1/n$ 不是平均：漏掉了被平均的东西。"},
             fmt::format("{:.3f} in place of {:.3f}", 1.0 / 3, average));
  page.claim(
      std::abs(square_outside(57) - square_outside(51)) < 1e-12,
      {"With the square outside, the query cancels from the softmax: every query gets the same answer, and the largest key wins.",
       "平方写在外面时，查询在 softmax 中被约掉：所有查询得到同一个答案，最大的键胜出。"},
      fmt::format("f(57) = {:.4f}, f(51) = {:.4f}", square_outside(57), square_outside(51)));
  page.claim(std::abs(i_below - average) < 1e-12,
             {"With $x_i$ in the denominator's sum too, every weight is $1/n$: this is average pooling again.",
              "分母的求和中也写 $x_i$，每个权重都成了 $1/n$：又回到平均汇聚。"},
             fmt::format("f(57) = {:.4f}, the mean is {:.4f}", i_below, average));
  page.claim(std::abs(no_value - 1) < 1e-12,
             {"Without $y_i$ the weights alone are summed: always 1.", "漏掉 $y_i$ 就只对权重求和：永远等于 1。"},
             fmt::format("the weights sum to {:.6f}", no_value));
  page.claim(value_below < 1 / 40.0,
             {"With $y_i$ below the line it is a mean of reciprocals, one over a body mass.",
              "把 $y_i$ 写进分母，得到的是倒数的平均，即体重分之一。"},
             fmt::format("f(57) = {:.5f}, 1/45.5 = {:.5f}", value_below, 1 / 45.5));
  page.say(
      {"Smaller ones: a score is $a$, the weight that softmax makes of it is $\\alpha$ (003); $y_y$ is $y_i$ (002); the vectors of fifty "
       "numbers have shape (50), not (1, 50), and $w$ is one number, not a matrix of 50 x 49, which would have 2,450 parameters and none "
       "for a new query (001); and the estimator is named after Nadaraya and Watson, both of 1964.",
       "还有一些小处：分数记作 $a$，经 softmax 得到的权重记作 $\\alpha$（003）；$y_y$ 应为 $y_i$（002）；五十个数的向量形状是 (50) 而不是 "
       "(1, 50)，$w$ 是一个标量，不是 50 x 49 的矩阵——那样会有 2450 个参数，而对新的查询一个也用不上（001）；这个估计量以 Nadaraya 和 "
       "Watson（都在 1964 年）命名，不是 Waston。"});
}

}  // namespace qkv::labs::regression
