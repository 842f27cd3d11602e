// Data, fits and statistics of lab 10.2.
#include "qkv/labs/regression.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "qkv/core/parallel.h"
#include "qkv/data/notes.h"

namespace qkv::labs::regression {

double zh_truth(double x) { return notes_curve(Edition::zh, x); }
double en_truth(double x) { return notes_curve(Edition::en, x); }

namespace {

Sample sample_of(Edition edition, const Rng& rng, int64_t n) {
  NotesOptions options = NotesOptions::of(edition);
  options.points = n;
  qkv::Table table = nadaraya_watson_data(rng, options);
  return {std::move(table.columns[0]), std::move(table.columns[1])};
}

/// Training points within a quarter of x.
double density(const Sample& s, double x) {
  return static_cast<double>(
      std::count_if(s.x.begin(), s.x.end(), [&](double key) { return std::abs(key - x) < 0.25; }));
}

BookRun book_run(uint64_t seed) {
  const Sample s = zh_sample(rng_of(seed).at("zh"));
  const Learned learned = learn_bandwidth(Points::of(s.x), Points::of(s.y), rng_of(seed).at("zh").at("w"));
  const Vector& truth = zh_test_y();
  const Points at = Points::of(test_x());
  const KernelRegression plain = model(s), sharp = plain.with({.bandwidth = learned.bandwidth()});
  const Vector plain_fit = plain.predict(at).values.values, sharp_fit = sharp.predict(at).values.values;
  const Vector keys = sharp.effective_keys(at);
  BookRun run;
  run.average = mean_square_difference(Vector(truth.size(), mean(s.y)), truth);
  run.plain = mean_square_difference(plain_fit, truth);
  run.learned = mean_square_difference(sharp_fit, truth);
  run.w_start = learned.start[0];
  run.w_first = learn_bandwidth(Points::of(s.x), Points::of(s.y), Rng(0), {.epochs = 1, .start = run.w_start}).w[0];
  run.w = learned.w[0];
  run.losses = learned.losses;
  run.rough_plain = roughness(plain_fit);
  run.rough_learned = roughness(sharp_fit);
  run.keys_plain = mean(plain.effective_keys(at));
  run.keys_learned = mean(keys);
  Vector size, dense;
  for (size_t i = 0; i < truth.size(); ++i) {
    run.error_plain.push_back(plain_fit[i] - truth[i]);
    size.push_back(std::abs(run.error_plain[i]));
    dense.push_back(density(s, test_x()[i]));
  }
  run.error_with_density = correlation(size, dense);
  run.keys_with_density = correlation(keys, dense);
  return run;
}

}  // namespace

Sample zh_sample(const Rng& rng, int64_t n) { return sample_of(Edition::zh, rng, n); }
Sample en_sample(const Rng& rng, int64_t n) { return sample_of(Edition::en, rng, n); }
Rng rng_of(uint64_t seed) { return Rng(seed).at("kernel-regression"); }
Sample page_sample(const Page& page) { return zh_sample(notes_rng(page.seed(), Edition::zh)); }

Learned page_learned(const Page& page) {
  const Sample s = page_sample(page);
  return learn_bandwidth(Points::of(s.x), Points::of(s.y), rng_of(page.seed()).at("zh").at("w"));
}

report::BenchLink bench(const Page& page, const Sample& sample) {
  report::BenchLink out("regression");
  const Sample first = zh_sample(notes_rng(0, Edition::zh));
  if (page.seed() != 0 || sample.x != first.x || sample.y != first.y) out.set("points", sample.x, sample.y);
  return out;
}

const Vector& test_x() {
  static const Vector x = [] {
    Vector v;
    for (int i = 0; i < 50; ++i) v.push_back(i / 10.0);
    return v;
  }();
  return x;
}

Vector values(double (*f)(double), const Vector& x) {
  Vector y;
  for (double v : x) y.push_back(f(v));
  return y;
}

const Vector& zh_test_y() {
  static const Vector y = values(zh_truth, test_x());
  return y;
}

const Vector& en_test_y() {
  static const Vector y = values(en_truth, test_x());
  return y;
}

KernelRegression model(const Sample& sample, const RegressionOptions& options) {
  return KernelRegression(Points::of(sample.x), Points::of(sample.y), options);
}

Vector fit(const Sample& sample, const RegressionOptions& options) {
  return model(sample, options).predict(Points::of(test_x())).values.values;
}
Vector fit(const Sample& sample, double width) { return fit(sample, RegressionOptions{.bandwidth = {width}}); }

Tensor column(const Vector& v) {
  const std::vector<float> floats(v.begin(), v.end());
  return Tensor({static_cast<int64_t>(v.size()), 1}, floats);
}

double zh_error(const Vector& prediction) { return mean_square_difference(prediction, zh_test_y()); }

double leave_one_out_loss(const Sample& sample, double w) {
  return learn_bandwidth(Points::of(sample.x), Points::of(sample.y), Rng(0), {.epochs = 1, .start = w}).losses[0];
}

double mean(const Vector& v) { return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size()); }

double mean_square_difference(const Vector& a, const Vector& b) {
  double total = 0;
  for (size_t i = 0; i < a.size(); ++i) total += (a[i] - b[i]) * (a[i] - b[i]);
  return total / static_cast<double>(a.size());
}

double correlation(const Vector& a, const Vector& b) {
  const double ma = mean(a), mb = mean(b);
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - ma) * (b[i] - mb);
    aa += (a[i] - ma) * (a[i] - ma);
    bb += (b[i] - mb) * (b[i] - mb);
  }
  return ab / std::sqrt(aa * bb);
}

double roughness(const Vector& curve) {
  double total = 0;
  for (size_t i = 2; i < curve.size(); ++i) total += std::pow(curve[i] - 2 * curve[i - 1] + curve[i - 2], 2);
  return total;
}

int64_t count_above(const Vector& v, double limit) {
  return std::count_if(v.begin(), v.end(), [&](double value) { return value > limit; });
}

double slope(const Vector& x, const Vector& y) {
  const double mx = mean(x), my = mean(y);
  double xy = 0, xx = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mx) * (y[i] - my);
    xx += (x[i] - mx) * (x[i] - mx);
  }
  return xy / xx;
}

const std::vector<BookRun>& book_runs() {
  static const std::vector<BookRun> runs = [] {
    std::vector<BookRun> list(300);
    test_x();
    zh_test_y();
    parallel_for(300, 1e9, [&](int64_t k) { list[static_cast<size_t>(k)] = book_run(static_cast<uint64_t>(k)); });
    return list;
  }();
  return runs;
}

Vector collect(double (*number)(const BookRun&)) {
  Vector v;
  for (const BookRun& run : book_runs()) v.push_back(number(run));
  return v;
}

std::vector<Series> fit_series(const Sample& sample, const Vector& truth, const Vector& prediction) {
  LineStyle points = line_style("o");
  points.alpha = 0.5;
  return {{tr("Truth"), test_x(), truth, line_style("-")},
          {tr("Pred"), test_x(), prediction, line_style("m--")},
          {tr("Data"), sample.x, sample.y, points}};
}

Figure fit_figure(const Sample& sample, const Vector& prediction) {
  return curves(fit_series(sample, zh_test_y(), prediction), {.label = "x", .low = 0, .high = 5},
                {.label = "y", .low = -1, .high = 5});
}

Figure weights_figure(const Tensor& weights, const std::vector<Label>& titles) {
  return heatmaps(weights, tr("Sorted training inputs"), tr("Sorted testing inputs"), titles);
}

}  // namespace qkv::labs::regression
