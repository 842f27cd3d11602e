// Lab 10.2, exercises about learning: new poolings trained leave-one-out, and the width learned without leaving out.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/core/parallel.h"
#include "qkv/labs/regression.h"
#include "qkv/labs/show.h"
#include "qkv/nn/layers.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/loss.h"
#include "qkv/ops/shape.h"
#include "qkv/train/optimizer.h"

namespace qkv::labs::regression {
namespace {

// Scorers for inputs of one dimension: q (1, 1, Lq, 1), k (1, 1, Lk, 1) -> (1, 1, Lq, Lk). Widths are learned as
// logarithms, so they stay positive, and start at 1.

Tensor differences(const Tensor& q, const Tensor& k) { return sub(q, transpose(k)); }
Tensor minus_half_square(const Tensor& u) { return scale(mul(u, u), -0.5f); }

/// The book's pooling: one width for all.
struct OneWidth {
  Tensor log_w = parameter(zeros({1}));
  Tensor scores(const Tensor& q, const Tensor& k) const {
    return minus_half_square(mul(differences(q, k), exp(log_w)));
  }
  void visit(auto&& f) { f("log_w", log_w); }
};

/// A width that depends on where the query is: log w is linear between knots at 0, 1, ..., 5.
struct WidthByPlace {
  Tensor log_w = parameter(zeros({6, 1}));
  Tensor w_at(const Tensor& x) const {
    Tensor hats = zeros({x.numel(), 6});
    for (int64_t i = 0; i < x.numel(); ++i) {
      const float at = std::clamp(x.ptr()[i], 0.f, 4.9999f);
      const auto left = static_cast<int64_t>(at);
      hats.mutable_ptr()[i * 6 + left] = 1 - (at - static_cast<float>(left));
      hats.mutable_ptr()[i * 6 + left + 1] = at - static_cast<float>(left);
    }
    return exp(matmul(hats, log_w));
  }
  Tensor scores(const Tensor& q, const Tensor& k) const { return minus_half_square(mul(differences(q, k), w_at(q))); }
  void visit(auto&& f) { f("log_w", log_w); }
};

/// A narrow peak on a wide foot: K = exp(-(u w)^2 / 2) (1 + c exp(-(u v)^2 / 2)), as a logarithm.
struct TwoWidths {
  Tensor log_w = parameter(zeros({1})), log_v = parameter(full({1}, 0.7f)), log_c = parameter(zeros({1}));
  Tensor scores(const Tensor& q, const Tensor& k) const {
    const Tensor u = differences(q, k);
    const Tensor foot = minus_half_square(mul(u, exp(log_w))),
                 peak = exp(add(minus_half_square(mul(u, exp(log_v))), log_c));
    return add(foot, log(shift(peak, 1)));
  }
  void visit(auto&& f) { f("log_w", log_w), f("log_v", log_v), f("log_c", log_c); }
};

/// Epanechnikov's kernel with a learned reach: keys farther than 1 / w get exactly nothing.
struct LearnedReach {
  Tensor log_w = parameter(zeros({1}));
  Tensor scores(const Tensor& q, const Tensor& k) const { return Epanechnikov{exp(log_w)}.scores(q, k); }
  void visit(auto&& f) { f("log_w", log_w); }
};

/// No kernel at all: a perceptron with 24 hidden units scores the pair (q, k) and has to find out that nearness
/// matters.
struct PerceptronScore {
  Linear first, second;
  explicit PerceptronScore(const Rng& rng) : first(2, 24, rng.at("first")), second(24, 1, rng.at("second")) {}
  Tensor scores(const Tensor& q, const Tensor& k) const {
    const int64_t lq = q.size(2), lk = k.size(2);
    const Tensor pairs = concat({repeat_interleave(reshape(q, {lq, 1}), lk, 0), tile(reshape(k, {lk, 1}), {lq, 1})}, 1);
    return scale(reshape(second(first(shift(pairs, -2.5f), Activation::tanh)), {1, 1, lq, lk}), 10);
  }
  void visit(auto&& f) { f("first", first), f("second", second); }
};

enum class LeaveOut { yes, no };

struct Training {
  int steps = 150;
  float rate = 0.05f;
  LeaveOut leave_out = LeaveOut::yes;
};

/// Adam on the mean squared error of the training points; calls after(step, loss) when a step is done.
template <class S, class After>
void train(S& scorer, const Sample& s, const Training& training, After&& after) {
  const Tensor x = column(s.x), y = column(s.y);
  const Mask mask = training.leave_out == LeaveOut::yes ? Mask::drop(eye(x.size(0))) : Mask::none();
  const Parameters all = flatten(scorer);
  Adam adam;
  GradArena gradients = all.grad_arena();
  for (int step = 0; step < training.steps; ++step) {
    double loss = 0;
    {
      Tape tape(gradients);
      const Tensor error = squared_error(attend(scorer, x, x, y, mask).output, y);
      tape.backward(error);
      loss = error.item();
    }
    adam.step(all, gradients.flat(), training.rate);
    after(step, loss);
  }
}

struct Fitted {
  Vector prediction;  // at the test inputs
  Tensor weights;     // (50, n)
  Vector losses;
};

template <class S>
Fitted fitted(S scorer, const Sample& s, const Training& training = {}) {
  Fitted out;
  train(scorer, s, training, [&](int, double loss) { out.losses.push_back(loss); });
  const Attended pool = attend(scorer, column(test_x()), column(s.x), column(s.y));
  out.prediction.assign(pool.output.data().begin(), pool.output.data().end());
  out.weights = pool.weights.matrix().viewed({50, static_cast<int64_t>(s.x.size())});
  return out;
}

constexpr int kPoolings = 5;
const char* const kNames[kPoolings] = {"one width", "width by place", "two widths", "Epanechnikov, learned reach",
                                       "perceptron score"};

const char* const kChineseNames[kPoolings] = {"一个宽度", "随位置变化的宽度", "两个宽度", "Epanechnikov，学习作用范围",
                                              "感知机评分"};

Fitted fitted(int pooling, const Sample& s, const Rng& rng) {
  switch (pooling) {
    case 0:
      return fitted(OneWidth{}, s);
    case 1:
      return fitted(WidthByPlace{}, s);
    case 2:
      return fitted(TwoWidths{}, s);
    case 3:
      return fitted(LearnedReach{}, s);
    default:
      return fitted(PerceptronScore(rng), s, {.steps = 200, .rate = 0.02f});
  }
}

/// Only the first panel names its curves.
void draw_poolings(Page& page, const Sample& s, const std::vector<Fitted>& all) {
  Figure fits, losses;
  fits.cols = 4;
  fits.share_y = true;
  Tensor maps = Tensor::empty({4, 50, 50});
  std::vector<std::string> titles;
  std::vector<Series> curve;
  for (int p = 0; p < kPoolings; ++p) {
    Vector steps;
    for (size_t i = 0; i < all[static_cast<size_t>(p)].losses.size(); ++i) steps.push_back(static_cast<double>(i + 1));
    curve.push_back({kNames[p], steps, all[static_cast<size_t>(p)].losses});
    if (p == 0) continue;
    Panel panel{.content = Curves{fit_series(s, zh_test_y(), all[static_cast<size_t>(p)].prediction)},
                .title = kNames[p],
                .x = {.label = "x", .low = 0, .high = 5},
                .y = {.label = p == 1 ? "y" : "", .low = -1, .high = 5}};
    if (p > 1)
      for (Series& line : std::get<Curves>(panel.content).series) line.name.clear();
    fits.panels.push_back(panel);
    titles.push_back(kNames[p]);
    const Tensor& w = all[static_cast<size_t>(p)].weights;
    std::copy(w.data().begin(), w.data().end(), maps.mutable_ptr() + (p - 1) * 2500);
  }
  page.draw("new-fits", fits, {"Four new poolings after leave-one-out training.", "留一法训练之后的四种新汇聚。"});
  Figure heat = weights_figure(maps, titles);
  page.draw(
      "new-weights", heat,
      {"Their weights. The width by place makes a band that widens and narrows; the perceptron knows no distance: it sends a query "
       "wherever values of the right height are, near or far.",
       "它们的权重。随位置变化的宽度形成有宽有窄的带；感知机不知道距离：哪里有高度合适的值，它就让查询看向哪里，不论远近。"});
  page.draw("new-losses", curves(curve, {.label = "step"}, {.label = "leave-one-out error", .low = 0}),
            {"Training, with Adam.", "用 Adam 训练的过程。"});
}

}  // namespace

void new_poolings_step(Page& page) {
  page.heading({"Exercise 10.2.4: other learned poolings", "练习 10.2.4：设计别的带参数汇聚"});
  page.say(
      {"Whatever gives a score can be trained. Each of these is a type with one function `scores(q, k)`; `attend` does the rest, and the "
       "diagonal is masked so that no point sees itself. **Width by place**: $w(x)$ is learned at $x = 0, 1, \\ldots, 5$ and interpolated. "
       "**Two widths**: a narrow peak on a wide foot, so that a lonely query still finds help. **Learned reach**: Epanechnikov's kernel, "
       "which ignores what is far. **Perceptron**: a network scores the pair, with no distance built in.",
       "凡是能给出分数的，都可以训练。下面每一种都是一个类型，只有一个函数 `scores(q, k)`，其余由 `attend` 完成；对角线被掩蔽，所以没有点能"
       "看见自己。**随位置变化的宽度**：在 $x = 0, 1, \\ldots, 5$ 处学习 $w(x)$，中间插值。**两个宽度**：宽底座上的窄峰，孤立的查询也能得到"
       "帮助。**学习作用范围**：Epanechnikov 核，忽略远处的键。**感知机评分**：用网络给一对 (q, k) 打分，不预设任何距离。"});
  page.formula("K(u) = \\exp(-\\frac{(u w)^2}{2}) + c \\exp(-\\frac{u^2 (w^2 + v^2)}{2})");
  const Sample s = page_sample(page);
  constexpr int kRuns = 12;
  std::vector<Fitted> mine(kPoolings);
  std::vector<Vector> errors(kPoolings, Vector(kRuns));
  parallel_for(kPoolings * (kRuns + 1), 1e9, [&](int64_t task) {
    const SerialScope serial;
    const int pooling = static_cast<int>(task % kPoolings);
    const auto p = static_cast<size_t>(pooling), run = static_cast<size_t>(task / kPoolings);
    if (run == kRuns)
      mine[p] = fitted(pooling, s, rng_of(page.seed()).at("perceptron"));
    else
      errors[p][run] =
          zh_error(fitted(pooling, zh_sample(rng_of(run).at("zh")), rng_of(run).at("perceptron")).prediction);
  });
  draw_poolings(page, s, mine);
  std::vector<NamedRow> rows;
  int64_t good = 0;
  for (size_t p = 0; p < kPoolings; ++p) {
    rows.push_back({{kNames[p], kChineseNames[p]},
                    {rounded(mine[p].losses.front(), 4), rounded(mine[p].losses.back(), 4),
                     rounded(zh_error(mine[p].prediction), 3), rounded(median(errors[p]), 3)}});
    good += median(errors[p]) < 0.115;
  }
  named_table(page,
              {{"pooling", "汇聚方式"},
               {"left-out error before", "训练前留一误差"},
               {"after", "训练后"},
               {"test error", "测试误差"},
               {"median of 12 data sets", "12 份数据的中位数"}},
              rows);
  page.claim(good >= 4,
             {"With smaller steps, at least four of the five beat the book's five big ones (0.115) in the median.",
              "步子小一些，五种之中至少四种的中位数优于书中的五大步（0.115）。"},
             fmt::format("{} of {} poolings", good, kPoolings));
  page.say(
      {"The lesson is a modest one: fifty noisy points pay for one width, and hardly for six or for a network. What the extra freedom "
       "gains in fit it loses in variance.",
       "结论很朴素：五十个带噪声的点足以确定一个宽度，却很难支撑六个宽度或一个网络。多出来的自由度换来的贴合，又在方差上还了回去。"});
}

void leaving_out_step(Page& page) {
  page.heading(
      {"Exercise 11.2.2: learning the width without leaving out, and with", "练习 11.2.2：不留一与留一地学习宽度"});
  page.say(
      {"If a point may look at itself, the best advice is its own value: the training error goes to 0 as the width goes to 0, and gradient "
       "descent follows it there. Left out, a point has to be explained by its neighbours, and there is a best width.",
       "如果一个点可以看见自己，最好的参考就是它自己的值：宽度趋于 0 时训练误差趋于 "
       "0，梯度下降会一路跟过去。把它自己排除在外，就必须由邻居来解释，于是存在一个最佳宽度。"});
  const Sample s = page_sample(page);
  const KernelRegression m = model(s);
  Vector h, inside, left_out, test;
  for (int i = 0; i <= 60; ++i) {
    h.push_back(0.003 * std::pow(1000.0, i / 60.0));
    const KernelRegression at = m.with({.bandwidth = {h.back()}});
    inside.push_back(mean_square_difference(at.predict(m.x()).values.values, s.y));
    left_out.push_back(leave_one_out_loss(s, 1 / h.back()) / static_cast<double>(s.x.size()));
    test.push_back(zh_error(at.predict(Points::of(test_x())).values.values));
  }
  Vector steps, width_in, width_out;
  OneWidth in, out;
  const auto follow = [](OneWidth& scorer, Vector& widths) {
    return [&](int, double) { widths.push_back(std::exp(-double{scorer.log_w.item()})); };
  };
  train(in, s, {.steps = 250, .rate = 0.03f, .leave_out = LeaveOut::no}, follow(in, width_in));
  train(out, s, {.steps = 250, .rate = 0.03f}, follow(out, width_out));
  for (int i = 1; i <= 250; ++i) steps.push_back(i);
  Figure figure;
  figure.cols = 2;
  figure.panels = {{.content = Curves{{{"training", h, inside, line_style("m--")},
                                       {"left out", h, left_out, line_style("b-")},
                                       {"test", h, test, line_style("k:")}}},
                    .x = {.label = "width", .low = 0.003, .high = 3, .scale = AxisScale::log},
                    .y = {.label = "mean squared error", .low = 0, .high = 1.5}},
                   {.content = Curves{{{"point sees itself", steps, width_in, line_style("m--")},
                                       {"left out", steps, width_out, line_style("b-")}}},
                    .x = {.label = "step", .low = 0, .high = 250},
                    .y = {.label = "width", .scale = AxisScale::log}}};
  page.draw(
      "leaving-out", figure,
      {"Left: three errors over the width; the left-out one carries the noise's 0.25 but has its minimum near the test error's. "
       "Right: the width during training.",
       "左：三种误差随宽度的变化；留一误差含有 0.25 的噪声底，但最小值的位置与测试误差相近。右：训练中宽度的变化。"});
  Vector fine;
  for (int i = 0; i <= 1000; ++i) fine.push_back(i * 0.005);
  std::vector<Series> collapsed = fit_series(s, zh_test_y(), {});
  collapsed[1] = {"Pred", fine, m.with({.bandwidth = {0.003}}).predict(Points::of(fine)).values.values,
                  line_style("m--")};
  page.draw(
      "collapsed-fit", curves(collapsed, {.label = "x", .low = 0, .high = 5}, {.label = "y", .low = -1, .high = 5}),
      {"Where learning without leaving out leads: every point explains itself, and between points the nearest one rules.",
       "不留一的学习通向这里：每个点只解释自己，点与点之间由最近的点说了算。"});
  const double tiny = mean_square_difference(m.with({.bandwidth = {1e-7}}).predict(m.x()).values.values, s.y);
  page.claim(tiny < 1e-9 && width_in.back() < width_out.back(),
             {"(a) Seeing itself, the training error has no bottom but 0, and the width collapses.",
              "（a）能看见自己时，训练误差一直降到 0，宽度坍缩。"},
             fmt::format("training error {:.0e} at width 1e-7; learned widths {:.3f} and {:.3f}", tiny, width_in.back(),
                         width_out.back()));

  Vector chosen, best, gap, width_ratio;
  int64_t smallest = 0;
  for (uint64_t run = 0; run < 60; ++run) {
    const Sample d = zh_sample(rng_of(run).at("zh"));
    const KernelRegression r = model(d);
    double in_best = 1e9, test_best = 1e9, h_in = 0, h_test = 0;
    for (double v : h) {
      const KernelRegression at = r.with({.bandwidth = {v}});
      const double e = mean_square_difference(at.predict(r.x()).values.values, d.y),
                   t = zh_error(at.predict(Points::of(test_x())).values.values);
      if (e < in_best) in_best = e, h_in = v;
      if (t < test_best) test_best = t, h_test = v;
    }
    const double cv = cross_validate(r).bandwidth[0];
    smallest += h_in == h.front();
    chosen.push_back(zh_error(fit(d, cv)));
    best.push_back(test_best);
    width_ratio.push_back(std::abs(std::log(cv / h_test)));
  }
  page.claim(smallest == 60,
             {"In all 60 data sets the training error is least at the narrowest width of the grid.",
              "在全部 60 份数据上，训练误差都在网格里最窄的宽度处最小。"},
             fmt::format("{} of 60 data sets", smallest));
  page.claim(
      median(chosen) < 2 * median(best),
      {"(b) Left out, it does not collapse; one number chosen from fifty points still varies, and the test error is somewhat above "
       "the best possible.",
       "（b）留一之后不再坍缩；但从五十个点里选出的一个数仍有波动，测试误差比可能的最好结果略高。"},
      fmt::format("median {:.3f}, best {:.3f}; width off by a factor of {:.2f}", median(chosen), median(best),
                  std::exp(median(width_ratio))));
}

}  // namespace qkv::labs::regression
