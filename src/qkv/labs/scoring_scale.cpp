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

// Queries, each with its own 16 random keys and random scalar values.
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

// By the mean and the standard deviation of the keys, column by column.
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
  page.heading(tr("Why divide by the square root of d"));
  page.say(tr(
      "If the elements of $q$ and $k$ are independent with mean 0 and variance 1, then $q^\\top k$ is a sum of $d$ "
      "products of variance 1: it has variance $d$. Scores that grow like $\\sqrt{d}$ push softmax into the corner "
      "where one key takes everything and the gradient vanishes (it is a covariance under the weights, lab 10.1). "
      "Dividing by $\\sqrt{d}$ keeps the variance at 1. Dividing by $d$, as the note writes, overdoes it: the variance "
      "becomes $1/d$ and the weights nearly uniform. Below: 64 queries, each with its own 16 keys."));
  const Rng rng = Rng(page.seed()).at("scale");
  std::vector<double> widths, keys[3], gradients[3];
  std::vector<std::vector<std::string>> rows;
  double low = 1e9, high = 0;
  for (int64_t d : {2, 8, 32, 128, 512, 2048}) {
    const float root = 1 / std::sqrt(static_cast<float>(d)), scales[3] = {1, root, root * root};
    const Draw draw(d, rng.at(static_cast<uint64_t>(d)));
    const double var = variance(d, rng.at(static_cast<uint64_t>(d)).at("pairs"));
    low = std::min(low, var / static_cast<double>(d));
    high = std::max(high, var / static_cast<double>(d));
    rows.push_back({std::to_string(d), rounded(var, 1)});
    widths.push_back(static_cast<double>(d));
    for (int s = 0; s < 3; ++s) {
      const Sharpness found = sharpness(draw, scales[s]);
      keys[s].push_back(found.keys);
      gradients[s].push_back(found.gradient);
      rows.back().push_back(rounded(found.keys, 2));
    }
    for (int s = 0; s < 2; ++s) rows.back().push_back(fmt::format("{:.2g}", gradients[s].back()));
  }
  page.table(
      {verbatim("$d$"), verbatim("$\\mathrm{Var}(q^\\top k)$"), tr("keys: $q^\\top k$"), verbatim("$/ \\sqrt{d}$"),
       verbatim("$/ d$"), tr("median gradient: $q^\\top k$"), verbatim("$/ \\sqrt{d}$")},
      rows);
  Figure figure;
  figure.cols = 2;
  const Axis x{.label = "d", .scale = AxisScale::log};
  figure.panels = {
      {Curves{{{"q·k", widths, keys[0]}, {"q·k / √d", widths, keys[1]}, {"q·k / d", widths, keys[2]}}},
       "",
       x,
       {.label = tr("effective keys of 16"), .low = 0, .high = 17}},
      {Curves{{{"q·k", widths, gradients[0]}, {"q·k / √d", widths, gradients[1]}, {"q·k / d", widths, gradients[2]}}},
       "",
       x,
       {.label = tr("median gradient of q"), .scale = AxisScale::log}}};
  page.draw(
      "scaling", figure,
      tr("Left: how many keys share the weight. Right: how much gradient reaches the query. Without scaling the "
         "gradient first grows with the length of the keys and then collapses; only the square root keeps both where "
         "they were."));
  page.claim(low > 0.75 && high < 1.25, tr("The variance of the dot product is $d$."),
             tr("variance / d from {low:.2f} to {high:.2f}", "low"_a = low, "high"_a = high));
  page.claim(
      keys[0].back() < 1.5 && keys[1].back() > 8 && keys[2].back() > 15.5,
      tr("At $d = 2048$ the raw score picks one key, the scaled score weighs several, division by $d$ averages all."),
      tr("effective keys of 16: raw {raw:.2f}, by √d {by_root:.2f}, by d {by_d:.2f}", "raw"_a = keys[0].back(),
         "by_root"_a = keys[1].back(), "by_d"_a = keys[2].back()));
  page.claim(
      gradients[0].back() < 0.01 * gradients[0].front() && gradients[1].back() > 0.2 * gradients[1].front(),
      tr("The raw score loses its gradient as $d$ grows, the scaled one keeps it."),
      tr("median gradient from d = 2 to 2048: raw {raw_first:.2g} to {raw_last:.2g}, scaled {scaled_first:.2f} to "
         "{scaled_last:.2f}",
         "raw_first"_a = gradients[0].front(), "raw_last"_a = gradients[0].back(),
         "scaled_first"_a = gradients[1].front(), "scaled_last"_a = gradients[1].back()));
}

void measures(Page& page) {
  page.heading(tr("Waist and chest, body mass and height"));
  page.say(
      tr("The note's second table has keys of two features (waist, chest), values of two (body mass, height), and two "
         "queries. The third key repeats the second: equal keys share their weight, and their values are averaged. The "
         "dot product is computed on the raw centimetres:"));
  const Tensor q = measure_queries(), k = measure_keys();
  const Tensor products = matmul(q, k, Transpose::no, Transpose::yes);
  page.print("Q Kᵀ =\n" + shown(products));
  const Answers answers = three_answers();
  const Answer &raw = answers.raw, &scaled = answers.scaled, &standard = answers.standard;
  std::vector<std::vector<Text>> rows;
  const std::pair<Text, const Answer*> treatments[] = {
      {tr("raw"), &raw}, {tr("divided by $\\sqrt{2}$"), &scaled}, {tr("standardised, $/ \\sqrt{2}$"), &standard}};
  for (const auto& [name, a] : treatments)
    for (int64_t i = 0; i < 2; ++i) {
      const std::string cells[] = {fmt::format("({}, {})", q.at({i, 0}), q.at({i, 1})),
                                   shown(a->weights.part(3 * i, {3}), 4), shown(a->output.part(2 * i, {2}), 4),
                                   rounded(length_of(a->gradient.part(2 * i, {2})), 4)};
      rows.push_back({name});
      for (const std::string& cell : cells) rows.back().emplace_back(cell);
    }
  page.word_table({tr("how scored"), tr("query"), tr("weights"), tr("output"), tr("gradient with respect to $q$")},
                  rows);
  const Tensor maps =
      stack({treatments[0].second->weights, treatments[1].second->weights, treatments[2].second->weights});
  page.draw(
      "measures",
      heatmaps(maps, tr("Keys"), tr("Queries"), {tr("raw"), "/ √2", tr("standardised")},
               {.colours = {.low = 0, .high = 1},
                .x_tokens = {"51,70", "56,82", "56,82"},
                .y_tokens = {"57,83", "55,76"},
                .cell_values = true}),
      tr("Raw and scaled give both queries the same answer; standardised, the smaller person gets a different one."),
      report::BenchLink("scores").set("q", q).set("k", k).set("v", measure_values()));
  const Tensor half({2, 3}, {0, 0.5f, 0.5f, 0, 0.5f, 0.5f}), twice({2, 2}, {45.5f, 160.5f, 45.5f, 160.5f});
  page.claim(close(raw.weights, half, 1e-6) && close(scaled.weights, half, 1e-6) && close(raw.output, twice, 1e-4) &&
                 close(scaled.output, twice, 1e-4),
             tr("Raw and scaled: weights 0, 1/2, 1/2 and output (45.5, 160.5) for both queries."),
             tr("largest difference of a weight {difference}",
                "difference"_a =
                    tiny(std::max(largest_difference(raw.weights, half), largest_difference(scaled.weights, half)))));
  const Tensor weights({2, 3}, {0.02375f, 0.48812f, 0.48812f, 0.35730f, 0.32135f, 0.32135f}),
      output({2, 2}, {45.36936f, 160.36936f, 43.53482f, 158.53482f});
  page.claim(close(standard.weights, weights, 1e-5) && close(standard.output, output, 1e-4),
             tr("Standardised, the two queries get different answers."),
             tr("outputs ({first_mass:.4f}, {first_height:.4f}) and ({second_mass:.4f}, {second_height:.4f})",
                "first_mass"_a = standard.output.ptr()[0], "first_height"_a = standard.output.ptr()[1],
                "second_mass"_a = standard.output.ptr()[2], "second_height"_a = standard.output.ptr()[3]));
}

void saturation(Page& page) {
  page.heading(tr("What the table shows"));
  const Tensor q = measure_queries(), k = measure_keys();
  page.say(tr(
      "The scores of the second and third keys are 1281 above the first, and still 906 after the division. Softmax is "
      "saturated, both queries get the same answer, and nothing can be learned, since the gradient is 0. Dividing by "
      "the square root of $d$ fixes scores that grow with the dimension; these grow with the unit of measurement. The "
      "remedy is to standardise the features by the keys' mean and standard deviation. The next figure divides by "
      "larger and larger numbers: between $10^2$ and $10^4$ the gradient appears."));
  std::vector<double> divisor, gradient_size[2];
  for (double e = 0; e <= 6.01; e += 0.1) {
    const Answer a = ask(q, k, static_cast<float>(std::pow(10, -e)));
    divisor.push_back(std::pow(10, e));
    for (int64_t i = 0; i < 2; ++i) gradient_size[i].push_back(length_of(a.gradient.part(2 * i, {2})));
  }
  page.draw(
      "measures-gradient",
      curves({{tr("query (57, 83)"), divisor, gradient_size[0]}, {tr("query (55, 76)"), divisor, gradient_size[1]}},
             {.label = tr("scores divided by"), .scale = AxisScale::log}, {.label = tr("gradient of q")}),
      tr("The gradient of the raw table against the divisor: the square root of 2 is at the far left, where the "
         "gradient is 0."));
  const auto [raw, scaled, standard] = three_answers();
  page.claim(length_of(raw.gradient) < 1e-3 && length_of(scaled.gradient) < 1e-3 && length_of(standard.gradient) > 0.1,
             tr("Scaling alone leaves the gradient at 0; standardising restores it."),
             tr("gradient: raw {raw}, scaled {scaled}, standardised {standardised:.2f}",
                "raw"_a = tiny(length_of(raw.gradient)), "scaled"_a = tiny(length_of(scaled.gradient)),
                "standardised"_a = length_of(standard.gradient)));
  const Attended gaussian = attend(Gaussian{}, q, k, measure_values());
  page.claim(close(gaussian.weights.row(0, 0, 1), Tensor({3}, {2.7647e-4f, 0.499862f, 0.499862f}), 1e-5) &&
                 std::abs(gaussian.output.at({1, 0}) - 45.49848f) < 1e-3,
             tr("A Gaussian score of width 1 uses differences, not products, and is not quite saturated for the second "
                "query."),
             tr("weight of the first key {weight:.1e}, output ({mass:.5f}, {height:.5f})",
                "weight"_a = gaussian.weights.row(0, 0, 1).at({0}), "mass"_a = gaussian.output.at({1, 0}),
                "height"_a = gaussian.output.at({1, 1})));
}

void errata(Page& page) {
  page.heading(tr("Slips of the note, and what they would do"));
  const Tensor literal =
      matmul(matmul(measure_queries(), measure_keys(), Transpose::no, Transpose::yes), measure_values());
  page.say(tr(
      "The note that this lab is based on has a few slips. The lab uses the correct form; here is what the written one "
      "would give."));
  page.word_table(
      {tr("as written"), tr("meant"), tr("consequence")},
      {{verbatim("$\\mathrm{softmax}(\\frac{1}{2} (q - k)^2)$"),
        verbatim("$\\mathrm{softmax}(-\\frac{1}{2} (q - k)^2)$"), tr("the farthest key wins: 40.0 instead of 45.5")},
       {tr("divide by $d_k$"), tr("by $\\sqrt{d_k}$"), tr("at large $d$ nearly an average (figure above)")},
       {verbatim("$Q K^\\top V$"), verbatim("$\\mathrm{softmax}(Q K^\\top / \\sqrt{d}) V$"),
        tr("a body mass of {mass:.0f} kg, not an average of the values", "mass"_a = literal.at({0, 0}))},
       {tr("softmax written $a(q, k)$"), tr("$\\alpha(q, k)$; $a$ is the score"), tr("score and weight confused")},
       {tr("(2, 2, 4): \"two dimensions, four lines, three columns\""), tr("2 batch elements, 2 queries, 4 keys"),
        tr("lengths would apply to the wrong axis")},
       {tr("values with five axes"), verbatim("$(B, m, v)$"), tr("the batched product takes three")},
       {tr("`squeeze(1)` on the output"), tr("keep $(B, n, v)$"), tr("works for one query only")}});
  page.claim(close(literal, Tensor({2, 2}, {1258498, 4560493, 1172392, 4248527}), 0.5),
             tr("Without softmax the output is not an average of anything: it leaves the range of the values."),
             tr("outputs ({first_mass:.0f}, {first_height:.0f}) and ({second_mass:.0f}, {second_height:.0f})",
                "first_mass"_a = literal.ptr()[0], "first_height"_a = literal.ptr()[1],
                "second_mass"_a = literal.ptr()[2], "second_height"_a = literal.ptr()[3]));
  const Tensor k = ones({2, 10, 2}), v = zeros({2, 10, 4});
  const Shape one = attend(ScaledDot{}, ones({2, 1, 2}), k, v).output.shape(),
              three = attend(ScaledDot{}, ones({2, 3, 2}), k, v).output.shape();
  page.fact(tr("`squeeze(1)` removes the axis only when there is one query, so the shape would depend on the data."),
            tr("one query gives {one}, three give {three}", "one"_a = one, "three"_a = three));
}

}  // namespace qkv::labs::scoring
