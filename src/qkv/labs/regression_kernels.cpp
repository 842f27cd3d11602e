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

Panel fit_panel(const Sample& s, const Vector& prediction, const std::string& title) {
  return {.content = Curves{fit_series(s, en_test_y(), prediction)},
          .title = title,
          .x = {.label = "x", .low = 0, .high = 5},
          .y = {.label = "y", .low = -1, .high = 7}};
}

Figure row_of(std::vector<Panel> panels) {
  Figure figure;
  figure.cols = static_cast<int>(panels.size());
  for (size_t i = 1; i < panels.size(); ++i) {  // labels and legend once
    panels[i].y.label.clear();
    for (Series& s : std::get<Curves>(panels[i].content).series) s.name.clear();
  }
  figure.panels = std::move(panels);
  figure.share_y = true;
  return figure;
}

Figure map_row(const std::vector<Tensor>& maps, const std::vector<std::string>& titles) {
  return weights_figure(stack(maps), titles);
}

struct Kernel {
  const char *title, *chinese;
  KernelShape shape;
  double deviation;  // standard deviation at width 1, the kernel taken as a density; 0: it has none
};
const Kernel kKernels[] = {{"Gaussian", "高斯核", KernelShape::gaussian, 1},
                           {"Boxcar", "矩形核", KernelShape::boxcar, 1 / std::sqrt(3.0)},
                           {"Constant", "常数核", KernelShape::constant, 0},
                           {"Triangular", "三角核", KernelShape::triangular, 1 / std::sqrt(6.0)}};

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
  const auto panel = [&](const char* title, double (*k)(double)) {
    return Panel{.content = Curves{{{"", u, values(k, u), line_style("-")}}},
                 .title = title,
                 .x = {.label = "u", .low = -2.5, .high = 2.5},
                 .y = {.label = "K(u)", .low = -0.05, .high = 1.1}};
  };
  std::vector<Panel> panels = {
      panel("Gaussian", [](double v) { return std::exp(-v * v / 2); }),
      panel("Boxcar", [](double v) { return std::abs(v) <= 1 ? 1.0 : 0.0; }),
      panel("Constant", [](double) { return 1.0; }),
      panel("Triangular (dashed: Epanechnikov)", [](double v) { return std::max(0.0, 1 - std::abs(v)); })};
  auto& last = std::get<Curves>(panels[3].content).series;
  last.push_back({"", u, values([](double v) { return std::max(0.0, 1 - v * v); }, u), line_style("m--")});
  return row_of(panels);
}

}  // namespace

void kernels_step(Page& page) {
  page.heading({"Four kernels", "四种核"});
  page.say(
      {"The English edition of the book takes another curve, $f(x) = 2 \\sin x + x$, forty points and noise of standard deviation 1, "
       "trains nothing, and tries kernels of the distance $u = q - k$. What it calls Epanechikov is the triangular kernel; Epanechnikov's "
       "is $1 - u^2$, drawn beside it.",
       "英文版用另一条曲线 $f(x) = 2 \\sin x + x$、四十个点、标准差为 1 的噪声，不做训练，而是尝试距离 $u = q - k$ 的不同核。书中叫作 "
       "Epanechikov 的其实是三角核；真正的 Epanechnikov 核是 $1 - u^2$，画在旁边。"});
  page.draw("kernels", kernel_figure(), {"How much a key at distance u counts.", "距离为 u 的键占多少份量。"});
  const Sample s = page_en(page);
  const Points at = Points::of(test_x());
  std::vector<Panel> panels;
  std::vector<Tensor> maps;
  std::vector<std::string> titles;
  std::vector<NamedRow> rows;
  int64_t absent = 0;
  for (const Kernel& k : kKernels) {
    const KernelRegression m = model(s, {.kernel = k.shape});
    const Predictions p = m.predict(at);
    absent += p.absent;
    panels.push_back(fit_panel(s, p.values.values, k.title));
    maps.push_back(m.weights(at));
    titles.push_back(k.title);
  }
  page.draw(
      "kernel-fits", row_of(panels),
      {"Estimates (dashed) with width 1 beside the truth (solid): three kernels trace the curve, the constant one gives the mean.",
       "宽度为 1 的估计（虚线）与真实曲线（实线）：三种核描出曲线，常数核给出平均值。"});
  page.draw(
      "kernel-weights", map_row(maps, titles),
      {"The weights, one query per row, all on one scale. Three bands look alike; the constant kernel does not know where it is.",
       "注意力权重，每行一个查询，各图共用一个色标。三条带看上去相似；常数核不知道自己在哪里。"});

  int64_t close = 0;
  Vector errors[4];
  for (int k = 0; k < 4; ++k) errors[k] = errors_of({.kernel = kKernels[k].shape});
  for (size_t run = 0; run < 100; ++run)
    close += errors[0][run] < errors[2][run] && errors[1][run] < errors[2][run] && errors[3][run] < errors[2][run];
  const double deviations[] = {0.25, 0.5, 1};
  Vector same[3];  // median errors of the three kernels at each deviation
  for (int k = 0; k < 4; ++k) {
    const Kernel& kernel = kKernels[k];
    rows.push_back({{kernel.title, kernel.chinese},
                    {kernel.deviation > 0 ? rounded(kernel.deviation, 2) : "∞", rounded(median(errors[k]), 3)}});
    for (size_t i = 0; i < 3; ++i) {
      if (kernel.deviation > 0)
        same[i].push_back(median(errors_of({.kernel = kernel.shape, .bandwidth = {deviations[i] / kernel.deviation}})));
      rows.back().second.push_back(kernel.deviation > 0 ? rounded(same[i].back(), 3) : "—");
    }
  }
  page.say(
      {"Over 100 data sets the errors at width 1 differ threefold. But \"width 1\" is not one width: as a density the Gaussian has a standard "
       "deviation of 1, the boxcar of $1/\\sqrt{3}$, the triangle of $1/\\sqrt{6}$. The last columns compare the kernels at equal standard "
       "deviation.",
       "在 100 份数据上，宽度为 1 时的误差相差三倍。但“宽度 1”并不是同一个宽度：把核看作密度，高斯核的标准差是 1，矩形核是 $1/\\sqrt{3}$，"
       "三角核是 $1/\\sqrt{6}$。最后几列在标准差相同时比较各核。"});
  named_table(page,
              {{"kernel", "核"},
               {"its deviation at width 1", "宽度 1 时的标准差"},
               {"median test error, width 1", "测试误差中位数，宽度 1"},
               {"deviation 0.25", "标准差 0.25"},
               {"deviation 0.5", "标准差 0.5"},
               {"deviation 1", "标准差 1"}},
              rows);
  double by_shape = 1, by_width = 1e9;
  for (const Vector& at : same)
    by_shape = std::max(by_shape, *std::max_element(at.begin(), at.end()) / *std::min_element(at.begin(), at.end()));
  for (size_t k = 0; k < 3; ++k) by_width = std::min(by_width, same[2][k] / same[1][k]);
  page.claim(
      by_shape < 1.5 && by_width > 2,
      {"At equal standard deviation the shape of the kernel matters little: the errors lie within a factor of 1.5. The width matters "
       "more: twice the deviation, 1 instead of 0.5, more than doubles the error of each.",
       "标准差相同时，核的形状影响不大：误差相差不到 1.5 倍。宽度的影响更大：标准差从 0.5 加倍到 1，每种核的误差都增加一倍以上。"},
      fmt::format("largest ratio between shapes {:.2f}, smallest ratio between deviations 1 and 0.5 {:.2f}", by_shape,
                  by_width));
  page.claim(close >= 95,
             {"Gaussian, boxcar and triangular kernels all beat the constant one, in nearly all of 100 data sets.",
              "在 100 份数据中几乎每一份上，高斯核、矩形核与三角核都优于常数核。"},
             fmt::format("{} of 100 data sets", close));
  const Predictions constant = model(s, {.kernel = KernelShape::constant}).predict(at);
  double worst = 0;
  for (double v : constant.values.values) worst = std::max(worst, std::abs(v - mean(s.y)));
  page.claim(worst < 1e-9, {"The constant kernel is average pooling.", "常数核就是平均汇聚。"},
             "largest difference from the mean " + tiny(worst));
  const Predictions far = model(s, {.kernel = KernelShape::boxcar}).predict(Points::of({2.5, 8}));
  page.claim(
      far.absent >= 1 && std::isnan(far.values.values[1]),
      {"A kernel of bounded reach has nothing to say at $x = 8$: dividing by a sum of zero is reported as an absent prediction, not "
       "hidden.",
       "有界的核在 $x = 8$ 处无话可说：权重之和为零、无法相除时，会报告为“没有预测”，而不是悄悄略过。"},
      fmt::format("{} of 2 predictions absent; {} on the test inputs", far.absent, absent));
}

void widths_step(Page& page) {
  page.heading({"Four widths", "四种宽度"});
  page.say({"What matters is the width, the **bandwidth** of the kernel. The Gaussian again, with",
            "要紧的是宽度，即核的**带宽**。仍用高斯核："});
  page.formula("K(u) = \\exp(-\\frac{u^2}{2 \\sigma^2}), \\quad \\sigma \\in \\{0.1, 0.2, 0.5, 1\\}");
  const Sample s = page_en(page);
  const Points at = Points::of(test_x());
  const double sigmas[] = {0.1, 0.2, 0.5, 1};
  std::vector<Panel> panels;
  std::vector<Tensor> maps;
  std::vector<std::string> titles;
  std::vector<Vector> keys;
  for (double sigma : sigmas) {
    const KernelRegression m = model(s, {.bandwidth = {sigma}});
    titles.push_back(fmt::format("Sigma {}", sigma));
    panels.push_back(fit_panel(s, m.predict(at).values.values, titles.back()));
    maps.push_back(m.weights(at));
    keys.push_back(m.effective_keys(at));
  }
  page.draw("width-fits", row_of(panels),
            {"Truth solid, estimate dashed. Narrower kernel, more detail: first the curve's, then the noise's.",
             "实线是真实曲线，虚线是估计。核越窄，细节越多：先是曲线的细节，再是噪声的。"});
  Figure bands = map_row(maps, titles);
  bands.colours.per_panel = true;
  page.draw(
      "width-weights", bands,
      {"Narrower kernel, narrower band. Each map has its own scale.", "核越窄，权重带越窄。每幅图各用自己的色标。"});
  bool growing = true;
  for (size_t i = 0; i < 50; ++i)
    for (size_t k = 1; k < 4; ++k) growing = growing && keys[k][i] >= keys[k - 1][i] - 1e-9;
  page.claim(
      growing,
      {"For every query the effective number of keys grows with the width: a wider kernel is a softmax at a higher temperature.",
       "对每个查询，有效键数都随宽度增大：更宽的核就是温度更高的 softmax。"},
      fmt::format("mean {:.1f}, {:.1f}, {:.1f}, {:.1f} keys", mean(keys[0]), mean(keys[1]), mean(keys[2]),
                  mean(keys[3])));
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
  page.claim(smoother >= 95,
             {"Each wider kernel gives a smoother curve, in nearly all of 100 data sets.",
              "在 100 份数据中几乎每一份上，核每宽一档，曲线就更光滑。"},
             fmt::format("{} of 100 data sets", smoother));
  page.claim(median(errors[2]) < median(errors[0]) && median(errors[2]) < median(errors[3]),
             {"Neither the narrowest nor the widest is best: 0.5 beats 0.1 and 1 in the median.",
              "最窄和最宽都不是最好：按中位数，0.5 优于 0.1 和 1。"},
             fmt::format("test errors {:.3f}, {:.3f}, {:.3f}, {:.3f}", median(errors[0]), median(errors[1]),
                         median(errors[2]), median(errors[3])));
}

}  // namespace qkv::labs::regression
