// Lab 10.2, first part: the notes' example of three people, attend, the batched product, and the effect of slips
// in formulas.
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
  page.heading(tr("Three people, one query"));
  page.say(tr(
      "Waists of 51, 56 and 58 cm are the keys; the body masses of these people, 40, 43 and 48 kg, are the values. "
      "What is the mass of someone with a waist of 57? A first answer is the mean of the two neighbours, 45.5 kg, "
      "which ignores the first person. Attention looks at everybody: the score says how near a key is, softmax turns "
      "scores into attention weights, and the answer is the weighted mean of the values."));
  page.formula("f(q) = \\sum_i \\alpha(q, k_i) v_i, \\quad \\alpha(q, k_i) = \\softmax_i(-\\frac{1}{2} (q - k_i)^2)");
  const Vector scores = {-18, -0.5, -0.5}, alpha = softmax_of(scores);
  const KernelRegression people = model(kPeople);
  const double f = people.predict(Points::of({57})).values.values[0];
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < 3; ++i)
    rows.push_back({fmt::format("{}", kPeople.x[i]), fmt::format("{}", kPeople.y[i]), rounded(scores[i], 1),
                    fmt::format("{:.8g}", alpha[i])});
  page.table({tr("waist $k_i$, cm"), tr("body mass $v_i$, kg"), tr("attention score"), tr("attention weight")}, rows);
  page.claim(std::abs(f - 45.49999993) < 1e-8 && std::abs(pooled(alpha, kPeople.y) - f) < 1e-12,
             tr("A waist of 57 gives 45.5, with weights of about 0, 1/2 and 1/2."), fmt::format("f(57) = {:.8f}", f));

  Vector x, narrow, wide;
  for (int i = 0; i <= 120; ++i) x.push_back(49 + i * 0.1);
  narrow = people.predict(Points::of(x)).values.values;
  wide = people.with({.bandwidth = {3}}).predict(Points::of(x)).values.values;
  LineStyle points = line_style("ko"), query = line_style("ro");
  points.dash = query.dash = Dash::none;
  page.draw(
      "three-people",
      curves({{tr("width 1"), x, narrow, line_style("b--")},
              {tr("width 3"), x, wide, line_style("m-.")},
              {tr("people"), kPeople.x, kPeople.y, points},
              {tr("query 57"), {57}, {f}, query}},
             {.label = tr("waist, cm"), .low = 49, .high = 61}, {.label = tr("body mass, kg"), .low = 38, .high = 50}),
      tr("Every waist is a query. With width 1 the answer steps from one person to the next; with width 3 everyone "
         "counts everywhere."),
      bench(page, kPeople).set("h", 1.0).set("at", 57.0));
}

void attend_step(Page& page) {
  page.heading(tr("Kernel regression is attention"));
  page.say(tr(
      "The library has two ways to compute this number: `KernelRegression` sums kernels in double precision; `attend` "
      "is the attention used in the rest of the chapter, here with the Gaussian scorer. On the fifty points and fifty "
      "queries of this section both give the same curve and the same weights, so everything below holds for both."));
  const Sample s = page_sample(page);
  const KernelRegression nadaraya = model(s);
  const Tensor expected = column(nadaraya.predict(Points::of(test_x())).values.values);
  const Attended pool = attend(Gaussian{}, column(test_x()), column(s.x), column(s.y));
  const double curve = largest_difference(pool.output.data(), expected.data());
  const double map = largest_difference(pool.weights.matrix().data(), nadaraya.weights(Points::of(test_x())).data());
  page.print(verbatim("attend(Gaussian{}, x_test, x_train, y_train).output"));
  page.claim(
      curve < 1e-5 && map < 1e-6, tr("Nadaraya-Watson regression and `attend` with the Gaussian scorer agree."),
      tr("largest difference: output {output:.1e}, weights {weights:.1e}", "output"_a = curve, "weights"_a = map));
  double low = 1, off = 0;
  const Tensor weights = pool.weights.matrix().viewed({50, 50});
  for (int64_t i = 0; i < 50; ++i) {
    double total = 0;
    for (int64_t j = 0; j < 50; ++j) {
      total += weights.at({i, j});
      low = std::min(low, double{weights.at({i, j})});
    }
    off = std::max(off, std::abs(total - 1));
  }
  page.claim(
      low >= 0 && off < 1e-5, tr("For every query the weights are non-negative and sum to 1."),
      tr("smallest {smallest:.1e}, sums within {off:.0e} of 1", "smallest"_a = low, "off"_a = std::max(off, 1e-7)));
}

namespace {

/// The book's arrays for leave-one-out training: every point is a query to the 49 others.
void leave_one_out_shapes(Page& page) {
  page.say(tr(
      "This is how the book trains, with arrays made of copies. `repeat_interleave` repeats each element in place and "
      "makes a row of equal queries; `repeat` (here `tile`) repeats the whole array and makes a row of all keys. "
      "Without the diagonal, where a point would see itself, 49 of the 50 keys in a row are left:"));
  const Sample s = page_sample(page);
  const Tensor x = column(s.x), y = column(s.y);
  const Tensor queries = reshape(repeat_interleave(x, 50, 0), {50, 50}), all = tile(reshape(x, {1, 50}), {50, 1});
  Tensor keys = Tensor::empty({50, 49}), values = Tensor::empty({50, 49});
  for (int64_t i = 0, at = 0; i < 50; ++i)
    for (int64_t j = 0; j < 50; ++j) {
      if (j == i) continue;
      keys.mutable_ptr()[at] = all.at({i, j});
      values.mutable_ptr()[at++] = y.ptr()[j];
    }
  const Tensor distance = sub(slice(queries, 1, 0, 49), keys), weights = softmax(scale(mul(distance, distance), -0.5f));
  const Tensor f = matmul(reshape(weights, {50, 1, 49}), reshape(values, {50, 49, 1}));
  const Tensor two({2}, {1, 2});
  page.print(
      tr("repeat_interleave([1, 2], 3) = {interleaved}\n"
         "repeat([1, 2], 3)            = {repeated}\n"
         "x, as a column            {x}\n"
         "queries, every x 50 times {queries}\n"
         "all keys in every row     {all}\n"
         "keys without the diagonal {keys}\n"
         "values likewise           {values}\n"
         "weights x values          (50, 1, 49) x (50, 49, 1) -> {product}",
         "interleaved"_a = shown(repeat_interleave(two, 3, 0)), "repeated"_a = shown(tile(two, {3})),
         "x"_a = x.shape().str(), "queries"_a = queries.shape().str(), "all"_a = all.shape().str(),
         "keys"_a = keys.shape().str(), "values"_a = values.shape().str(), "product"_a = f.shape().str()));
  const Tensor masked = attend(Gaussian{}, x, x, y, Mask::drop(eye(50))).output;
  const double off = largest_difference(f.data(), masked.data());
  page.claim(off < 1e-5,
             tr("Nothing needs to be copied: attention with the diagonal masked gives the same 50 answers."),
             tr("largest difference {difference}", "difference"_a = tiny(off)));
}

}  // namespace

void batched_product_step(Page& page) {
  page.heading(tr("Weighted sums as a batched product"));
  page.say(tr(
      "A query's answer is a row of weights times a column of values. With many queries, each with its own keys (as in "
      "leave-one-out training), these are many small products at once: shapes $(n, a, b)$ and $(n, b, c)$ give $(n, a, "
      "c)$."));
  const Tensor shapes = matmul(ones({2, 1, 4}), ones({2, 4, 6}));
  const Tensor product = matmul(full({2, 1, 10}, 0.1f), arange(0, 20).viewed({2, 10, 1}));
  page.print(fmt::format("(2, 1, 4) x (2, 4, 6) -> ({}, {}, {})\n[[[{:.1f}]], [[{:.1f}]]]", shapes.size(0),
                         shapes.size(1), shapes.size(2), product.ptr()[0], product.ptr()[1]));
  page.fact(tr("Ten equal weights of 0.1 average the values 0 ... 9, and 10 ... 19."),
            tr("{first:.4f} and {second:.4f}", "first"_a = product.ptr()[0], "second"_a = product.ptr()[1]));
  page.beside_the_book(tr("a batched product of weights 0.1 and values 0 to 19"), "4.5, 14.5",
                       fmt::format("{:.1f}, {:.1f}", product.ptr()[0], product.ptr()[1]));
  leave_one_out_shapes(page);
}

void errata_step(Page& page) {
  page.heading(tr("What a slip in copying the formula does"));
  page.say(tr(
      "Notes are written in haste. Each slip below was found in notes on this section; taken literally, each gives a "
      "different estimator, and working out which one is a good exercise. All are tried on the three people with query "
      "57 and $w = 1$."));
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
  const auto number = [](double v) { return verbatim(fmt::format("{:.4g}", v)); };
  page.word_table({tr("slip"), verbatim("$f(57)$"), tr("correct form")},
                  {{verbatim("softmax(½(q − k)²), 003"), number(no_minus), verbatim("softmax(−½(q − k)²)")},
                   {verbatim("f(x) = 1/n, 000"), number(1.0 / 3), verbatim("f(x) = (1/n) Σ yᵢ")},
                   {verbatim("exp(−½(x − xᵢ)w)², 000"), number(square_outside(57)), verbatim("exp(−½((x − xᵢ)w)²)")},
                   {verbatim("Σⱼ exp(−½(x − xᵢ)²), 000, 002"), number(i_below), verbatim("Σⱼ exp(−½(x − xⱼ)²)")},
                   {tr("yᵢ in the denominator, 000"), number(value_below), tr("yᵢ beside the fraction")},
                   {tr("no factor yᵢ, 002"), number(no_value), verbatim("… yᵢ")}});
  page.claim(std::abs(no_minus - 40) < 1e-6,
             tr("Without the minus sign the farthest person gets all the attention, and the answer is 40.0."),
             fmt::format("f(57) = {:.6f}", no_minus));
  page.claim(std::abs(1.0 / 3 - average) > 1, tr("$1/n$ alone is not an average: it leaves out the values."),
             tr("{literal:.3f} instead of {average:.3f}", "literal"_a = 1.0 / 3, "average"_a = average));
  page.claim(
      std::abs(square_outside(57) - square_outside(51)) < 1e-12,
      tr("With the square outside, the query cancels out of the softmax: every query gets the same answer, and the "
         "largest key wins."),
      fmt::format("f(57) = {:.4f}, f(51) = {:.4f}", square_outside(57), square_outside(51)));
  page.claim(std::abs(i_below - average) < 1e-12,
             tr("With $x_i$ in the denominator's sum too, every weight is $1/n$: this is average pooling again."),
             tr("f(57) = {f:.4f}, the mean is {average:.4f}", "f"_a = i_below, "average"_a = average));
  page.claim(std::abs(no_value - 1) < 1e-12, tr("Without $y_i$ only the weights are summed: the result is always 1."),
             tr("the weights sum to {sum:.6f}", "sum"_a = no_value));
  page.claim(value_below < 1 / 40.0,
             tr("With $y_i$ in the denominator the result is a mean of reciprocals, 1 over a body mass."),
             fmt::format("f(57) = {:.5f}, 1/45.5 = {:.5f}", value_below, 1 / 45.5));
  page.say(tr(
      "Smaller slips: a score is $a$, the weight that softmax computes from it is $\\alpha$ (003); $y_y$ should be "
      "$y_i$ (002); the vectors of fifty numbers have shape (50), not (1, 50), and $w$ is one number, not a matrix of "
      "50 x 49, which would have 2,450 parameters and none for a new query (001); and the estimator is named after "
      "Nadaraya and Watson (both 1964), not Waston."));
}

}  // namespace qkv::labs::regression
