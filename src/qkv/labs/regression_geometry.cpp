// Lab 10.2, exercises of the English edition in several dimensions: Parzen windows, unit vectors, how fast the width
// shrinks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/core/parallel.h"
#include "qkv/labs/regression.h"
#include "qkv/labs/show.h"

namespace qkv::labs::regression {
namespace {

struct Labelled {
  Points x, y;  // (n, 2), (n, 1) of -1 and 1
};

/// Two arcs that reach into each other.
Labelled two_classes(const Rng& rng, int64_t n) {
  Labelled d{Points(n, 2), Points(n, 1)};
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<uint64_t>(i);
    const double angle = 3.141592653589793 * double{rng.at("angle").uniform(at)}, side = i % 3 ? 1 : -1;
    d.x.at(i, 0) = side * (std::cos(angle) - 0.5) + 0.22 * rng.at("noise").normal(2 * at);
    d.x.at(i, 1) = side * (std::sin(angle) - 0.25) + 0.22 * rng.at("noise").normal(2 * at + 1);
    d.y.at(i, 0) = side;
  }
  return d;
}

constexpr int64_t kGrid = 61;
double grid_at(int64_t i) { return -2 + 4 * static_cast<double>(i) / (kGrid - 1); }

}  // namespace

void parzen_step(Page& page) {
  page.exercise("11.2.1");
  page.say(tr(
      "With labels 1 and -1, a Parzen window estimates the density of each class, weighted by its frequency, and picks "
      "the larger. The difference of the two is the numerator of Nadaraya-Watson; the denominator, the density of all "
      "points, is positive and cannot change the sign."));
  page.formula("\\hat{p}(x, 1) - \\hat{p}(x, -1) = \\frac{1}{n} \\sum_i y_i K(x - x_i) = f(x) \\hat{p}(x)");
  const Labelled d = two_classes(rng_of(page.seed()).at("classes"), 240);
  const double h = 0.3;
  Points at(kGrid * kGrid, 2);
  for (int64_t r = 0; r < kGrid; ++r)
    for (int64_t c = 0; c < kGrid; ++c) {
      at.at(r * kGrid + c, 0) = grid_at(c);
      at.at(r * kGrid + c, 1) = grid_at(kGrid - 1 - r);
    }
  const Vector f = KernelRegression(d.x, d.y, {.bandwidth = {h}}).predict(at).values.values;
  Tensor maps = Tensor::empty({2, kGrid, kGrid});
  int64_t same = 0, decided = 0;
  for (int64_t q = 0; q < at.rows; ++q) {
    double density[2] = {0, 0};  // of class -1, of class 1; the Gaussian density with its constant
    for (int64_t i = 0; i < d.x.rows; ++i) {
      const double a = (at.at(q, 0) - d.x.at(i, 0)) / h, b = (at.at(q, 1) - d.x.at(i, 1)) / h;
      density[d.y.at(i, 0) > 0] +=
          std::exp(-(a * a + b * b) / 2) / (2 * 3.141592653589793 * h * h) / static_cast<double>(d.x.rows);
    }
    const double difference = density[1] - density[0];
    maps.mutable_ptr()[q] = static_cast<float>(difference);
    maps.mutable_ptr()[at.rows + q] = static_cast<float>(f[static_cast<size_t>(q)]);
    if (std::abs(difference) < 1e-12 * (density[0] + density[1])) continue;
    ++decided;
    same += (difference > 0) == (f[static_cast<size_t>(q)] > 0);
  }
  Figure figure;
  figure.cols = 3;
  Vector px[2], py[2];
  for (int64_t i = 0; i < d.x.rows; ++i) {
    px[d.y.at(i, 0) > 0].push_back(d.x.at(i, 0));
    py[d.y.at(i, 0) > 0].push_back(d.x.at(i, 1));
  }
  LineStyle red = line_style("ro"), blue = line_style("bo");
  red.dash = blue.dash = Dash::none;
  red.alpha = blue.alpha = 0.6;
  constexpr CellSpan kAxis{-2, 2}, kDown{2, -2};
  figure.panels = {
      {.content = Curves{{{"y = 1", px[1], py[1], red}, {"y = −1", px[0], py[0], blue}}},
       .title = tr("Data"),
       .x = {.label = "x₁", .low = -2, .high = 2},
       .y = {.label = "x₂", .low = -2, .high = 2}},
      {.content = HeatMap{.values = maps.part(0, {kGrid, kGrid}), .x_span = kAxis, .y_span = kDown},
       .title = "Parzen: p(x, 1) − p(x, −1)",
       .x = {.label = "x₁"}},
      {.content = HeatMap{.values = maps.part(kGrid * kGrid, {kGrid, kGrid}), .x_span = kAxis, .y_span = kDown},
       .title = "Nadaraya-Watson: f(x)",
       .x = {.label = "x₁"}}};
  figure.colours = {.per_panel = true};
  page.draw("parzen", figure,
            tr("The two maps differ in magnitude but agree in colour: red where class 1 wins. Far from the data the "
               "densities vanish; the ratio does not."));
  page.claim(same == decided && decided > 3000, tr("Both make the same decision at every point of a grid."),
             tr("{same} of {decided} points", "same"_a = same, "decided"_a = decided));
}

void unit_norm_step(Page& page) {
  page.exercise("11.2.3");
  page.say(
      tr("The squared lengths are then constants, which softmax ignores, and the distance becomes a dot product: the "
         "kernel is scaled dot-product attention with scale $1/h^2$."));
  page.formula(
      "\\lVert x - x_i \\rVert^2 = 2 - 2 x^\\top x_i, \\quad \\softmax_i(-\\frac{\\lVert x - x_i \\rVert^2}{2 h^2}) = "
      "\\softmax_i(\\frac{x^\\top x_i}{h^2})");
  const Rng rng = rng_of(page.seed()).at("unit");
  const auto unit = [](Tensor x) {
    for (int64_t i = 0; i < x.size(0); ++i) {
      double square = 0;
      for (int64_t a = 0; a < x.size(1); ++a) square += double{x.at({i, a})} * x.at({i, a});
      for (int64_t a = 0; a < x.size(1); ++a)
        x.mutable_ptr()[i * x.size(1) + a] /= static_cast<float>(std::sqrt(square));
    }
    return x;
  };
  const float h = 0.5f;
  const Tensor q = unit(normal({20, 8}, rng.at("q"))), k = unit(normal({64, 8}, rng.at("k"))),
               v = normal({64, 3}, rng.at("v"));
  const Tensor raw = normal({64, 8}, rng.at("k"));
  const auto difference = [&](const Tensor& keys) {
    const Tensor a = attend(Gaussian::bandwidth(h), q, keys, v).weights.matrix(),
                 b = attend(ScaledDot{1 / (h * h)}, q, keys, v).weights.matrix();
    double worst = 0;
    for (int64_t i = 0; i < a.numel(); ++i) worst = std::max(worst, std::abs(double{a.ptr()[i]} - b.ptr()[i]));
    return worst;
  };
  const double on_sphere = difference(k), off_sphere = difference(raw);
  const Attended by_distance = attend(Gaussian::bandwidth(h), q, k, v),
                 by_dot = attend(ScaledDot{1 / (h * h)}, q, k, v);
  Vector cosine, distance_weight;
  for (int64_t j = 0; j < 64; ++j) {
    double dot = 0;
    for (int64_t a = 0; a < 8; ++a) dot += double{q.at({0, a})} * k.at({j, a});
    cosine.push_back(dot);
    distance_weight.push_back(by_distance.weights.row(0, 0, 0).ptr()[j]);
  }
  std::vector<size_t> order(64);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return cosine[a] < cosine[b]; });
  Vector sorted, dot_weight;
  for (size_t j : order) {
    sorted.push_back(cosine[j]);
    dot_weight.push_back(by_dot.weights.row(0, 0, 0).ptr()[j]);
  }
  LineStyle circles = line_style("ro");
  circles.dash = Dash::none;
  circles.alpha = 0.6;
  page.draw(
      "unit-norm",
      curves({{"softmax(x·xᵢ / h²)", sorted, dot_weight, line_style("-")},
              {tr("by distance"), cosine, distance_weight, circles}},
             {.label = tr("cosine of query and key")}, {.label = tr("weight"), .low = 0}),
      tr("One query and 64 unit keys, h = 0.5: the weights by distance coincide with the weights by dot product."));
  page.claim(
      on_sphere < 1e-5 && off_sphere > 0.01,
      tr("On the unit sphere, distance and dot product give the same weights; with keys of arbitrary length they do "
         "not."),
      tr("largest difference {on_sphere}; with keys of arbitrary length {off_sphere:.2f}",
         "on_sphere"_a = tiny(on_sphere), "off_sphere"_a = off_sphere));
}

namespace {

/// Keys uniform in (0, 5)^d sorted by their first coordinate, a wavy truth, and queries; errors are expectations over
/// the noise.
struct Design {
  int d;
  Points x, at;
  Vector first, f, f_at;

  Design(int dimension, int64_t n, int64_t queries, double margin, const Rng& rng)
      : d(dimension), x(n, d), at(queries, d) {
    Vector start;
    for (int64_t i = 0; i < n; ++i) start.push_back(5 * double{rng.at("x").uniform(static_cast<uint64_t>(i * d))});
    std::sort(start.begin(), start.end());
    for (int64_t i = 0; i < n; ++i)
      for (int a = 0; a < d; ++a)
        x.at(i, a) =
            a == 0 ? start[static_cast<size_t>(i)] : 5 * double{rng.at("x").uniform(static_cast<uint64_t>(i * d + a))};
    for (int64_t j = 0; j < queries; ++j)
      for (int a = 0; a < d; ++a) {  // evenly along the first axis
        const double u = a == 0 ? (static_cast<double>(j) + 0.5) / static_cast<double>(queries)
                                : double{rng.at("at").uniform(static_cast<uint64_t>(j * d + a))};
        at.at(j, a) = margin + (5 - 2 * margin) * u;
      }
    first = start;
    for (int64_t i = 0; i < n; ++i) f.push_back(truth(x.row(i)));
    for (int64_t j = 0; j < queries; ++j) f_at.push_back(truth(at.row(j)));
  }

  static double truth(std::span<const double> v) {
    double total = 0;
    for (double coordinate : v) total += 2 * std::sin(1.5 * coordinate);
    return total;
  }

  /// Squared bias plus variance, 0.25 sum alpha^2, averaged over the queries.
  double error(double h) const {
    double total = 0;
    for (int64_t j = 0; j < at.rows; ++j) {
      const double q = at.at(j, 0), reach = 6 * h;
      const int64_t begin = std::lower_bound(first.begin(), first.end(), q - reach) - first.begin(),
                    end = std::upper_bound(first.begin(), first.end(), q + reach) - first.begin();
      double s = 0, squares = 0, t = 0;
      for (int64_t i = begin; i < end; ++i) {
        double u = 0;
        for (int a = 0; a < d; ++a) u += (x.at(i, a) - at.at(j, a)) * (x.at(i, a) - at.at(j, a));
        if (u > reach * reach) continue;
        const double k = std::exp(-u / (2 * h * h));
        s += k;
        squares += k * k;
        t += k * f[static_cast<size_t>(i)];
      }
      const double bias = s > 0 ? t / s - f_at[static_cast<size_t>(j)] : 10;
      total += bias * bias + (s > 0 ? 0.25 * squares / (s * s) : 0);
    }
    return total / static_cast<double>(at.rows);
  }

  /// Log of the best width, and its error, by golden-section search between two widths.
  std::pair<double, double> best(double low, double high) const {
    constexpr double kGolden = 0.6180339887498949;
    double a = std::log(low), b = std::log(high), c = b - kGolden * (b - a), e = a + kGolden * (b - a),
           fc = error(std::exp(c)), fe = error(std::exp(e));
    for (int i = 0; i < 9; ++i) {
      if (fc < fe) {
        b = e;
        e = c;
        fe = fc;
        c = b - kGolden * (b - a);
        fc = error(std::exp(c));
      } else {
        a = c;
        c = e;
        fc = fe;
        e = a + kGolden * (b - a);
        fe = error(std::exp(e));
      }
    }
    return {(a + b) / 2, std::min(fc, fe)};
  }
};

struct Law {
  std::string name;
  int d;
  double margin;  // distance of the queries from the border
  double theory;  // exponent of the width
  Vector n, width, error;
  double exponent = 0;
};

void measure(Law& law, const Rng& rng) {
  constexpr int kSets[] = {12, 8, 4, 3};  // small samples vary more, so they get more data sets
  const Vector sizes = law.d == 1   ? Vector{200, 800, 3200, 12800}
                       : law.d == 2 ? Vector{500, 1500, 4500, 13500}
                                    : Vector{1000, 2500, 6250, 15625};
  for (size_t i = 0; i < sizes.size(); ++i) {
    const double n = sizes[i];
    Vector widths(static_cast<size_t>(kSets[i])), errors(static_cast<size_t>(kSets[i]));
    parallel_for(kSets[i], 1e9, [&](int64_t k) {
      const Design design(law.d, static_cast<int64_t>(n), 60, law.margin,
                          rng.at(law.name).at(static_cast<uint64_t>(n)).at(static_cast<uint64_t>(k)));
      std::tie(widths[static_cast<size_t>(k)], errors[static_cast<size_t>(k)]) = design.best(0.03, 0.6);
    });
    law.n.push_back(n);
    law.width.push_back(std::exp(mean(widths)));
    law.error.push_back(mean(errors));
  }
  Vector log_n, log_w;
  for (size_t i = 0; i < law.n.size(); ++i) {
    log_n.push_back(std::log(law.n[i]));
    log_w.push_back(std::log(law.width[i]));
  }
  law.exponent = slope(log_n, log_w);
}

}  // namespace

void shrinking_step(Page& page) {
  page.exercise("11.2.4");
  page.say(
      tr("A window of width $h$ in $d$ dimensions holds about $n h^d$ points, so the variance is of order $1/(n h^d)$; "
         "away from the border the bias is of order $h^2$. The sum of the variance and the squared bias is smallest "
         "where"));
  page.formula("h \\sim n^{-\\frac{1}{d + 4}}, \\quad \\text{error} \\sim n^{-\\frac{4}{d + 4}}");
  page.say(tr(
      "The experiment does not have to draw noise: for given inputs the expected error is the squared bias plus $0.25 "
      "\\sum_i \\alpha_i^2$, and its minimum over $h$ is found by golden-section search. At a border the window is "
      "one-sided and the bias is only of order $h$; including the border calls for a faster $n^{-1/4}$ in one "
      "dimension."));
  std::vector<Law> laws = {{"d = 1", 1, 1.25, -1.0 / 5, {}, {}, {}},
                           {"d = 2", 2, 1.25, -1.0 / 6, {}, {}, {}},
                           {"d = 3", 3, 1.25, -1.0 / 7, {}, {}, {}},
                           {"d = 1 with border", 1, 0, -1.0 / 4, {}, {}, {}}};
  std::vector<Series> widths, errors;
  std::vector<NamedRow> rows;
  double worst = 0;
  const char* formats[] = {"bo-", "mo--", "go-.", "ko:"};
  for (size_t i = 0; i < laws.size(); ++i) {
    Law& law = laws[i];
    measure(law, rng_of(page.seed()).at("shrink"));
    const Text name = law.margin > 0 ? verbatim(law.name) : tr("d = 1 with border");
    widths.push_back({name, law.n, law.width, line_style(formats[i])});
    errors.push_back({name, law.n, law.error, line_style(formats[i])});
    rows.push_back({name,
                    {rounded(law.width.front(), 3), rounded(law.width.back(), 3), rounded(law.exponent, 3),
                     rounded(law.theory, 3)}});
    if (law.margin > 0) worst = std::max(worst, std::abs(law.exponent - law.theory));
  }
  named_table(page, {tr("inputs"), tr("best width, smallest n"), tr("largest n"), tr("fitted exponent"), tr("theory")},
              rows);
  Figure figure;
  figure.cols = 2;
  figure.panels = {{.content = Curves{widths},
                    .x = {.label = "n", .scale = AxisScale::log},
                    .y = {.label = tr("best width"), .scale = AxisScale::log}},
                   {.content = Curves{errors},
                    .x = {.label = "n", .scale = AxisScale::log},
                    .y = {.label = tr("expected error"), .scale = AxisScale::log}}};
  page.draw(
      "shrinking", figure,
      tr("Straight lines on two logarithmic axes are powers of n. In more dimensions the width must stay larger, and "
         "the error falls more slowly."));
  page.claim(
      worst < 0.06,
      tr("Away from the border the fitted exponents are near $-1/(d + 4)$; with the border included, these n are too "
         "small to tell $-1/4$ from $-1/5$."),
      tr("largest deviation {deviation:.3f}", "deviation"_a = worst));
  bool slower = true;
  for (size_t i = 0; i < 2; ++i)
    slower =
        slower && laws[i].width.back() < laws[i + 1].width.back() && laws[i].error.back() < laws[i + 1].error.back();
  page.claim(
      slower,
      tr("With about the same number of points, each additional dimension needs a wider kernel and leaves a larger "
         "error."),
      tr("errors {one:.4f}, {two:.4f}, {three:.4f}", "one"_a = laws[0].error.back(), "two"_a = laws[1].error.back(),
         "three"_a = laws[2].error.back()));
}

}  // namespace qkv::labs::regression
