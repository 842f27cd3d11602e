// Lab 10.2, exercises about the width: more data, what w means, and the width as a hyper-parameter.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "qkv/core/parallel.h"
#include "qkv/labs/regression.h"
#include "qkv/labs/show.h"

namespace qkv::labs::regression {
namespace {

Vector log_grid(double low, double high, int count) {
  Vector v;
  for (int i = 0; i < count; ++i) v.push_back(low * std::pow(high / low, static_cast<double>(i) / (count - 1)));
  return v;
}

/// The limit of width 1: the truth smoothed with the kernel cut off at 0 and 5 (Simpson's rule).
Vector smoothed_truth() {
  constexpr int kSteps = 2000;
  Vector out;
  for (double x : test_x()) {
    double above = 0, below = 0;
    for (int i = 0; i <= kSteps; ++i) {
      const double t = 5.0 * i / kSteps, k = std::exp(-(x - t) * (x - t) / 2) * (i == 0 || i == kSteps ? 1
                                                                                 : i % 2               ? 4
                                                                                                       : 2);
      above += k * zh_truth(t);
      below += k;
    }
    out.push_back(above / below);
  }
  return out;
}

struct Growth {
  double fixed = 0, best = 0, width = 0;  // means over data sets: error at width 1, at the best width, and that width
};

Growth growth(const Rng& rng, int64_t n, int data_sets) {
  Growth g;
  for (int k = 0; k < data_sets; ++k) {
    const KernelRegression m = model(zh_sample(rng.at(static_cast<uint64_t>(n)).at(static_cast<uint64_t>(k)), n));
    double best = 1e9, width = 0;
    for (double h : log_grid(0.01, 1, 17)) {
      const double e = zh_error(m.with({.bandwidth = {h}}).predict(Points::of(test_x())).values.values);
      if (h > 0.999) g.fixed += e / data_sets;
      if (e < best) {
        best = e;
        width = h;
      }
    }
    g.best += best / data_sets;
    g.width += width / data_sets;
  }
  return g;
}

/// Note 001: "with few data the window must be small". `usual` is the best width for 50 points, `small` that for
/// 5,000.
void few_data(Page& page, double usual, double small) {
  page.say(tr(
      "**\"With few data one needs a small window, so the curve is not smooth.\"** Note 001 has it the wrong way "
      "round. With few data a small window holds one or two points: the curve steps from one noisy value to the next, "
      "which is why it is not smooth. Few data need a **wider** window, to have enough points to average; the cost is "
      "detail, not smoothness. Sixty data sets of 10 points:"));
  constexpr int64_t kFew = 10;
  constexpr int kSets = 60;
  const Rng rng = rng_of(page.seed()).at("few");
  const Growth few = growth(rng, kFew, kSets);
  double narrow_error = 0, wide_error = 0, narrow_rough = 0, wide_rough = 0;
  for (uint64_t k = 0; k < kSets; ++k) {
    const Sample s = zh_sample(rng.at(uint64_t{kFew}).at(k), kFew);
    const Vector narrow = fit(s, small), wide = fit(s, few.width);
    narrow_error += zh_error(narrow) / kSets;
    wide_error += zh_error(wide) / kSets;
    narrow_rough += roughness(narrow) / kSets;
    wide_rough += roughness(wide) / kSets;
  }
  named_table(page, {tr("10 points"), tr("width"), tr("mean test error"), tr("roughness")},
              {{tr("best for 5,000 points"), {rounded(small, 3), rounded(narrow_error, 3), rounded(narrow_rough, 3)}},
               {tr("best for 10 points"), {rounded(few.width, 3), rounded(wide_error, 3), rounded(wide_rough, 3)}}});
  page.claim(
      few.width > usual && wide_error < narrow_error && wide_rough < narrow_rough,
      tr("With 10 points the best window is wider than with 50, and beats a small one in both error and smoothness."),
      tr("best widths {few:.3f} for 10 points, {usual:.3f} for 50; error {wide_error:.3f} against {narrow_error:.3f}",
         "few"_a = few.width, "usual"_a = usual, "wide_error"_a = wide_error, "narrow_error"_a = narrow_error));
}

}  // namespace

void more_data_step(Page& page) {
  page.exercise("10.2.1");
  page.say(
      tr("It is often said, in note 001 too, that with enough data it converges to the truth. The sentence lacks its "
         "second half: **if the width shrinks as the data grow**. At width 1 more data remove the noise but leave the "
         "smoothing; the limit is the truth smoothed with that kernel, and its error can be computed."));
  const Vector limit_curve = smoothed_truth();
  const double limit = zh_error(limit_curve);
  const Vector sizes = {50, 500, 5000, 100000};
  const int data_sets[] = {60, 20, 6, 1};
  Vector fixed, best, width;
  std::vector<std::vector<std::string>> rows;
  const Rng rng = rng_of(page.seed()).at("growth");
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Growth g = growth(rng, static_cast<int64_t>(sizes[i]), data_sets[i]);
    fixed.push_back(g.fixed);
    best.push_back(g.best);
    width.push_back(g.width);
    rows.push_back({fmt::format("{}", sizes[i]), rounded(g.fixed, 3), rounded(g.best, 4), rounded(g.width, 3)});
  }
  page.table({verbatim("n"), tr("test error at width 1"), tr("at the best width of a grid"), tr("that width")}, rows);
  page.draw("more-data-error",
            curves({{tr("width 1"), sizes, fixed, line_style("mo--")},
                    {tr("best width"), sizes, best, line_style("bo-")},
                    {tr("limit of width 1"), {50, 100000}, {limit, limit}, line_style("k:")}},
                   {.label = "n", .low = 40, .high = 130000, .scale = AxisScale::log},
                   {.label = tr("test error"), .low = 1e-4, .high = 1, .scale = AxisScale::log}),
            tr("A fixed width stops at its limit; the best width keeps improving."));
  const Sample many = zh_sample(rng.at("fits"), 100000);
  LineStyle thick = line_style("-");
  thick.colour = Colour{185, 185, 185};
  thick.width = 4;
  page.draw("more-data-fits",
            curves({{tr("Truth"), test_x(), zh_test_y(), thick},
                    {tr("width 1"), test_x(), fit(many, 1.0), line_style("m--")},
                    {tr("width 0.03"), test_x(), fit(many, 0.03), line_style("b-.")}},
                   {.label = "x", .low = 0, .high = 5}, {.label = "y", .low = -1, .high = 5}),
            tr("A hundred thousand points: width 1 is as flat as with fifty, width 0.03 coincides with the truth."));
  page.claim(std::abs(fixed[3] - limit) < 0.01,
             tr("At width 1 the error converges to that of the smoothed truth, not to 0."),
             tr("{fixed:.4f} at n = 100,000, limit {limit:.4f}", "fixed"_a = fixed[3], "limit"_a = limit));
  page.claim(best[0] > 2 * best[1] && best[1] > 2 * best[2] && best[2] > 2 * best[3] && best[3] < 0.001,
             tr("At the best width the error falls at every step, to below a thousandth."),
             tr("errors {first:.3f}, {second:.3f}, {third:.4f}, {fourth:.5f}", "first"_a = best[0],
                "second"_a = best[1], "third"_a = best[2], "fourth"_a = best[3]));
  page.claim(width[0] > width[1] && width[1] > width[2] && width[2] > width[3],
             tr("The best width shrinks as n grows."),
             tr("widths {first:.3f}, {second:.3f}, {third:.3f}, {fourth:.3f}", "first"_a = width[0],
                "second"_a = width[1], "third"_a = width[2], "fourth"_a = width[3]));
  few_data(page, width[0], width[2]);
}

void meaning_of_w_step(Page& page) {
  page.exercise("10.2.2");
  page.say(tr(
      "$1/|w|$ is the distance over which one input still says something about another: the scale on which the curve "
      "changes, made larger where noise has to be averaged away. As $w$ grows, the differences between scores grow, "
      "and softmax gives more weight to the nearest key."));
  const Sample s = page_sample(page);
  const KernelRegression m = model(s);
  const Vector w = log_grid(0.01, 50, 71);
  Vector loss, keys, error;
  for (double v : w) {
    const KernelRegression at = m.with({.bandwidth = {1 / v}});
    loss.push_back(leave_one_out_loss(s, v));
    keys.push_back(mean(at.effective_keys(Points::of(test_x()))));
    error.push_back(zh_error(at.predict(Points::of(test_x())).values.values));
  }
  const Learned learned = page_learned(page);
  Vector step_w, step_loss;
  for (int e = 0; e <= 5; ++e) {
    const double now =
        e == 0
            ? learned.start[0]
            : learn_bandwidth(Points::of(s.x), Points::of(s.y), Rng(0), {.epochs = e, .start = learned.start[0]}).w[0];
    step_w.push_back(std::abs(now));
    step_loss.push_back(leave_one_out_loss(s, now));
  }
  Figure figure;
  figure.cols = 2;
  figure.panels = {{.content = Curves{{{"L(w)", w, loss, line_style("-")},
                                       {tr("the five steps"), step_w, step_loss, line_style("ro:")}}},
                    .x = {.label = "w", .low = 0.01, .high = 50, .scale = AxisScale::log},
                    .y = {.label = tr("leave-one-out loss"), .low = 0}},
                   {.content = Curves{{{"", w, keys, line_style("-")}}},
                    .x = {.label = "w", .low = 0.01, .high = 50, .scale = AxisScale::log},
                    .y = {.label = tr("effective keys"), .low = 0}}};
  page.draw(
      "meaning-of-w", figure,
      tr("Left: the loss being minimised, and where the steps landed. Right: how many keys a query effectively attends "
         "to."));
  bool falling = true;
  for (size_t i = 1; i < keys.size(); ++i) falling = falling && keys[i] <= keys[i - 1] + 1e-9;
  page.claim(falling, tr("With a larger $w$ a query never attends to more keys."),
             tr("{low:.1f} keys at w = 0.01, {high:.1f} at w = 50", "low"_a = keys.front(), "high"_a = keys.back()));
  const int64_t pushed = count_above(collect([](const BookRun& r) { return r.w_first - r.w_start; }), 0);
  page.claim(
      pushed >= 270,
      tr("The loss pushes $w$ up from nearly every start in (0, 1): a width of 1 or more blurs a curve that turns "
         "within a distance of 1.5, so sharper weights are better."),
      tr("first step upwards in {pushed} of 300 runs", "pushed"_a = pushed));
}

void width_choice_step(Page& page) {
  page.exercise("10.2.3");
  page.say(tr(
      "It is the width itself: divide the distance by $h$. It can come from a rule of thumb, or from leave-one-out "
      "cross-validation, which needs no gradient: compute the leave-one-out error for a series of widths and take the "
      "best."));
  page.formula("f(x) = \\sum_i \\softmax_i(-\\frac{(x - x_i)^2}{2 h^2}) y_i");
  constexpr int kRuns = 100;
  const Vector grid = log_grid(0.02, 3, 41);
  std::vector<Vector> curve(kRuns);   // test error over the grid
  std::vector<Vector> chosen(kRuns);  // rule, cross-validated, best of the grid, its width, local linear
  parallel_for(kRuns, 1e9, [&](int64_t k) {
    const Sample s = zh_sample(rng_of(static_cast<uint64_t>(k)).at("zh"));
    const KernelRegression m = model(s);
    const auto error = [&](const KernelRegression& r) {
      return zh_error(r.predict(Points::of(test_x())).values.values);
    };
    Vector& mine = curve[static_cast<size_t>(k)];
    for (double h : grid) mine.push_back(error(m.with({.bandwidth = {h}})));
    const auto best = std::min_element(mine.begin(), mine.end());
    const KernelRegression line = m.with({.estimator = Estimator::local_linear});
    chosen[static_cast<size_t>(k)] = {
        error(m.with({.bandwidth = rule_bandwidth(m.x(), KernelShape::gaussian)})),
        error(m.with({.bandwidth = cross_validate(m).bandwidth})), *best,
        grid[static_cast<size_t>(best - mine.begin())],
        error(line.with({.estimator = Estimator::local_linear, .bandwidth = cross_validate(line).bandwidth}))};
  });
  Vector middle, low, high;
  for (size_t g = 0; g < grid.size(); ++g) {
    Vector at;
    for (const Vector& c : curve) at.push_back(c[g]);
    std::sort(at.begin(), at.end());
    middle.push_back(median(at));
    low.push_back(at[kRuns / 10]);
    high.push_back(at[kRuns - kRuns / 10]);
  }
  Figure figure = curves({{tr("median of 100 data sets"), grid, middle, line_style("-")}},
                         {.label = tr("width h"), .low = 0.02, .high = 3, .scale = AxisScale::log},
                         {.label = tr("test error"), .low = 0.02, .high = 2, .scale = AxisScale::log});
  std::get<Curves>(figure.panels[0].content).bands = {{tr("middle 80 %"), grid, low, high}};
  page.draw("error-by-width", figure,
            tr("Too narrow, and the noise stays; too wide, and the curve disappears. In between is a broad optimum."));
  const auto column_median = [&](size_t c) {
    Vector v;
    for (const Vector& row : chosen) v.push_back(row[c]);
    return median(v);
  };
  const double fixed = median(collect([](const BookRun&r) { return r.plain; })),
               learned = median(collect([](const BookRun&r) { return r.learned; }));
  named_table(page, {tr("width"), tr("median test error")},
              {{verbatim("1"), {rounded(fixed, 3)}},
               {tr("rule of thumb"), {rounded(column_median(0), 3)}},
               {tr("five gradient steps"), {rounded(learned, 3)}},
               {tr("leave-one-out"), {rounded(column_median(1), 3)}},
               {tr("leave-one-out, local linear"), {rounded(column_median(4), 3)}},
               {tr("best of the grid, {width:.2f}", "width"_a = column_median(3)), {rounded(column_median(2), 3)}}});
  page.claim(
      column_median(1) < learned && column_median(1) < column_median(0) && column_median(2) < column_median(1),
      tr("A width chosen by exact leave-one-out beats width 1, the rule of thumb and the five gradient steps, and is "
         "not much worse than the best width in hindsight."),
      tr("{cross_validated:.3f} against {fixed:.3f}, {rule:.3f}, {learned:.3f}; best {best:.3f}",
         "cross_validated"_a = column_median(1), "fixed"_a = fixed, "rule"_a = column_median(0), "learned"_a = learned,
         "best"_a = column_median(2)));
}

}  // namespace qkv::labs::regression
