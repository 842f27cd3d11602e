// Lab 10.2, exercises about the width: more data, what w tells, a hyper-parameter, how fast the width should shrink.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "qkv/core/parallel.h"
#include "qkv/labs/both.h"
#include "qkv/labs/regression.h"
#include "qkv/labs/show.h"

namespace qkv::labs::regression {
namespace {

Vector log_grid(double low, double high, int count) {
  Vector v;
  for (int i = 0; i < count; ++i) v.push_back(low * std::pow(high / low, static_cast<double>(i) / (count - 1)));
  return v;
}

/// What width 1 converges to: the truth itself, smoothed with the kernel cut off at 0 and 5 (Simpson's rule).
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
      if (e < best) best = e, width = h;
    }
    g.best += best / data_sets;
    g.width += width / data_sets;
  }
  return g;
}

/// Note 001: "with few data the window must be small". `usual` is the best width for 50 points, `small` the one for
/// 5,000.
void few_data(Page& page, double usual, double small) {
  page.say(
      {"**\"With few data one needs a small window, so the curve is not smooth.\"** Note 001 has it the wrong way round. With few data a "
       "small window holds one or two points: the curve steps from one noisy value to the next, and this is why it is not smooth. Few data "
       "need a **wider** window, to have enough to average; what that costs is detail, not smoothness. Sixty data sets of 10 points:",
       "**“数据少时窗口要小，所以曲线不平滑。”** 笔记 001 的这句话说反了。数据少而窗口小，窗口里只有一两个点，曲线就从一个带噪声的值跳到下一"
       "个，不平滑正是由此而来。数据少时需要**更宽**的窗口，才有足够的点可以平均；代价是丢失细节，而不是不平滑。六十份各 10 个点的数据："});
  constexpr int64_t kFew = 10;
  constexpr int kSets = 60;
  const Rng rng = rng_of(page.seed()).at("few");
  const Growth few = growth(rng, kFew, kSets);
  double narrow_error = 0, wide_error = 0, narrow_rough = 0, wide_rough = 0;
  for (uint64_t k = 0; k < kSets; ++k) {
    const Sample s = zh_sample(rng.at(uint64_t{kFew}).at(k), kFew);
    const Vector narrow = fit(s, small), wide = fit(s, few.width);
    narrow_error += zh_error(narrow) / kSets, wide_error += zh_error(wide) / kSets;
    narrow_rough += roughness(narrow) / kSets, wide_rough += roughness(wide) / kSets;
  }
  named_table(
      page, {{"10 points", "10 个点"}, {"width", "宽度"}, {"mean test error", "平均测试误差"}, {"roughness", "粗糙度"}},
      {{{"best for 5,000 points", "适合 5,000 个点的"},
        {rounded(small, 3), rounded(narrow_error, 3), rounded(narrow_rough, 3)}},
       {{"best for 10 points", "适合 10 个点的"},
        {rounded(few.width, 3), rounded(wide_error, 3), rounded(wide_rough, 3)}}});
  page.claim(few.width > usual && wide_error < narrow_error && wide_rough < narrow_rough,
             {"With 10 points the best window is wider than with 50, and beats a small one in error and in smoothness.",
              "只有 10 个点时，最佳窗口比 50 个点时更宽；它的误差比小窗口小，曲线也更平滑。"},
             fmt::format("best widths {:.3f} for 10 points, {:.3f} for 50; error {:.3f} against {:.3f}", few.width,
                         usual, wide_error, narrow_error));
}

}  // namespace

void more_data_step(Page& page) {
  page.heading({"Exercise 10.2.1: does more data help the non-parametric estimator?",
                "练习 10.2.1：数据更多，非参数估计会更好吗？"});
  page.say(
      {"It is often said, in note 001 too, that with enough data it converges to the truth. That needs a second half of the sentence: **if "
       "the width shrinks as the data grow**. At width 1 more data remove the noise and leave the smoothing; the limit is the truth "
       "smoothed with that kernel, and its error can be computed.",
       "常有人说（笔记 001 也这样说），数据足够多时它会收敛到真实曲线。这句话还缺后半句：**前提是宽度随数据增多而缩小**。宽度固定为 1 "
       "时，更多的数据只能消除噪声，平滑造成的偏差仍在；极限是用该核平滑过的真实曲线，它的误差可以直接算出。"});
  const Vector limit_curve = smoothed_truth();
  const double limit = zh_error(limit_curve);
  const Vector sizes = {50, 500, 5000, 100000};
  const int data_sets[] = {60, 20, 6, 1};
  Vector fixed, best, width;
  std::vector<std::vector<std::string>> rows;
  const Rng rng = rng_of(page.seed()).at("growth");
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Growth g = growth(rng, static_cast<int64_t>(sizes[i]), data_sets[i]);
    fixed.push_back(g.fixed), best.push_back(g.best), width.push_back(g.width);
    rows.push_back({fmt::format("{}", sizes[i]), rounded(g.fixed, 3), rounded(g.best, 4), rounded(g.width, 3)});
  }
  page.table({{"n", "n"},
              {"test error at width 1", "宽度 1 的测试误差"},
              {"at the best width of a grid", "网格中最佳宽度的误差"},
              {"that width", "最佳宽度"}},
             rows);
  page.draw("more-data-error",
            curves({{"width 1", sizes, fixed, line_style("mo--")},
                    {"best width", sizes, best, line_style("bo-")},
                    {"limit of width 1", {50, 100000}, {limit, limit}, line_style("k:")}},
                   {.label = "n", .low = 40, .high = 130000, .scale = AxisScale::log},
                   {.label = "test error", .low = 1e-4, .high = 1, .scale = AxisScale::log}),
            {"A fixed width stops at its limit; the best width keeps improving.",
             "固定宽度停在它的极限上；最佳宽度不断改进。"});
  const Sample many = zh_sample(rng.at("fits"), 100000);
  LineStyle thick = line_style("-");
  thick.colour = Colour{185, 185, 185};
  thick.width = 4;
  page.draw("more-data-fits",
            curves({{"Truth", test_x(), zh_test_y(), thick},
                    {"width 1", test_x(), fit(many, 1.0), line_style("m--")},
                    {"width 0.03", test_x(), fit(many, 0.03), line_style("b-.")}},
                   {.label = "x", .low = 0, .high = 5}, {.label = "y", .low = -1, .high = 5}),
            {"A hundred thousand points: width 1 is as flat as with fifty, width 0.03 lies on the truth.",
             "十万个点：宽度 1 和五十个点时一样平，宽度 0.03 与真实曲线重合。"});
  page.claim(std::abs(fixed[3] - limit) < 0.01,
             {"At width 1 the error goes to that of the smoothed truth, not to 0.",
              "宽度为 1 时，误差趋于平滑后真实曲线的误差，而不是 0。"},
             fmt::format("{:.4f} at n = 100,000, limit {:.4f}", fixed[3], limit));
  page.claim(best[0] > 2 * best[1] && best[1] > 2 * best[2] && best[2] > 2 * best[3] && best[3] < 0.001,
             {"At the best width the error falls with every step, below a thousandth.",
              "取最佳宽度时，误差逐级下降，降到千分之一以下。"},
             fmt::format("errors {:.3f}, {:.3f}, {:.4f}, {:.5f}", best[0], best[1], best[2], best[3]));
  page.claim(width[0] > width[1] && width[1] > width[2] && width[2] > width[3],
             {"And that width shrinks as n grows.", "并且最佳宽度随 n 增大而缩小。"},
             fmt::format("widths {:.3f}, {:.3f}, {:.3f}, {:.3f}", width[0], width[1], width[2], width[3]));
  few_data(page, width[0], width[2]);
}

void meaning_of_w_step(Page& page) {
  page.heading({"Exercise 10.2.2: what does w tell, and why does it sharpen the weights?",
                "练习 10.2.2：w 说明什么？为什么它让权重更集中？"});
  page.say(
      {"$1/|w|$ is the distance over which two inputs still speak for each other: the scale on which the curve changes, made larger where "
       "noise has to be averaged away. As $w$ grows, differences between scores grow, and softmax gives more to the nearest key.",
       "$1/|w|$ 是两个输入还能互相说明问题的距离：也就是曲线变化的尺度，需要平均掉噪声时会更大一些。$w$ 增大，分数之间的差距拉大，softmax "
       "就把更多权重给最近的键。"});
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
    step_w.push_back(std::abs(now)), step_loss.push_back(leave_one_out_loss(s, now));
  }
  Figure figure;
  figure.cols = 2;
  figure.panels = {{.content = Curves{{{"L(w)", w, loss, line_style("-")},
                                       {"the five steps", step_w, step_loss, line_style("ro:")}}},
                    .x = {.label = "w", .low = 0.01, .high = 50, .scale = AxisScale::log},
                    .y = {.label = "leave-one-out loss", .low = 0}},
                   {.content = Curves{{{"", w, keys, line_style("-")}}},
                    .x = {.label = "w", .low = 0.01, .high = 50, .scale = AxisScale::log},
                    .y = {.label = "effective keys", .low = 0}}};
  page.draw("meaning-of-w", figure,
            {"Left: the loss that is minimised, and where the steps landed. Right: how many keys a query listens to.",
             "左：被最小化的损失，以及每一步落在哪里。右：一个查询听取多少个键。"});
  bool falling = true;
  for (size_t i = 1; i < keys.size(); ++i) falling = falling && keys[i] <= keys[i - 1] + 1e-9;
  page.claim(falling, {"A larger $w$ never attends to more keys.", "$w$ 越大，关注的键绝不会更多。"},
             fmt::format("{:.1f} keys at w = 0.01, {:.1f} at w = 50", keys.front(), keys.back()));
  const int64_t pushed = count_above(collect([](const BookRun& r) { return r.w_first - r.w_start; }), 0);
  page.claim(
      pushed >= 270,
      {"The loss pushes $w$ up from nearly every start in (0, 1): a width of 1 or more blurs a curve that turns within 1.5, so sharper is "
       "better.",
       "几乎从 (0, 1) 中的每个起点出发，损失都把 $w$ 往上推：这条曲线在 1.5 的距离内就会转向，宽度大于等于 1 会把它抹平，所以更集中更好。"},
      fmt::format("first step upwards in {} of 300 runs", pushed));
}

void width_choice_step(Page& page) {
  page.heading(
      {"Exercise 10.2.3: a hyper-parameter for the non-parametric estimator", "练习 10.2.3：给非参数估计加一个超参数"});
  page.say(
      {"The width itself: divide the distance by $h$. It can come from a rule of thumb, or from leave-one-out cross-validation, which "
       "needs no gradient: compute the left-out error for a row of widths and take the best.",
       "就是宽度本身：把距离除以 $h$。它可以由经验法则给出，也可以用留一交叉验证来选，不需要梯度：对一列宽度计算留一误差，取最好的。"});
  page.formula("f(x) = \\sum_i \\softmax_i(-\\frac{(x - x_i)^2}{2 h^2}) y_i");
  constexpr int kRuns = 100;
  const Vector grid = log_grid(0.02, 3, 41);
  std::vector<Vector> curve(kRuns),
      chosen(kRuns);  // test error over the grid; rule, cross-validated, best of the grid, its width, local linear
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
    middle.push_back(median(at)), low.push_back(at[kRuns / 10]), high.push_back(at[kRuns - kRuns / 10]);
  }
  Figure figure = curves({{"median of 100 data sets", grid, middle, line_style("-")}},
                         {.label = "width h", .low = 0.02, .high = 3, .scale = AxisScale::log},
                         {.label = "test error", .low = 0.02, .high = 2, .scale = AxisScale::log});
  std::get<Curves>(figure.panels[0].content).bands = {{"middle 80 %", grid, low, high}};
  page.draw("error-by-width", figure,
            {"Too narrow, and the noise stays; too wide, and the curve goes. In between there is a broad optimum.",
             "太窄，噪声留下；太宽，曲线消失。中间有一个宽阔的最优区。"});
  const auto column_median = [&](size_t c) {
    Vector v;
    for (const Vector& row : chosen) v.push_back(row[c]);
    return median(v);
  };
  const double fixed = median(collect([](const BookRun&r) { return r.plain; })),
               learned = median(collect([](const BookRun&r) { return r.learned; }));
  named_table(
      page, {{"width", "宽度"}, {"median test error", "测试误差中位数"}},
      {{{"1", "1"}, {rounded(fixed, 3)}},
       {{"rule of thumb", "经验法则"}, {rounded(column_median(0), 3)}},
       {{"five gradient steps", "五步梯度下降"}, {rounded(learned, 3)}},
       {{"leave-one-out", "留一法"}, {rounded(column_median(1), 3)}},
       {{"leave-one-out, local linear", "留一法，局部线性"}, {rounded(column_median(4), 3)}},
       {both("best of the grid, {:.2f}", "网格中最好的，{:.2f}", column_median(3)), {rounded(column_median(2), 3)}}});
  page.claim(
      column_median(1) < learned && column_median(1) < column_median(0) && column_median(2) < column_median(1),
      {"A width by exact leave-one-out beats width 1, the rule and the five steps, and costs little against the best width in hindsight.",
       "用精确的留一法选宽度，优于宽度 1、经验法则和五步梯度下降；与事后才知道的最佳宽度相比，损失不大。"},
      fmt::format("{:.3f} against {:.3f}, {:.3f}, {:.3f}; best {:.3f}", column_median(1), fixed, column_median(0),
                  learned, column_median(2)));
}

}  // namespace qkv::labs::regression
