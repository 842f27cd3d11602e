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

/// A narrow peak on a wide base: K = exp(-(u w)^2 / 2) (1 + c exp(-(u v)^2 / 2)), as a logarithm.
struct TwoWidths {
  Tensor log_w = parameter(zeros({1})), log_v = parameter(full({1}, 0.7f)), log_c = parameter(zeros({1}));
  Tensor scores(const Tensor& q, const Tensor& k) const {
    const Tensor u = differences(q, k);
    const Tensor base = minus_half_square(mul(u, exp(log_w))),
                 peak = exp(add(minus_half_square(mul(u, exp(log_v))), log_c));
    return add(base, log(shift(peak, 1)));
  }
  void visit(auto&& f) {
    f("log_w", log_w);
    f("log_v", log_v);
    f("log_c", log_c);
  }
};

/// Epanechnikov's kernel with a learned reach: keys farther than 1 / w get exactly 0.
struct LearnedReach {
  Tensor log_w = parameter(zeros({1}));
  Tensor scores(const Tensor& q, const Tensor& k) const { return Epanechnikov{exp(log_w)}.scores(q, k); }
  void visit(auto&& f) { f("log_w", log_w); }
};

/// No kernel at all: a perceptron with 24 hidden units scores the pair (q, k) and must discover that nearness
/// matters.
struct PerceptronScore {
  Linear first, second;
  explicit PerceptronScore(const Rng& rng) : first(2, 24, rng.at("first")), second(24, 1, rng.at("second")) {}
  Tensor scores(const Tensor& q, const Tensor& k) const {
    const int64_t lq = q.size(2), lk = k.size(2);
    const Tensor pairs = concat({repeat_interleave(reshape(q, {lq, 1}), lk, 0), tile(reshape(k, {lk, 1}), {lq, 1})}, 1);
    return scale(reshape(second(first(shift(pairs, -2.5f), Activation::tanh)), {1, 1, lq, lk}), 10);
  }
  void visit(auto&& f) {
    f("first", first);
    f("second", second);
  }
};

enum class LeaveOut { yes, no };

struct Training {
  int steps = 150;
  float rate = 0.05f;
  LeaveOut leave_out = LeaveOut::yes;
};

/// Adam on the mean squared error of the training points; calls after(step, loss) after each step.
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
const Text kNames[kPoolings] = {tr("one width"), tr("width by place"), tr("two widths"),
                                tr("Epanechnikov, learned reach"), tr("perceptron score")};

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
  std::vector<Label> titles;
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
      for (Series& line : std::get<Curves>(panel.content).series) line.name = {};
    fits.panels.push_back(panel);
    titles.emplace_back(kNames[p]);
    const Tensor& w = all[static_cast<size_t>(p)].weights;
    std::copy(w.data().begin(), w.data().end(), maps.mutable_ptr() + (p - 1) * 2500);
  }
  page.draw("new-fits", fits, tr("Four new poolings after leave-one-out training."));
  Figure heat = weights_figure(maps, titles);
  page.draw(
      "new-weights", heat,
      tr("Their weights. The width by place gives a band that widens and narrows; the perceptron has no notion of "
         "distance: it sends a query to values of the right height, near or far."));
  page.draw("new-losses", curves(curve, {.label = tr("step")}, {.label = tr("leave-one-out error"), .low = 0}),
            tr("Training, with Adam."));
}

}  // namespace

void new_poolings_step(Page& page) {
  page.exercise("10.2.4");
  page.say(tr(
      "Any scoring function can be trained. Each of these is a type with one function `scores(q, k)`; `attend` does "
      "the rest, and the diagonal is masked so that no point sees itself. **Width by place**: $w(x)$ is learned at $x "
      "= 0, 1, \\ldots, 5$ and interpolated. **Two widths**: a narrow peak on a wide base, so that an isolated query "
      "still finds keys. **Learned reach**: Epanechnikov's kernel, which ignores distant keys. **Perceptron**: a "
      "network scores the pair, with no distance built in."));
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
    rows.push_back({kNames[p],
                    {rounded(mine[p].losses.front(), 4), rounded(mine[p].losses.back(), 4),
                     rounded(zh_error(mine[p].prediction), 3), rounded(median(errors[p]), 3)}});
    good += median(errors[p]) < 0.115;
  }
  named_table(
      page,
      {tr("pooling"), tr("leave-one-out error before"), tr("after"), tr("test error"), tr("median of 12 data sets")},
      rows);
  page.claim(
      good >= 4,
      tr("With smaller steps, at least four of the five poolings have a lower median error than the book's five large "
         "steps (0.115)."),
      tr("{good} of {poolings} poolings", "good"_a = good, "poolings"_a = kPoolings));
  page.claim(median(errors[0]) < std::min(median(errors[1]), median(errors[4])),
             tr("Fifty noisy points can determine one width, but hardly six, or a network: one width has the lower "
                "median error."),
             tr("one width {one:.3f}, width by place {place:.3f}, perceptron {network:.3f}",
                "one"_a = median(errors[0]), "place"_a = median(errors[1]), "network"_a = median(errors[4])));
  page.say(tr("The lesson is modest: what extra freedom gains in fit it loses in variance."));
}

void leaving_out_step(Page& page) {
  page.exercise("11.2.2");
  page.say(tr(
      "If a point may see itself, its own value is the best prediction: the training error goes to 0 as the width goes "
      "to 0, and gradient descent follows it there. If it is left out, its neighbours have to explain it, and there is "
      "a best width."));
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
  figure.panels = {{.content = Curves{{{tr("training"), h, inside, line_style("m--")},
                                       {tr("left out"), h, left_out, line_style("b-")},
                                       {tr("test"), h, test, line_style("k:")}}},
                    .x = {.label = tr("width"), .low = 0.003, .high = 3, .scale = AxisScale::log},
                    .y = {.label = tr("mean squared error"), .low = 0, .high = 1.5}},
                   {.content = Curves{{{tr("point sees itself"), steps, width_in, line_style("m--")},
                                       {tr("left out"), steps, width_out, line_style("b-")}}},
                    .x = {.label = tr("step"), .low = 0, .high = 250},
                    .y = {.label = tr("width"), .scale = AxisScale::log}}};
  page.draw(
      "leaving-out", figure,
      tr("Left: three errors over the width; the leave-one-out error includes the noise variance of 0.25, but its "
         "minimum is near that of the test error. Right: the width during training."));
  Vector fine;
  for (int i = 0; i <= 1000; ++i) fine.push_back(i * 0.005);
  std::vector<Series> collapsed = fit_series(s, zh_test_y(), {});
  collapsed[1] = {tr("Pred"), fine, m.with({.bandwidth = {0.003}}).predict(Points::of(fine)).values.values,
                  line_style("m--")};
  page.draw(
      "collapsed-fit", curves(collapsed, {.label = "x", .low = 0, .high = 5}, {.label = "y", .low = -1, .high = 5}),
      tr("Where learning without leaving out leads: every point explains itself, and between points the nearest one "
         "decides."));
  const double tiny = mean_square_difference(m.with({.bandwidth = {1e-7}}).predict(m.x()).values.values, s.y);
  page.claim(tiny < 1e-9 && width_in.back() < width_out.back(),
             tr("(a) When points see themselves, the training error falls all the way to 0 and the width collapses."),
             tr("training error {error:.0e} at width 1e-7; learned widths {inside:.3f} and {left_out:.3f}",
                "error"_a = tiny, "inside"_a = width_in.back(), "left_out"_a = width_out.back()));

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
      if (e < in_best) {
        in_best = e;
        h_in = v;
      }
      if (t < test_best) {
        test_best = t;
        h_test = v;
      }
    }
    const double cv = cross_validate(r).bandwidth[0];
    smallest += h_in == h.front();
    chosen.push_back(zh_error(fit(d, cv)));
    best.push_back(test_best);
    width_ratio.push_back(std::abs(std::log(cv / h_test)));
  }
  page.claim(smallest == 60,
             tr("In all 60 data sets the training error is smallest at the narrowest width of the grid."),
             tr("{count} of 60 data sets", "count"_a = smallest));
  page.claim(
      median(chosen) < 2 * median(best),
      tr("(b) With leave-one-out the width does not collapse; chosen from fifty points, it still varies, and the test "
         "error is somewhat above the best possible."),
      tr("median {chosen:.3f}, best {best:.3f}; width off by a factor of {factor:.2f}", "chosen"_a = median(chosen),
         "best"_a = median(best), "factor"_a = std::exp(median(width_ratio))));
}

}  // namespace qkv::labs::regression
