// Lab 0: the engine. How a gradient is computed and checked, and a first model trained with it.
#include <fmt/format.h>

#include <cmath>

#include "qkv/core/parallel.h"
#include "qkv/labs/sections.h"
#include "qkv/labs/show.h"
#include "qkv/nn/layers.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/loss.h"
#include "qkv/ops/reduce.h"
#include "qkv/ops/shape.h"
#include "qkv/train/fit.h"

namespace qkv::labs {
namespace {

void gradient_step(Page& page) {
  page.heading(tr("A gradient and how it is checked"));
  page.say(tr(
      "While a tape exists, operations record themselves on it; running it backward gives the derivative of the loss "
      "with respect to every parameter. Here the loss is"));
  page.formula("\\ell(w) = \\sum_i \\sin(w_i) \\exp(-w_i^2 / 2)");
  const auto loss = [](const Tensor& w) { return sum(mul(sin(w), exp(scale(mul(w, w), -0.5f)))); };
  const Tensor w = parameter(Tensor({4}, {-1.5f, -0.2f, 0.7f, 2}));
  Tape tape;
  tape.backward(loss(w));
  const Tensor gradient = tape.grad(w);

  std::vector<std::vector<std::string>> rows;
  double worst = 0;
  for (int64_t i = 0; i < 4; ++i) {
    const auto f = [](double x) { return std::sin(x) * std::exp(-x * x / 2); };
    const double x = w.ptr()[i], step = 1e-5, slope = (f(x + step) - f(x - step)) / (2 * step);
    worst = std::max(worst, std::abs(slope - gradient.ptr()[i]));
    rows.push_back({rounded(x, 1), rounded(gradient.ptr()[i], 7), rounded(slope, 7)});
  }
  page.table({verbatim("$w_i$"), tr("tape"), tr("central difference in double")}, rows);
  page.claim(worst < 1e-6, tr("The tape's gradient equals the difference quotient."),
             tr("largest difference {difference}", "difference"_a = tiny(worst)));
}

// 1 -> 32 -> tanh -> 32 -> tanh -> 1, fitted to the curve of section 10.2.
struct Curve {
  Linear first, second, third;
  explicit Curve(const Rng& rng)
      : first(1, 32, rng.at("first")), second(32, 32, rng.at("second")), third(32, 1, rng.at("third")) {}
  Tensor operator()(const Tensor& x) const { return third(second(first(x, Activation::tanh), Activation::tanh)); }
  void visit(auto&& f) {
    f("first", first);
    f("second", second);
    f("third", third);
  }
};

double truth(double x) { return 2 * std::sin(x) + std::pow(x, 0.8); }

struct CurveTask {
  const Curve& model;
  Tensor x, y;  // (n, 1)

  int64_t batches() const { return 1; }
  int64_t batch(int64_t, int64_t) const { return 0; }
  int64_t rows(int64_t) const { return x.size(0); }
  Loss loss(int64_t, int64_t begin, int64_t end, const Run&) const {
    const int64_t n = end - begin;
    const Tensor error = squared_error(model(x.part(begin, {n, 1})), y.part(begin, {n, 1}), Reduction::sum);
    return {error, static_cast<double>(n)};
  }
};

struct LossCurve : Observer {
  std::vector<double> step_number, loss;
  void step(const Progress& p) override {
    step_number.push_back(static_cast<double>(p.step));
    loss.push_back(p.batch_loss);
  }
};

struct Fitted {
  Curve model;
  LossCurve curve;
  std::vector<float> weights;
};

Fitted fit_curve(uint64_t seed, const Tensor& x, const Tensor& y) {
  Fitted result{Curve(Rng(seed).at("model")), {}, {}};
  Parameters all = flatten(result.model);
  Adam adam;
  Observer* observers[] = {&result.curve};
  fit(all, adam, {.epochs = 600, .rate = cosine_rate(0.02f, 600, 20), .seed = seed}, CurveTask{result.model, x, y},
      observers);
  result.weights.assign(all.flat().data().begin(), all.flat().data().end());
  return result;
}

void perceptron_step(Page& page) {
  page.heading(tr("A first model"));
  page.say(
      tr("Fifty noisy points on the curve of section 10.2, fitted by a perceptron with two hidden layers of 32 units, "
         "trained with Adam. Attention pooling will be compared with it: the network keeps weights and forgets the "
         "points, attention keeps the points."));
  page.formula("y_i = 2 \\sin(x_i) + x_i^{0.8} + \\epsilon, \\quad \\epsilon \\sim N(0, 0.5^2)");
  const Rng rng = Rng(page.seed()).at("engine");
  const Tensor x = sort(uniform({50}, rng.at("x"), 0, 5));
  Tensor y = Tensor::empty({50});
  for (int64_t i = 0; i < 50; ++i)
    y.mutable_ptr()[i] =
        static_cast<float>(truth(x.ptr()[i])) + 0.5f * rng.at("noise").normal(static_cast<uint64_t>(i));
  const Fitted fitted = fit_curve(page.seed(), x.viewed({50, 1}), y.viewed({50, 1}));

  page.draw("perceptron-loss",
            curves({{"", fitted.curve.step_number, fitted.curve.loss}}, {.label = tr("step")},
                   {.label = tr("loss"), .scale = AxisScale::log}),
            tr("Mean squared error on the training points, step by step."));
  const Tensor at = arange(0, 5, 0.1f);
  const Tensor predicted = fitted.model(at.viewed({50, 1})).viewed({50});
  Tensor exact = Tensor::empty({50});
  double mse = 0, spread = 0, mean = 0;
  for (int64_t i = 0; i < 50; ++i) exact.mutable_ptr()[i] = static_cast<float>(truth(at.ptr()[i]));
  for (float v : y.data()) mean += v / 50;
  for (int64_t i = 0; i < 50; ++i) {
    mse += std::pow(predicted.ptr()[i] - exact.ptr()[i], 2) / 50;
    spread += std::pow(mean - exact.ptr()[i], 2) / 50;
  }
  page.draw("perceptron-fit",
            curves({series(tr("Truth"), at, exact, "-"), series(tr("Pred"), at, predicted, "m--"),
                    series(tr("Data"), x, y, "o")},
                   {.label = "x", .low = 0, .high = 5}, {.label = "y", .low = -1, .high = 5}),
            tr("The true curve, the fit, and the training points."));
  page.claim(mse < spread, tr("The fit is closer to the truth than the mean of the data."),
             tr("mean squared error {fit:.3f}, with the mean {mean:.3f}", "fit"_a = mse, "mean"_a = spread));

  const int before = threads();
  set_threads(1);
  const bool same = fit_curve(page.seed(), x.viewed({50, 1}), y.viewed({50, 1})).weights == fitted.weights;
  set_threads(before);
  page.claim(same, tr("Trained again on one thread, every weight has the same bits."),
             tr("{threads} threads against 1", "threads"_a = before));
}

}  // namespace

Lab engine_lab() {
  return {"0", "engine", tr("The engine: gradients and a first model"), {gradient_step, perceptron_step}};
}

}  // namespace qkv::labs
