// Lab 10.2, the English edition's experiment: four kernels and four widths.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "qkv/labs/regression.h"
#include "qkv/labs/show.h"
#include "qkv/ops/shape.h"

namespace qkv::labs::regression {
namespace {

Sample page_en(const Page& page) { return en_sample(rng_of(page.seed()).at("en")); }

Panel fit_panel(const Sample& s, const Vector& prediction, const Label& title) {
  return {.content = Curves{fit_series(s, en_test_y(), prediction)},
          .title = title,
          .x = {.label = "x", .low = 0, .high = 5},
          .y = {.label = "y", .low = -1, .high = 7}};
}

Figure row_of(std::vector<Panel> panels) {
  Figure figure;
  figure.cols = static_cast<int>(panels.size());
  for (size_t i = 1; i < panels.size(); ++i) {  // labels and legend once
    panels[i].y.label = {};
    for (Series& s : std::get<Curves>(panels[i].content).series) s.name = {};
  }
  figure.panels = std::move(panels);
  figure.share_y = true;
  return figure;
}

Figure map_row(const std::vector<Tensor>& maps, const std::vector<Label>& titles) {
  return weights_figure(stack(maps), titles);
}

struct Kernel {
  Text title;
  KernelShape shape;
  double deviation;  // standard deviation at width 1, the kernel taken as a density; 0: it has none
};
const Kernel kKernels[] = {{tr("Gaussian"), KernelShape::gaussian, 1},
                           {tr("Boxcar"), KernelShape::boxcar, 1 / std::sqrt(3.0)},
                           {tr("Constant"), KernelShape::constant, 0},
                           {tr("Triangular"), KernelShape::triangular, 1 / std::sqrt(6.0)}};

/// Test errors over 100 data sets; a query without a key in reach gets the mean.
Vector errors_of(const RegressionOptions& options) {
  Vector errors;
  for (uint64_t run = 0; run < 100; ++run) {
    const Sample d = en_sample(rng_of(run).at("en"));
    Vector f = fit(d, options);
    for (double& v : f)
      if (std::isnan(v)) v = mean(d.y);
    errors.push_back(mean_square_difference(f, en_test_y()));
  }
  return errors;
}

Figure kernel_figure() {
  Vector u;
  for (int i = -250; i <= 250; ++i) u.push_back(i / 100.0);
  const auto panel = [&](const Label& title, double (*k)(double)) {
    return Panel{.content = Curves{{{"", u, values(k, u), line_style("-")}}},
                 .title = title,
                 .x = {.label = "u", .low = -2.5, .high = 2.5},
                 .y = {.label = "K(u)", .low = -0.05, .high = 1.1}};
  };
  std::vector<Panel> panels = {
      panel(tr("Gaussian"), [](double v) { return std::exp(-v * v / 2); }),
      panel(tr("Boxcar"), [](double v) { return std::abs(v) <= 1 ? 1.0 : 0.0; }),
      panel(tr("Constant"), [](double) { return 1.0; }),
      panel(tr("Triangular (dashed: Epanechnikov)"), [](double v) { return std::max(0.0, 1 - std::abs(v)); })};
  auto& last = std::get<Curves>(panels[3].content).series;
  last.push_back({"", u, values([](double v) { return std::max(0.0, 1 - v * v); }, u), line_style("m--")});
  return row_of(panels);
}

}  // namespace

void kernels_step(Page& page) {
  page.heading(tr("Four kernels"));
  page.say(tr(
      "The English edition of the book uses another curve, $f(x) = 2 \\sin x + x$, forty points and noise of standard "
      "deviation 1, trains nothing, and tries several kernels of the distance $u = q - k$. The kernel it calls "
      "Epanechikov is the triangular one; Epanechnikov's is $1 - u^2$, drawn beside it."));
  page.draw("kernels", kernel_figure(), tr("How much a key at distance u counts: K(u), before normalisation."));
  const Sample s = page_en(page);
  const Points at = Points::of(test_x());
  std::vector<Panel> panels;
  std::vector<Tensor> maps;
  std::vector<Label> titles;
  std::vector<NamedRow> rows;
  int64_t absent = 0;
  for (const Kernel& k : kKernels) {
    const KernelRegression m = model(s, {.kernel = k.shape});
    const Predictions p = m.predict(at);
    absent += p.absent;
    panels.push_back(fit_panel(s, p.values.values, k.title));
    maps.push_back(m.weights(at));
    titles.emplace_back(k.title);
  }
  page.draw(
      "kernel-fits", row_of(panels),
      tr("Estimates (dashed) with width 1 beside the truth (solid): three kernels follow the curve, the constant one "
         "gives the mean."),
      bench(page, s).set("kernel", "boxcar").set("h", 1.0));
  page.draw("kernel-weights", map_row(maps, titles),
            tr("The weights, one query per row, all on one scale. Three bands look alike; the constant kernel ignores "
               "distance."),
            bench(page, s).set("kernel", "boxcar").set("h", 1.0));

  int64_t close = 0;
  Vector errors[4];
  for (int k = 0; k < 4; ++k) errors[k] = errors_of({.kernel = kKernels[k].shape});
  for (size_t run = 0; run < 100; ++run)
    close += errors[0][run] < errors[2][run] && errors[1][run] < errors[2][run] && errors[3][run] < errors[2][run];
  const double deviations[] = {0.25, 0.5, 1};
  Vector same[3];  // median errors of the three kernels at each deviation
  for (int k = 0; k < 4; ++k) {
    const Kernel& kernel = kKernels[k];
    rows.push_back(
        {kernel.title, {kernel.deviation > 0 ? rounded(kernel.deviation, 2) : "∞", rounded(median(errors[k]), 3)}});
    for (size_t i = 0; i < 3; ++i) {
      if (kernel.deviation > 0)
        same[i].push_back(median(errors_of({.kernel = kernel.shape, .bandwidth = {deviations[i] / kernel.deviation}})));
      rows.back().second.push_back(kernel.deviation > 0 ? rounded(same[i].back(), 3) : "—");
    }
  }
  page.say(
      tr("Over 100 data sets the errors at width 1 differ by a factor of three. But \"width 1\" does not mean the same "
         "for every kernel: viewed as a density, the Gaussian has a standard deviation of 1, the boxcar $1/\\sqrt{3}$, "
         "the triangle $1/\\sqrt{6}$. The last columns compare the kernels at equal standard deviation."));
  named_table(page,
              {tr("kernel"), tr("standard deviation at width 1"), tr("median test error, width 1"),
               tr("deviation 0.25"), tr("deviation 0.5"), tr("deviation 1")},
              rows);
  double by_shape = 1, by_width = 1e9;
  for (const Vector& at : same)
    by_shape = std::max(by_shape, *std::max_element(at.begin(), at.end()) / *std::min_element(at.begin(), at.end()));
  for (size_t k = 0; k < 3; ++k) by_width = std::min(by_width, same[2][k] / same[1][k]);
  page.claim(
      by_shape < 1.5 && by_width > 2,
      tr("At equal standard deviation the shape of the kernel matters little: the errors are within a factor of 1.5. "
         "The width matters more: doubling the standard deviation from 0.5 to 1 more than doubles the error of each "
         "kernel."),
      tr("largest ratio between shapes {shapes:.2f}, smallest ratio between deviations 1 and 0.5 {deviations:.2f}",
         "shapes"_a = by_shape, "deviations"_a = by_width));
  page.claim(close >= 95,
             tr("Gaussian, boxcar and triangular kernels all beat the constant one, in nearly all of 100 data sets."),
             tr("{count} of 100 data sets", "count"_a = close));
  const Predictions constant = model(s, {.kernel = KernelShape::constant}).predict(at);
  double worst = 0;
  for (double v : constant.values.values) worst = std::max(worst, std::abs(v - mean(s.y)));
  page.claim(worst < 1e-9, tr("The constant kernel is average pooling."),
             tr("largest difference from the mean {difference}", "difference"_a = tiny(worst)));
  const Predictions far = model(s, {.kernel = KernelShape::boxcar}).predict(Points::of({2.5, 8}));
  page.claim(
      far.absent >= 1 && std::isnan(far.values.values[1]),
      tr("A kernel of bounded reach cannot predict at $x = 8$: its weights sum to zero, and the prediction is reported "
         "as absent, not hidden."),
      tr("{far} of 2 predictions absent; {test} on the test inputs", "far"_a = far.absent, "test"_a = absent));
}

void widths_step(Page& page) {
  page.heading(tr("Four widths"));
  page.say(tr("What matters is the width, the **bandwidth** of the kernel. The Gaussian again, with"));
  page.formula("K(u) = \\exp(-\\frac{u^2}{2 \\sigma^2}), \\quad \\sigma \\in \\{0.1, 0.2, 0.5, 1\\}");
  const Sample s = page_en(page);
  const Points at = Points::of(test_x());
  const double sigmas[] = {0.1, 0.2, 0.5, 1};
  std::vector<Panel> panels;
  std::vector<Tensor> maps;
  std::vector<Label> titles;
  std::vector<Vector> keys;
  for (double sigma : sigmas) {
    const KernelRegression m = model(s, {.bandwidth = {sigma}});
    titles.emplace_back(fmt::format("σ = {}", sigma));
    panels.push_back(fit_panel(s, m.predict(at).values.values, titles.back()));
    maps.push_back(m.weights(at));
    keys.push_back(m.effective_keys(at));
  }
  page.draw(
      "width-fits", row_of(panels),
      tr("Truth solid, estimate dashed. A narrower kernel shows more detail: first of the curve, then of the noise."),
      bench(page, s).set("h", 0.2));
  Figure bands = map_row(maps, titles);
  bands.colours.per_panel = true;
  page.draw("width-weights", bands, tr("The narrower the kernel, the narrower the band. Each map has its own scale."),
            bench(page, s).set("h", 0.2));
  bool growing = true;
  for (size_t i = 0; i < 50; ++i)
    for (size_t k = 1; k < 4; ++k) growing = growing && keys[k][i] >= keys[k - 1][i] - 1e-9;
  page.claim(
      growing,
      tr("For every query the effective number of keys grows with the width: a wider kernel is a softmax at a higher "
         "temperature."),
      tr("mean {tenth:.1f}, {fifth:.1f}, {half:.1f}, {one:.1f} keys", "tenth"_a = mean(keys[0]),
         "fifth"_a = mean(keys[1]), "half"_a = mean(keys[2]), "one"_a = mean(keys[3])));
  int64_t smoother = 0;
  Vector errors[4];
  for (uint64_t run = 0; run < 100; ++run) {
    const Sample d = en_sample(rng_of(run).at("en"));
    double rough[4];
    for (int k = 0; k < 4; ++k) {
      const Vector f = fit(d, sigmas[k]);
      rough[k] = roughness(f);
      errors[k].push_back(mean_square_difference(f, en_test_y()));
    }
    smoother += rough[0] > rough[1] && rough[1] > rough[2] && rough[2] > rough[3];
  }
  page.claim(smoother >= 95, tr("Each wider kernel gives a smoother curve, in nearly all of 100 data sets."),
             tr("{count} of 100 data sets", "count"_a = smoother));
  page.claim(median(errors[2]) < median(errors[0]) && median(errors[2]) < median(errors[3]),
             tr("Neither the narrowest nor the widest is best: 0.5 beats 0.1 and 1 in the median."),
             tr("test errors {tenth:.3f}, {fifth:.3f}, {half:.3f}, {one:.3f}", "tenth"_a = median(errors[0]),
                "fifth"_a = median(errors[1]), "half"_a = median(errors[2]), "one"_a = median(errors[3])));
}

}  // namespace qkv::labs::regression
