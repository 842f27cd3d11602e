// Lab 10.2, the Chinese edition's experiment: average, non-parametric and learned pooling on the page's own data.
#include <fmt/format.h>

#include <cmath>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/labs/regression.h"
#include "qkv/labs/show.h"
#include "qkv/ops/loss.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/tape.h"

namespace qkv::labs::regression {

void average_step(Page& page) {
  page.heading(tr("The data, and average pooling"));
  page.say(
      tr("Fifty inputs are drawn uniformly from (0, 5) and sorted; the outputs carry normal noise of **standard "
         "deviation** 0.5 (a variance of 0.25: this is what N(0, 0.5) means in code). The test inputs are 0, 0.1, ..., "
         "4.9, and the truth there has no noise."));
  page.formula("y_i = 2 \\sin(x_i) + x_i^{0.8} + \\epsilon");
  const Sample s = page_sample(page);
  Vector squares;
  for (uint64_t k = 0; k < 100; ++k) {
    const Sample other = zh_sample(rng_of(k).at("zh"));
    squares.push_back(mean_square_difference(other.y, values(zh_truth, other.x)));
  }
  page.fact(tr("The standard deviation of the noise, over 100 data sets."), rounded(std::sqrt(mean(squares)), 4));
  page.say(tr("The simplest pooling gives every value the same weight, for any query: a horizontal line."));
  const Vector flat = fit(s, {.estimator = Estimator::average});
  page.draw(
      "average-fit", fit_figure(s, flat),
      tr("Average pooling ignores the query. Here and in all figures of this lab the truth is solid and the estimate "
         "dashed."),
      bench(page, s).set("fit", "average"));
  const Attended constant = attend(Constant{}, column(test_x()), column(s.x), column(s.y));
  double worst = 0;
  for (size_t i = 0; i < flat.size(); ++i)
    worst = std::max({worst, std::abs(flat[i] - mean(s.y)), std::abs(constant.output.ptr()[i] - mean(s.y))});
  page.claim(
      worst < 1e-5, tr("Attention with a constant score gives the mean of the values for every query."),
      tr("mean {mean:.3f}, largest difference {difference}", "mean"_a = mean(s.y), "difference"_a = tiny(worst)));
}

void plain_step(Page& page) {
  page.heading(tr("Non-parametric attention pooling"));
  page.say(tr(
      "Nadaraya and Watson weigh a value by how near its key is to the query. With a Gaussian kernel of width 1 the "
      "weights are a softmax of minus half the squared distance; the factor $1/\\sqrt{2\\pi}$ of the density cancels. "
      "There is nothing to train."));
  page.formula(
      "f(x) = \\sum_{i=1}^n \\frac{K(x - x_i)}{\\sum_{j=1}^n K(x - x_j)} y_i = \\sum_{i=1}^n \\softmax_i(-\\frac{1}{2} "
      "(x - x_i)^2) y_i");
  const Sample s = page_sample(page);
  const KernelRegression plain = model(s);
  const Vector curve = plain.predict(Points::of(test_x())).values.values;
  page.draw(
      "plain-fit", fit_figure(s, curve),
      tr("Smooth and nearer to the truth than the mean, but flattened: the peak is too low and the left end far too "
         "high."),
      bench(page, s).set("h", 1.0));
  page.draw("plain-weights", weights_figure(plain.weights(Points::of(test_x()))),
            tr("One row per query: the nearer a key, the larger its weight. Width 1 gives a broad band."),
            bench(page, s).set("h", 1.0));
  const Attended shifted =
      attend(Gaussian{}, column(test_x()), column(s.x), column(s.y), Mask::bias(full({1, 50}, -0.9189385f)));
  double worst = 0;
  for (size_t i = 0; i < curve.size(); ++i) worst = std::max(worst, std::abs(shifted.output.ptr()[i] - curve[i]));
  page.claim(worst < 1e-5, tr("Multiplying the kernel by $1/\\sqrt{2\\pi}$ changes nothing."),
             tr("largest difference {difference}", "difference"_a = tiny(worst)));

  const Vector at_training = plain.predict(Points::of(s.x)).values.values;
  page.say(tr(
      "One of the book's four code listings queries at the training inputs but draws the answers over the test inputs. "
      "The figure looks much the same but is wrong: its error here is {wrong:.3f} instead of {right:.3f}, because "
      "answer i belongs to a different x.",
      "wrong"_a = zh_error(at_training), "right"_a = zh_error(curve)));
}

namespace {

/// dL/dw of the leave-one-out loss, by attention on the tape: the diagonal is masked, nothing is tiled.
double taped_slope(const Sample& s, double w) {
  const Tensor width = parameter(scalar(static_cast<float>(w)));
  Tape tape;
  const Attended pool =
      attend(Gaussian{width}, column(s.x), column(s.x), column(s.y), Mask::drop(eye(static_cast<int64_t>(s.x.size()))));
  tape.backward(squared_error(pool.output, column(s.y), Reduction::sum));
  return tape.grad(width).item();
}

}  // namespace

void learned_step(Page& page) {
  page.heading(tr("Learned attention pooling"));
  page.say(tr(
      "One parameter: the distance is multiplied by $w$ before it is squared, so $1/|w|$ is the width of the kernel."));
  page.formula("f(x) = \\sum_{i=1}^n \\softmax_i(-\\frac{1}{2} ((x - x_i) w)^2) y_i");
  page.say(tr(
      "It is trained by leave-one-out: each point is predicted from the 49 others, the squared errors are summed, and "
      "gradient descent takes five steps with rate 0.5 from a random start between 0 and 1."));
  const Sample s = page_sample(page);
  const Learned learned = page_learned(page);
  std::vector<Text> log = {fmt::format("w = {:.4f}", learned.start[0])};
  Vector epochs;
  for (size_t e = 0; e < learned.losses.size(); ++e) {
    log.push_back(tr("epoch {epoch}, loss {loss:.6f}", "epoch"_a = e + 1, "loss"_a = learned.losses[e]));
    epochs.push_back(static_cast<double>(e + 1));
  }
  log.emplace_back(fmt::format("w = {:.4f}", learned.w[0]));
  page.print(in_lines(log));
  page.beside_the_book(tr("summed loss of learned pooling, epochs 1 and 5"), "48.2, 12.4",
                       fmt::format("{:.1f}, {:.1f}", learned.losses.front(), learned.losses.back()));
  page.draw("learned-loss",
            curves({{"", epochs, learned.losses, line_style("bo-")}}, {.label = tr("epoch"), .low = 0.9, .high = 5.1},
                   {.label = tr("loss")}),
            tr("Summed squared leave-one-out error before each of the five steps."));
  const KernelRegression sharp = model(s, {.bandwidth = learned.bandwidth()});
  const Vector curve = sharp.predict(Points::of(test_x())).values.values, plain = fit(s, 1.0);
  page.draw("learned-fit", fit_figure(s, curve), tr("The learned fit follows the data closely, including their noise."),
            bench(page, s).set("h", learned.bandwidth()[0]));
  const Tensor both = stack({model(s).weights(Points::of(test_x())), sharp.weights(Points::of(test_x()))});
  Figure maps =
      weights_figure(both, {tr("width 1"), tr("learned, width {width:.3f}", "width"_a = 1 / std::abs(learned.w[0]))});
  maps.colours.per_panel = true;
  page.draw("learned-weights", maps, tr("The band before and after learning; each map has its own scale."),
            bench(page, s).set("h", learned.bandwidth()[0]));
  if (std::abs(learned.w[0]) < 0.5)
    page.say(tr(
        "This seed is one of the few whose start falls into the trap around $w = 0$ (see below): nothing was learned. "
        "Another `--seed` shows the usual picture."));
  named_table(page, {tr("pooling"), tr("test error"), tr("effective keys"), tr("roughness")},
              {{tr("average"), {rounded(zh_error(Vector(50, mean(s.y))), 3), "50.0", "0.0000"}},
               {tr("width 1"),
                {rounded(zh_error(plain), 3), rounded(mean(model(s).effective_keys(Points::of(test_x()))), 1),
                 rounded(roughness(plain), 4)}},
               {tr("learned"),
                {rounded(zh_error(curve), 3), rounded(mean(sharp.effective_keys(Points::of(test_x()))), 1),
                 rounded(roughness(curve), 4)}}});
  const double w = learned.start[0],
               exact = (w - learn_bandwidth(Points::of(s.x), Points::of(s.y), Rng(0), {.epochs = 1, .start = w}).w[0]) /
                       0.5,
               taped = taped_slope(s, w);
  page.claim(std::abs(exact - taped) < 2e-3 * (1 + std::abs(exact)),
             tr("The slope of the first step is the same derived by hand and computed by `attend` on the tape with the "
                "diagonal masked."),
             tr("{exact:.4f} by hand, {taped:.4f} on the tape", "exact"_a = exact, "taped"_a = taped));
}

}  // namespace qkv::labs::regression
