// Lab 10.3: why the score is divided by the square root of d, the notes' table of measures, and the slips of the note.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/labs/scoring.h"
#include "qkv/labs/show.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/matmul.h"
#include "qkv/ops/reduce.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/tape.h"

namespace qkv::labs::scoring {
namespace {

constexpr int64_t kRows = 64;

struct Sharpness {
  double keys;      // mean exp(entropy) of a row
  double gradient;  // median over the rows of |df/dq|
};

// Queries, each with 16 random keys of its own and random scalar values.
struct Draw {
  Tensor q, k, v;
  Draw(int64_t d, const Rng& rng)
      : q(parameter(normal({kRows, 1, d}, rng.at("q")))),
        k(normal({kRows, 16, d}, rng.at("k"))),
        v(normal({kRows, 16, 1}, rng.at("v"))) {}
};

Sharpness sharpness(const Draw& draw, float scale) {
  const int64_t d = draw.q.size(-1);
  Tape tape;
  const Attended a = attend(ScaledDot{.scale = scale}, draw.q, draw.k, draw.v);
  tape.backward(sum(a.output));
  const Tensor gradient = tape.grad(draw.q), entropy = a.weights.entropy();
  Sharpness result{0, 0};
  std::vector<double> lengths;
  for (int64_t r = 0; r < kRows; ++r) {
    lengths.push_back(length_of(gradient.part(r * d, {d})));
    result.keys += std::exp(entropy.ptr()[r]) / kRows;
  }
  std::nth_element(lengths.begin(), lengths.begin() + kRows / 2, lengths.end());
  result.gradient = lengths[kRows / 2];
  return result;
}

// The variance of q . k over independent pairs.
double variance(int64_t d, const Rng& rng) {
  const int64_t pairs = std::clamp<int64_t>(262144 / d, 512, 8192);
  const Tensor products = sum(mul(normal({pairs, d}, rng.at("a")), normal({pairs, d}, rng.at("b"))), -1);
  double square = 0;
  for (float x : products.data()) square += static_cast<double>(x) * x / static_cast<double>(pairs);
  return square;
}

Tensor measure_keys() { return Tensor({3, 2}, {51, 70, 56, 82, 56, 82}); }
Tensor measure_values() { return Tensor({3, 2}, {40, 155, 43, 159, 48, 162}); }
Tensor measure_queries() { return Tensor({2, 2}, {57, 83, 55, 76}); }

// By the mean and the standard deviation of the keys, each column for itself.
Tensor standardised(const Tensor& x) {
  const Tensor k = measure_keys();
  Tensor out = Tensor::empty(x.shape());
  for (int64_t f = 0; f < 2; ++f) {
    double mean = 0, square = 0;
    for (int64_t i = 0; i < 3; ++i) mean += k.at({i, f}) / 3.0;
    for (int64_t i = 0; i < 3; ++i) square += std::pow(k.at({i, f}) - mean, 2) / 3;
    for (int64_t i = 0; i < x.size(0); ++i)
      out.mutable_ptr()[2 * i + f] = static_cast<float>((x.at({i, f}) - mean) / std::sqrt(square));
  }
  return out;
}

struct Answer {
  Tensor weights, output, gradient;  // (2, 3), (2, 2), (2, 2)
};

Answer ask(const Tensor& q, const Tensor& k, float scale) {
  const Tensor leaf = parameter(q.copied());
  Tape tape;
  const Attended a = attend(ScaledDot{.scale = scale}, leaf, k, measure_values());
  tape.backward(sum(a.output));
  return {a.weights.matrix().viewed({2, 3}), a.output.detached(), tape.grad(leaf)};
}

struct Answers {
  Answer raw, scaled, standard;
};

Answers three_answers() {
  const Tensor q = measure_queries(), k = measure_keys();
  const float root = 1 / std::sqrt(2.0f);
  return {ask(q, k, 1), ask(q, k, root), ask(standardised(q), standardised(k), root)};
}

bool close(const Tensor& a, const Tensor& b, double tolerance) { return largest_difference(a, b) <= tolerance; }

}  // namespace

void square_root_of_d(Page& page) {
  page.heading({"Why divide by the square root of d", "为什么要除以 d 的平方根"});
  page.say(
      {"If the elements of $q$ and $k$ are independent with mean 0 and variance 1, then $q^\\top k$ is a sum of $d$ products of variance "
       "1: it has variance $d$. Scores that grow like $\\sqrt{d}$ push softmax into the corner where one key takes all, and there the "
       "gradient is gone (it is a covariance under the weights, lab 10.1). Dividing by $\\sqrt{d}$ keeps the variance at 1. Dividing by "
       "$d$, as the note writes, overdoes it: the variance becomes $1/d$ and the weights an average. Below 64 queries, each with 16 keys "
       "of its own.",
       "若 $q$ 与 $k$ 的元素独立、均值为 0、方差为 1，则 $q^\\top k$ 是 $d$ 个方差为 1 的乘积之和，方差为 $d$。分数随 $\\sqrt{d}$ 增长，会"
       "把 softmax 推到一个键独占的角落，梯度在那里消失（它是权重分布下的协方差，见实验 10.1）。除以 $\\sqrt{d}$ 使方差保持为 1。像笔记那样"
       "除以 $d$ 就过头了：方差变成 $1/d$，权重成了平均。下面是 64 个查询，每个有自己的 16 个键。"});
  const Rng rng = Rng(page.seed()).at("scale");
  std::vector<double> widths, keys[3], gradients[3];
  std::vector<std::vector<std::string>> rows;
  double low = 1e9, high = 0;
  for (int64_t d : {2, 8, 32, 128, 512, 2048}) {
    const float root = 1 / std::sqrt(static_cast<float>(d)), scales[3] = {1, root, root * root};
    const Draw draw(d, rng.at(static_cast<uint64_t>(d)));
    const double var = variance(d, rng.at(static_cast<uint64_t>(d)).at("pairs"));
    low = std::min(low, var / static_cast<double>(d)), high = std::max(high, var / static_cast<double>(d));
    rows.push_back({std::to_string(d), rounded(var, 1)});
    widths.push_back(static_cast<double>(d));
    for (int s = 0; s < 3; ++s) {
      const Sharpness found = sharpness(draw, scales[s]);
      keys[s].push_back(found.keys), gradients[s].push_back(found.gradient);
      rows.back().push_back(rounded(found.keys, 2));
    }
    for (int s = 0; s < 2; ++s) rows.back().push_back(fmt::format("{:.2g}", gradients[s].back()));
  }
  page.table({{"$d$", "$d$"},
              {"$\\mathrm{Var}(q^\\top k)$", "$\\mathrm{Var}(q^\\top k)$"},
              {"keys: $q^\\top k$", "键数：$q^\\top k$"},
              {"$/ \\sqrt{d}$", "$/ \\sqrt{d}$"},
              {"$/ d$", "$/ d$"},
              {"median gradient: $q^\\top k$", "梯度中位数：$q^\\top k$"},
              {"$/ \\sqrt{d}$", "$/ \\sqrt{d}$"}},
             rows);
  Figure figure;
  figure.cols = 2;
  const Axis x{.label = "d", .scale = AxisScale::log};
  figure.panels = {
      {Curves{{{"q·k", widths, keys[0]}, {"q·k / √d", widths, keys[1]}, {"q·k / d", widths, keys[2]}}},
       "",
       x,
       {.label = "effective keys of 16", .low = 0, .high = 17}},
      {Curves{{{"q·k", widths, gradients[0]}, {"q·k / √d", widths, gradients[1]}, {"q·k / d", widths, gradients[2]}}},
       "",
       x,
       {.label = "median gradient of q", .scale = AxisScale::log}}};
  page.draw(
      "scaling", figure,
      {"Left: how many keys share the weight. Right: how much gradient reaches the query. Without scaling it first grows with the "
       "length of the keys and then collapses; only the square root keeps both where they were.",
       "左：有多少个键分享权重。右：有多少梯度到达查询。不缩放时，梯度先随键的长度增大，然后崩塌；只有除以平方根能使两者保持不变。"});
  page.claim(low > 0.75 && high < 1.25, {"The variance of the dot product is $d$.", "点积的方差是 $d$。"},
             fmt::format("variance / d from {:.2f} to {:.2f}", low, high));
  page.claim(keys[0].back() < 1.5 && keys[1].back() > 8 && keys[2].back() > 15.5,
             {"At $d = 2048$ the raw score chooses one key, the scaled one weighs, division by $d$ averages.",
              "$d = 2048$ 时，原始分数只选一个键，缩放后的分数仍在权衡，除以 $d$ 则变成平均。"},
             fmt::format("effective keys of 16: raw {:.2f}, by √d {:.2f}, by d {:.2f}", keys[0].back(), keys[1].back(),
                         keys[2].back()));
  page.claim(gradients[0].back() < 0.01 * gradients[0].front() && gradients[1].back() > 0.2 * gradients[1].front(),
             {"The raw score loses its gradient as $d$ grows, the scaled one keeps it.",
              "随着 $d$ 增大，原始分数失去梯度，缩放后的分数则保持。"},
             fmt::format("median gradient from d = 2 to 2048: raw {:.2g} to {:.2g}, scaled {:.2f} to {:.2f}",
                         gradients[0].front(), gradients[0].back(), gradients[1].front(), gradients[1].back()));
}

void measures(Page& page) {
  page.heading({"Waist and chest, body mass and height", "腰围与胸围，体重与身高"});
  page.say(
      {"The note's second table has keys of two features (waist, chest), values of two (body mass, height), and two queries. The third key "
       "repeats the second: equal keys share their weight, and their values are averaged. The dot product is taken of the raw centimetres:",
       "笔记的第二张表：键有两个特征（腰围、胸围），值也有两个（体重、身高），并有两个查询。第三个键与第二个相同：相同的键平分权重，它们的"
       "值被平均。直接对原始厘米数做点积："});
  const Tensor q = measure_queries(), k = measure_keys();
  const Tensor products = matmul(q, k, Transpose::no, Transpose::yes);
  page.print("Q Kᵀ =\n" + shown(products));
  const Answers answers = three_answers();
  const Answer &raw = answers.raw, &scaled = answers.scaled, &standard = answers.standard;
  std::vector<std::vector<Text>> rows;
  const std::pair<Text, const Answer*> treatments[] = {
      {{"raw", "原始"}, &raw},
      {{"divided by $\\sqrt{2}$", "除以 $\\sqrt{2}$"}, &scaled},
      {{"standardised, $/ \\sqrt{2}$", "标准化后 $/ \\sqrt{2}$"}, &standard}};
  for (const auto& [name, a] : treatments)
    for (int64_t i = 0; i < 2; ++i) {
      const std::string cells[] = {fmt::format("({}, {})", q.at({i, 0}), q.at({i, 1})),
                                   shown(a->weights.part(3 * i, {3}), 4), shown(a->output.part(2 * i, {2}), 4),
                                   rounded(length_of(a->gradient.part(2 * i, {2})), 4)};
      rows.push_back({name});
      for (const std::string& cell : cells) rows.back().push_back({cell, cell});
    }
  page.word_table({{"scores", "分数"},
                   {"query", "查询"},
                   {"weights", "权重"},
                   {"output", "输出"},
                   {"gradient with respect to $q$", "对 $q$ 的梯度"}},
                  rows);
  const Tensor maps =
      stack({treatments[0].second->weights, treatments[1].second->weights, treatments[2].second->weights});
  page.draw("measures",
            heatmaps(maps, "Keys", "Queries", {"raw", "/ √2", "standardised"},
                     {.colours = {.low = 0, .high = 1},
                      .x_tokens = {"51,70", "56,82", "56,82"},
                      .y_tokens = {"57,83", "55,76"},
                      .cell_values = true}),
            {"Raw and scaled give both queries the same answer; standardised, the smaller person is seen.",
             "原始和缩放的分数对两个查询给出同样的答案；标准化之后，较小的那位才被看见。"});
  const Tensor half({2, 3}, {0, 0.5f, 0.5f, 0, 0.5f, 0.5f}), twice({2, 2}, {45.5f, 160.5f, 45.5f, 160.5f});
  page.claim(close(raw.weights, half, 1e-6) && close(scaled.weights, half, 1e-6) && close(raw.output, twice, 1e-4) &&
                 close(scaled.output, twice, 1e-4),
             {"Raw and scaled: weights 0, 1/2, 1/2 and output (45.5, 160.5) for both queries.",
              "原始与缩放：两个查询的权重都是 0、1/2、1/2，输出都是 (45.5, 160.5)。"},
             "largest difference of a weight " +
                 tiny(std::max(largest_difference(raw.weights, half), largest_difference(scaled.weights, half))));
  const Tensor weights({2, 3}, {0.02375f, 0.48812f, 0.48812f, 0.35730f, 0.32135f, 0.32135f}),
      output({2, 2}, {45.36936f, 160.36936f, 43.53482f, 158.53482f});
  page.claim(close(standard.weights, weights, 1e-5) && close(standard.output, output, 1e-4),
             {"Standardised, the two queries get different answers.", "标准化之后，两个查询得到不同的答案。"},
             fmt::format("outputs ({:.4f}, {:.4f}) and ({:.4f}, {:.4f})", standard.output.ptr()[0],
                         standard.output.ptr()[1], standard.output.ptr()[2], standard.output.ptr()[3]));
}

void saturation(Page& page) {
  page.heading({"What the table teaches", "这张表的教训"});
  const Tensor q = measure_queries(), k = measure_keys();
  page.say(
      {"The scores of the second and third key lie 1281 above the first, and still 906 after the division. Softmax is saturated, both "
       "queries get the same answer, and nothing can be learned, since the gradient is 0. The square root of $d$ cures scores that grew "
       "with the dimension; these grew with the unit of measurement. Standardising the features by the keys' mean and deviation is the "
       "cure. The next figure divides by more and more: between $10^2$ and $10^4$ the gradient wakes up.",
       "第二、三个键的分数比第一个高 1281，除以 $\\sqrt{2}$ 之后仍高 906。softmax 饱和，两个查询得到同样的答案，而且什么也学不到，因为梯度"
       "为 0。$\\sqrt{d}$ 医治的是随维度增长的分数；这里的分数是因计量单位而大。对症的办法是用键的均值和标准差把特征标准化。下一幅图用越来"
       "越大的数去除：在 $10^2$ 与 $10^4$ 之间，梯度才苏醒过来。"});
  std::vector<double> divisor, awake[2];
  for (double e = 0; e <= 6.01; e += 0.1) {
    const Answer a = ask(q, k, static_cast<float>(std::pow(10, -e)));
    divisor.push_back(std::pow(10, e));
    for (int64_t i = 0; i < 2; ++i) awake[i].push_back(length_of(a.gradient.part(2 * i, {2})));
  }
  page.draw(
      "measures-gradient",
      curves({{"query (57, 83)", divisor, awake[0]}, {"query (55, 76)", divisor, awake[1]}},
             {.label = "scores divided by", .scale = AxisScale::log}, {.label = "gradient of q"}),
      {"The gradient of the raw table against the divisor: the square root of 2 is at the far left, where there is none.",
       "原始表格的梯度随除数的变化：$\\sqrt{2}$ 在最左端，那里没有梯度。"});
  const auto [raw, scaled, standard] = three_answers();
  page.claim(length_of(raw.gradient) < 1e-3 && length_of(scaled.gradient) < 1e-3 && length_of(standard.gradient) > 0.1,
             {"Scaling alone leaves the gradient at 0; standardising brings it back.",
              "仅靠缩放，梯度仍为 0；标准化使它恢复。"},
             fmt::format("gradient: raw {}, scaled {}, standardised {:.2f}", tiny(length_of(raw.gradient)),
                         tiny(length_of(scaled.gradient)), length_of(standard.gradient)));
  const Attended gaussian = attend(Gaussian{}, q, k, measure_values());
  page.claim(
      close(gaussian.weights.row(0, 0, 1), Tensor({3}, {2.7647e-4f, 0.499862f, 0.499862f}), 1e-5) &&
          std::abs(gaussian.output.at({1, 0}) - 45.49848f) < 1e-3,
      {"A Gaussian score of width 1 sees differences, not products, and is not quite saturated for the second query.",
       "宽度为 1 的高斯评分看的是差而不是积，对第二个查询尚未完全饱和。"},
      fmt::format("weight of the first key {:.1e}, output ({:.5f}, {:.5f})", gaussian.weights.row(0, 0, 1).at({0}),
                  gaussian.output.at({1, 0}), gaussian.output.at({1, 1})));
}

void errata(Page& page) {
  page.heading({"Slips of the note, and what they would do", "笔记中的笔误及其后果"});
  const Tensor literal =
      matmul(matmul(measure_queries(), measure_keys(), Transpose::no, Transpose::yes), measure_values());
  page.say(
      {"The note that this lab grew from has a few slips. The lab follows the right reading; here is what the written one would give.",
       "本实验源自的那篇笔记有几处笔误。实验采用正确的读法；下面列出照字面会得到什么。"});
  page.word_table({{"as written", "原文"}, {"meant", "应为"}, {"consequence", "后果"}},
                  {{{"$\\mathrm{softmax}(\\frac{1}{2} (q - k)^2)$", "$\\mathrm{softmax}(\\frac{1}{2} (q - k)^2)$"},
                    {"$\\mathrm{softmax}(-\\frac{1}{2} (q - k)^2)$", "$\\mathrm{softmax}(-\\frac{1}{2} (q - k)^2)$"},
                    {"the farthest key wins: 40.0 instead of 45.5", "最远的键取胜：得 40.0 而不是 45.5"}},
                   {{"divide by $d_k$", "除以 $d_k$"},
                    {"by $\\sqrt{d_k}$", "除以 $\\sqrt{d_k}$"},
                    {"at large $d$ nearly an average (figure above)", "$d$ 大时几乎成为平均（见前图）"}},
                   {{"$Q K^\\top V$", "$Q K^\\top V$"},
                    {"$\\mathrm{softmax}(Q K^\\top / \\sqrt{d}) V$", "$\\mathrm{softmax}(Q K^\\top / \\sqrt{d}) V$"},
                    {"a body mass of " + rounded(literal.at({0, 0}), 0) + " kg, not an average of the values",
                     "体重 " + rounded(literal.at({0, 0}), 0) + " 公斤，不是值的平均"}},
                   {{"softmax written $a(q, k)$", "softmax 记作 $a(q, k)$"},
                    {"$\\alpha(q, k)$; $a$ is the score", "$\\alpha(q, k)$；$a$ 是分数"},
                    {"score and weight confused", "分数与权重混淆"}},
                   {{"(2, 2, 4): \"two dimensions, four lines, three columns\"", "(2, 2, 4)：“两维、四行、三列”"},
                    {"2 batch elements, 2 queries, 4 keys", "2 个批量元素、2 个查询、4 个键"},
                    {"lengths would be laid along the wrong axis", "有效长度会沿错误的轴展开"}},
                   {{"values with five axes", "五个轴的值"},
                    {"$(B, m, v)$", "$(B, m, v)$"},
                    {"the batched product takes three", "批量矩阵乘法只接受三个轴"}},
                   {{"`squeeze(1)` on the output", "对输出做 `squeeze(1)`"},
                    {"keep $(B, n, v)$", "保持 $(B, n, v)$"},
                    {"fits one query only", "只适用于一个查询"}}});
  page.claim(close(literal, Tensor({2, 2}, {1258498, 4560493, 1172392, 4248527}), 0.5),
             {"Without softmax the output is no average of anything: it leaves the range of the values.",
              "没有 softmax，输出就不是任何东西的平均：它远远超出值的范围。"},
             fmt::format("outputs ({:.0f}, {:.0f}) and ({:.0f}, {:.0f})", literal.ptr()[0], literal.ptr()[1],
                         literal.ptr()[2], literal.ptr()[3]));
  const Tensor k = ones({2, 10, 2}), v = zeros({2, 10, 4});
  const Shape one = attend(ScaledDot{}, ones({2, 1, 2}), k, v).output.shape(),
              three = attend(ScaledDot{}, ones({2, 3, 2}), k, v).output.shape();
  page.fact({"An axis that `squeeze(1)` removes only when there is one query would make the shape depend on the data.",
             "`squeeze(1)` 只在仅有一个查询时去掉那个轴，会使形状取决于数据。"},
            text("one query gives ", one, ", three give ", three));
}

}  // namespace qkv::labs::scoring
