// Lab 10.2: 300 runs of the book's experiment: what is luck, what gets stuck, and which of the notes' observations
// hold.
#include <algorithm>
#include <cmath>

#include "qkv/core/parallel.h"
#include "qkv/labs/regression.h"
#include "qkv/labs/show.h"

namespace qkv::labs::regression {
namespace {

constexpr double kStuck = 0.5;  // |w| after training below which nothing was learned

/// The share of runs below a value, as a curve over the sorted values.
Series share_below(const Label& name, Vector v, const char* format) {
  std::sort(v.begin(), v.end());
  Vector share;
  for (size_t i = 0; i < v.size(); ++i) share.push_back(static_cast<double>(i + 1) / static_cast<double>(v.size()));
  return {name, v, share, line_style(format)};
}

std::vector<uint64_t> stuck_seeds() {
  std::vector<uint64_t> seeds;
  for (uint64_t k = 0; k < book_runs().size(); ++k)
    if (std::abs(book_runs()[k].w) < kStuck) seeds.push_back(k);
  return seeds;
}

/// (L(0.1) - L(0)) / 0.1^2: positive where w = 0 is a valley.
double curvature_at_zero(const Sample& s) { return (leave_one_out_loss(s, 0.1) - leave_one_out_loss(s, 0)) / 0.01; }

/// c - 2 n Cov(x, y)^2.
double predicted_curvature(const Sample& s) {
  const double n = static_cast<double>(s.x.size()), mx = mean(s.x), my = mean(s.y);
  double variance = 0, covariance = 0, c = 0;
  for (size_t i = 0; i < s.x.size(); ++i) {
    variance += (s.x[i] - mx) * (s.x[i] - mx) / n;
    covariance += (s.x[i] - mx) * (s.y[i] - my) / n;
  }
  for (size_t i = 0; i < s.x.size(); ++i)
    c += (s.y[i] - my) * (s.y[i] - my) * ((s.x[i] - mx) * (s.x[i] - mx) + variance) / n;
  return c - 2 * n * covariance * covariance;
}

}  // namespace

void runs_step(Page& page) {
  page.heading(tr("The same experiment 300 times"));
  page.say(tr(
      "One run proves little: data and start are random. Here the experiment is repeated for seeds 0 to 299; run k has "
      "exactly the data of `qkv lab 10.2 --seed k`. The error is the mean squared difference from the noise-free truth "
      "at the test inputs."));
  const Vector average = collect([](const BookRun&r) { return r.average; }),
               plain = collect([](const BookRun&r) { return r.plain; });
  const Vector learned = collect([](const BookRun&r) { return r.learned; }),
               w = collect([](const BookRun&r) { return std::abs(r.w); });
  const double medians[] = {median(average), median(plain), median(learned)}, expected[] = {0.89, 0.42, 0.115};
  const Text names[] = {tr("average"), tr("width 1"), tr("learned")};
  std::vector<NamedRow> rows;
  bool near = true;
  for (int i = 0; i < 3; ++i) {
    rows.push_back({names[i], {rounded(medians[i], 3), rounded(expected[i], 3)}});
    near = near && std::abs(medians[i] / expected[i] - 1) < 0.1;
  }
  named_table(page, {tr("pooling"), tr("median test error"), tr("independent simulation")}, rows);
  page.draw(
      "runs-errors",
      curves({share_below(tr("average"), average, "k:"), share_below(tr("width 1"), plain, "m--"),
              share_below(tr("learned"), learned, "b-")},
             {.label = tr("test error"), .low = 0.02, .high = 2, .scale = AxisScale::log},
             {.label = tr("share of runs below"), .low = 0, .high = 1}),
      tr("Distribution of the test error over 300 runs. At the upper end the curve of the learned pooling meets that "
         "of the average: those runs never started to learn."));
  page.claim(near, tr("The median errors are within 10 % of an independent simulation of the same experiment."),
             tr("average {average:.3f}, width 1 {fixed:.3f}, learned {learned:.3f}", "average"_a = medians[0],
                "fixed"_a = medians[1], "learned"_a = medians[2]));
  const int64_t better = count_above(collect([](const BookRun& r) { return r.plain - r.learned; }), 0);
  page.claim(better >= 285, tr("Learned pooling beats width 1 in most runs."),
             tr("{count} of 300 runs", "count"_a = better));
  const double first = median(collect([](const BookRun&r) { return r.losses[0]; })),
               last = median(collect([](const BookRun&r) { return r.losses[4]; }));
  page.claim(std::abs(first - 47) < 4.7 && std::abs(last - 18.1) < 1.8,
             tr("The summed loss falls from a median of 47 in epoch 1 to 18 in epoch 5."),
             tr("from {first:.1f} to {last:.1f}", "first"_a = first, "last"_a = last));
  page.draw(
      "runs-w", histogram({{"", w}}, {.label = tr("|w| after five steps")}, {.label = tr("runs")}, 15),
      tr("The learned w. A rate of 0.5 on a sum of fifty errors makes a huge first step: most runs leap over the best "
         "w, about 4, and land on a plateau where the slope is small."));
}

void stuck_step(Page& page) {
  page.heading(tr("Starts that get stuck"));
  const auto stuck = stuck_seeds();
  std::string list;
  for (uint64_t k : stuck) list += (list.empty() ? "" : ", ") + std::to_string(k);
  page.say(
      tr("A few runs end with $w$ near 0, where the fit is the mean: seeds {seeds}. The distance enters as $(x - "
         "x_i)^2 w^2$, so the slope carries a factor $w$ and is exactly 0 at $w = 0$. Whether the loss falls or rises "
         "from there depends on the term in $w^2$:",
         "seeds"_a = list));
  page.formula(
      "L(w) \\approx L(0) - w^2 (2 n \\Cov(x, y)^2 - c), \\quad c = \\frac{1}{n} \\sum_i (y_i - \\bar{y})^2 ((x_i - "
      "\\bar{x})^2 + \\sigma_x^2)");
  page.say(tr(
      "The first term says that favouring near keys helps to the extent that $y$ has a linear trend in $x$; $c$ is the "
      "cost of leaving one out, and does not grow with $n$. But this curve rises and falls again, its linear trend is "
      "almost zero, and in many data sets $c$ wins: then $w = 0$ is the bottom of a small valley, and a run that "
      "starts inside it stays there. The remedy is to start at a larger $w$, say 1, or to learn $\\log w$."));
  Vector curvature(book_runs().size());
  parallel_for(static_cast<int64_t>(curvature.size()), 1e8, [&](int64_t k) {
    curvature[static_cast<size_t>(k)] = curvature_at_zero(zh_sample(rng_of(static_cast<uint64_t>(k)).at("zh")));
  });
  const auto steepest =
      std::max_element(stuck.begin(), stuck.end(), [&](uint64_t a, uint64_t b) { return curvature[a] < curvature[b]; });
  const auto usual = static_cast<uint64_t>(std::min_element(curvature.begin(), curvature.end()) - curvature.begin());
  std::vector<Series> lines;
  for (uint64_t k : {*steepest, usual}) {
    const Sample s = zh_sample(rng_of(k).at("zh"));
    Vector w, loss;
    for (int i = -40; i <= 40; ++i) {
      w.push_back(i * 0.01);
      loss.push_back(leave_one_out_loss(s, w.back()) - leave_one_out_loss(s, 0));
    }
    lines.push_back({tr("seed {seed}", "seed"_a = k), w, loss, line_style(lines.empty() ? "-" : "m--")});
  }
  page.draw("stuck-valley", curves(lines, {.label = "w"}, {.label = "L(w) − L(0)", .low = -1, .high = 0.4}),
            tr("Leave-one-out loss around w = 0: a valley in one data set, a peak in another."));

  bool like_average = true;
  double farthest = 0;
  for (uint64_t k : stuck) {
    const BookRun& r = book_runs()[k];
    like_average = like_average && std::abs(r.learned / r.average - 1) < 0.1;
    farthest = std::max(farthest, r.w_start);
  }
  page.claim(stuck.size() >= 3 && stuck.size() <= 20 && like_average,
             tr("About one run in forty gets stuck, and its fit is no better than the average."),
             tr("{count} of 300 with |w| < {limit}; largest start among them {farthest:.3f}", "count"_a = stuck.size(),
                "limit"_a = kStuck, "farthest"_a = farthest));
  const Sample s = page_sample(page);
  const Learned at_zero = learn_bandwidth(Points::of(s.x), Points::of(s.y), Rng(0), {.start = 0.0});
  page.claim(at_zero.w[0] == 0, tr("A run started at exactly $w = 0$ never moves."),
             tr("w = {w} after five steps", "w"_a = at_zero.w[0]));
  const int64_t valleys = count_above(curvature, 0);
  int64_t predicted = 0;
  for (size_t k = 0; k < curvature.size(); ++k)
    predicted += (curvature[k] > 0) == (predicted_curvature(zh_sample(rng_of(k).at("zh"))) > 0);
  page.claim(predicted >= 285, tr("The formula predicts from the data alone which of the two it is."),
             tr("{count} of 300 runs", "count"_a = predicted));
  page.claim(valleys > 60 && valleys < 240, tr("$w = 0$ is a valley in a good share of the data sets."),
             tr("{count} of 300 runs", "count"_a = valleys));
  Vector restarted(stuck.size());
  for (size_t i = 0; i < stuck.size(); ++i) {
    const Sample data = zh_sample(rng_of(stuck[i]).at("zh"));
    restarted[i] = std::abs(learn_bandwidth(Points::of(data.x), Points::of(data.y), Rng(0), {.start = 1.0}).w[0]);
  }
  page.claim(*std::min_element(restarted.begin(), restarted.end()) > 1,
             tr("Started at $w = 1$, every one of the stuck runs learns."),
             tr("smallest |w| afterwards {smallest:.2f}",
                "smallest"_a = *std::min_element(restarted.begin(), restarted.end())));
}

namespace {

/// The variance of plain and of learned predictions when only the noise is redrawn, averaged over the test inputs.
std::pair<double, double> variance_under_noise(uint64_t seed) {
  constexpr int kDraws = 12;
  Sample s = zh_sample(rng_of(seed).at("zh"));
  std::vector<Vector> plain, learned;
  for (uint64_t draw = 0; draw < kDraws; ++draw) {
    const Rng rng = rng_of(seed).at("fresh").at(draw);
    for (size_t i = 0; i < s.x.size(); ++i) s.y[i] = zh_truth(s.x[i]) + 0.5 * rng.normal(i);
    const Learned w = learn_bandwidth(Points::of(s.x), Points::of(s.y), rng, {.start = 0.5});
    plain.push_back(fit(s, 1.0));
    learned.push_back(fit(s, w.bandwidth()[0]));
  }
  const auto variance = [](const std::vector<Vector>& fits) {
    double total = 0;
    for (size_t j = 0; j < fits[0].size(); ++j) {
      Vector at;
      for (const Vector& f : fits) at.push_back(f[j]);
      const double m = mean(at);
      for (double v : at) total += (v - m) * (v - m) / (kDraws - 1) / static_cast<double>(fits[0].size());
    }
    return total;
  };
  return {variance(plain), variance(learned)};
}

void sparse_claim(Page& page) {
  page.say(tr(
      "**\"The error is larger on [0, 1] and [3, 4] because there are fewer data.\"** A natural conclusion from one "
      "figure. Over 300 runs the density is the same everywhere on average, yet the errors still differ: the cause is "
      "smoothing. A mean over a window of width 1 fills valleys and cuts peaks, and at the left end all neighbours are "
      "on one side, uphill."));
  Vector bias(50), size(50), per_unit(5);
  for (const BookRun& r : book_runs())
    for (size_t i = 0; i < 50; ++i) {
      bias[i] += r.error_plain[i] / 300;
      per_unit[i / 10] += std::abs(r.error_plain[i]) / 3000;
    }
  Figure figure;
  figure.cols = 2;
  figure.panels = {{.content = Bars{.categories = {"[0,1)", "[1,2)", "[2,3)", "[3,4)", "[4,5)"},
                                    .series = {{"", per_unit}},
                                    .bar_values = true},
                    .x = {.label = "x"},
                    .y = {.label = tr("mean |error|")}},
                   {.content = Curves{{{"", test_x(), bias, line_style("-")}, {"", {0, 5}, {0, 0}, line_style("k:")}}},
                    .x = {.label = "x", .low = 0, .high = 5},
                    .y = {.label = tr("mean error (bias)")}}};
  page.draw("notes-error", figure,
            tr("Width 1 over 300 runs: size of the error by interval, and its mean, which does not depend on luck."));
  page.claim(std::abs(bias[0] - 1.97) < 0.1 && std::abs(bias[20] + 0.69) < 0.1,
             tr("The error is bias: far too high at 0, too low at the peak."),
             tr("{start:+.2f} at x = 0, {peak:+.2f} at x = 2", "start"_a = bias[0], "peak"_a = bias[20]));
  page.claim(std::min_element(per_unit.begin(), per_unit.end()) == per_unit.begin() + 3,
             tr("On [3, 4] the error is not large but the smallest of all."),
             tr("mean |error| by unit interval: {first:.2f}, {second:.2f}, {third:.2f}, {fourth:.2f}, {fifth:.2f}",
                "first"_a = per_unit[0], "second"_a = per_unit[1], "third"_a = per_unit[2], "fourth"_a = per_unit[3],
                "fifth"_a = per_unit[4]));
  const Vector link = collect([](const BookRun& r) { return r.error_with_density; });
  page.claim(median(link) > -0.5 && count_above(link, 0) >= 45,
             tr("Density explains little: its correlation with |error| is weak and often has the wrong sign."),
             tr("median {correlation:.2f}, positive in {positive} of 300", "correlation"_a = median(link),
                "positive"_a = count_above(link, 0)));
}

}  // namespace

void notes_step(Page& page) {
  page.heading(tr("Three observations from the notes, checked"));
  sparse_claim(page);
  page.say(tr(
      "**\"The learned fit is less smooth, fits better, and is sensitive to noise.\"** All three are right. To measure "
      "sensitivity, keep the inputs, redraw only the noise, learn again, and see how far the curve moves."));
  Vector plain(40), learned(40);
  parallel_for(40, 1e9, [&](int64_t k) {
    std::tie(plain[static_cast<size_t>(k)], learned[static_cast<size_t>(k)]) =
        variance_under_noise(static_cast<uint64_t>(k));
  });
  page.claim(mean(learned) > 10 * mean(plain),
             tr("Fresh noise moves the learned curve more than ten times as much as that of width 1."),
             tr("variance {learned:.3f} learned, {plain:.4f} at width 1", "learned"_a = mean(learned),
                "plain"_a = mean(plain)));
  const int64_t rougher = count_above(collect([](const BookRun& r) { return r.rough_learned - r.rough_plain; }), 0);
  const int64_t sharper = count_above(collect([](const BookRun& r) { return r.keys_plain - r.keys_learned; }), 0);
  page.claim(rougher >= 280 && sharper >= 280, tr("In nearly all runs it is less smooth and its weights are sharper."),
             tr("rougher in {rougher}, sharper in {sharper} of 300", "rougher"_a = rougher, "sharper"_a = sharper));
  page.say(tr(
      "**\"Weights concentrate where data are sparse and spread where they are dense.\"** Right: with a fixed width, "
      "more keys share the weight where more are near. The effective number of keys is $e^H$, where $H$ is the entropy "
      "of a query's weights."));
  const Vector keys = collect([](const BookRun& r) { return r.keys_with_density; });
  page.draw("notes-density",
            histogram({{tr("effective keys"), keys},
                       {tr("|error|"), collect([](const BookRun& r) { return r.error_with_density; })}},
                      {.label = tr("correlation with the density of the data")}, {.label = tr("runs")}, 20),
            tr("Over 300 runs: the density determines how widely the learned weights spread, but hardly how wrong the "
               "width-1 fit is."));
  page.claim(median(keys) > 0.5 && count_above(keys, 0) >= 275,
             tr("The effective number of keys rises and falls with the density."),
             tr("median correlation {correlation:.2f}, positive in {positive} of 300", "correlation"_a = median(keys),
                "positive"_a = count_above(keys, 0)));
}

}  // namespace qkv::labs::regression
