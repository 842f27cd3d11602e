// Kernel regression: options, predictions, bands, leave-one-out.
#include "qkv/regression/kernel_regression.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "qkv/core/check.h"
#include "qkv/core/limits.h"
#include "qkv/core/parallel.h"
#include "qkv/regression/regression_data.h"

namespace qkv {
namespace {

constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

}  // namespace

// Newton's method on erfc from a start that is never beyond the root: erfc is convex for z > 0.
double normal_quantile(double level) {
  check(level > 0 && level < 1, "[band] the level must be between 0 and 1, got ", level);
  double z = 0;
  for (int step = 0; step < 200; ++step) {
    const double miss = std::erfc(z / std::numbers::sqrt2) - (1 - level);
    const double slope = std::sqrt(2 / std::numbers::pi) * std::exp(-0.5 * z * z);
    const double next = z + miss / slope;
    if (!(std::abs(next - z) > 1e-13 * (1 + z))) break;
    z = next;
  }
  return z;
}

namespace {

void check_rows(const Points& x, const Points& y) {
  check(x.rows == y.rows, "[regression] x has ", x.rows, " rows, y has ", y.rows);
  check(x.rows > 0, "[regression] there are no rows");
  check(x.width > 0 && y.width > 0, "[regression] x has ", x.width, " columns, y has ", y.width,
        ": each needs at least one");
  check_finite("x", x);
  check_finite("y", y);
}

/// Mean and standard deviation (of the population) of a column. Values are divided by the largest before squaring, so
/// that nothing overflows.
std::pair<double, double> mean_and_deviation(const Points& points, int64_t column) {
  const double n = static_cast<double>(points.rows);
  double mean = 0, largest = 0, squares = 0;
  for (int64_t i = 0; i < points.rows; ++i) mean += points.at(i, column) / n;
  for (int64_t i = 0; i < points.rows; ++i) largest = std::max(largest, std::abs(points.at(i, column) - mean));
  if (!(largest > 0)) return {mean, 0};
  for (int64_t i = 0; i < points.rows; ++i) {
    const double share = (points.at(i, column) - mean) / largest;
    squares += share * share;
  }
  return {mean, largest * std::sqrt(squares / n)};
}

}  // namespace

KernelRegression::Data::Data(Points x_rows, Points y_rows)
    : x((check_rows(x_rows, y_rows), std::move(x_rows))), y(std::move(y_rows)), parts(y), cloud(x, parts.columns) {
  for (int64_t a = 0; a < x.width; ++a) spread.push_back(mean_and_deviation(x, a).second);
  for (int64_t j = 0; j < y.width; ++j) {
    const auto [m, s] = mean_and_deviation(y, j);
    mean.push_back(m);
    deviation.push_back(s);
  }
  if (x.width == 1) line.emplace(x.values, parts.columns, parts.huge_rows);
}

KernelRegression::KernelRegression(Points x, Points y, RegressionOptions options)
    : KernelRegression(std::make_shared<const Data>(std::move(x), std::move(y)), std::move(options)) {}

KernelRegression::KernelRegression(std::shared_ptr<const Data> data, RegressionOptions options)
    : data_(std::move(data)),
      x_(data_->x),
      y_(data_->y),
      options_(std::move(options)),
      kernel_(options_.kernel),
      estimator_(options_.estimator) {
  check_options();
}

KernelRegression::~KernelRegression() = default;
KernelRegression::KernelRegression(KernelRegression&&) noexcept = default;
KernelRegression KernelRegression::with(RegressionOptions options) const {
  return KernelRegression(data_, std::move(options));
}

void KernelRegression::check_options() {
  if (estimator_ == Estimator::average) kernel_ = KernelShape::constant;
  const size_t d = static_cast<size_t>(x_.width);
  check(estimator_ != Estimator::local_linear || x_.width <= limits::kSlopes, "[regression] x has ", d,
        " columns, local-linear takes at most ", limits::kSlopes);
  if (kernel_ == KernelShape::constant) {  // no width: any unit of length works
    width_ = data_->spread;
    for (double& w : width_) w = w > 0 ? w : 1;
    return;
  }
  const auto& h = options_.bandwidth;
  check(h.size() == 1 || h.size() == d, "[regression] ", h.size(), " bandwidths for ", d,
        " columns of x: give one, or one per column");
  for (const double value : h)
    check(value > 0 && std::isfinite(value) && std::isfinite(1 / value),
          "[regression] a bandwidth must be positive and finite, got ", value);
  width_ = h.size() == d ? h : std::vector<double>(d, h[0]);
}

void KernelRegression::check_points(const char* op, const Points& at) const {
  check(at.width == x_.width, "[", op, "] points have ", at.width, " coordinates, the data have ", x_.width);
  check_finite("query", at);
}

Predictions KernelRegression::predict(const Points& at) const { return predict_at(at, std::nullopt); }
Predictions KernelRegression::predict_with_band(const Points& at, double level) const { return predict_at(at, level); }

Predictions KernelRegression::predict_at(const Points& at, std::optional<double> level) const {
  check_points("predict", at);
  const int64_t m = outputs();
  Predictions out{.values = Points(at.rows, m), .low = {}, .high = {}, .deviation = {}};
  double quantile = 0;
  if (level) {
    quantile = normal_quantile(*level);
    out.low = out.high = Points(at.rows, m);
    const Predictions left_out = leave_one_out();
    check(left_out.absent < rows(), "[band] no row has a neighbour at the bandwidth ", width_[0],
          ": there are no residuals");
    out.deviation.assign(static_cast<size_t>(m), 0.0);
    for (int64_t i = 0; i < rows(); ++i) {
      for (int64_t j = 0; j < m; ++j) {
        const double residual = y_.at(i, j) - left_out.values.at(i, j);
        if (!std::isnan(residual))
          out.deviation[j] += residual * residual / static_cast<double>(rows() - left_out.absent);
      }
    }
    for (double& sigma : out.deviation) sigma = std::sqrt(sigma);
  }
  for_each_query(at, {order(), level.has_value()},
                 [&](int64_t i, const LocalSums& sums, const LocalFit& fit, bool found) {
                   const double scale = level && found ? quantile * std::sqrt(fit.squared_weights(sums)) : kAbsent;
                   for (int64_t j = 0; j < m; ++j) {
                     const double value = found ? data_->parts.value(fit.prediction(), j) : kAbsent;
                     out.values.at(i, j) = value;
                     if (!level) continue;
                     out.low.at(i, j) = value - scale * out.deviation[j];
                     out.high.at(i, j) = value + scale * out.deviation[j];
                   }
                 });
  for (int64_t i = 0; i < at.rows; ++i) out.absent += std::isnan(out.values.at(i, 0));
  return out;
}

Predictions KernelRegression::leave_one_out() const {
  std::vector<int64_t> all(static_cast<size_t>(rows()));
  std::iota(all.begin(), all.end(), int64_t{0});
  Predictions out{.values = left_out(all), .low = {}, .high = {}, .deviation = {}};
  for (int64_t i = 0; i < rows(); ++i) out.absent += std::isnan(out.values.at(i, 0));
  return out;
}

Points KernelRegression::left_out(std::span<const int64_t> chosen) const {
  check(rows() >= 2, "[leave-one-out] needs at least 2 rows, got ", rows());
  Points out(static_cast<int64_t>(chosen.size()), outputs());
  for_each_row_left_out(chosen, [&](int64_t i, const LocalSums&, const LocalFit& fit, bool found) {
    for (int64_t j = 0; j < outputs(); ++j) out.at(i, j) = found ? data_->parts.value(fit.prediction(), j) : kAbsent;
  });
  return out;
}

double KernelRegression::leave_one_out_score(int64_t most_rows) const {
  // Multiples of the golden ratio, modulo 1, are evenly spread and match no period in the order of the rows.
  std::vector<int64_t> chosen(static_cast<size_t>(std::min(rows(), most_rows)));
  for (size_t k = 0; k < chosen.size(); ++k) {
    const double place = static_cast<double>(k) * (std::numbers::phi - 1);
    chosen[k] = most_rows < rows() ? static_cast<int64_t>((place - std::floor(place)) * static_cast<double>(rows()))
                                   : static_cast<int64_t>(k);
  }
  const Points predicted = left_out(chosen);
  const double n = static_cast<double>(rows());
  double total = 0;
  for (int64_t j = 0; j < outputs(); ++j) {
    if (!(data_->deviation[j] > 0)) continue;  // any prediction of a constant output is right
    double squares = 0;
    for (size_t k = 0; k < chosen.size(); ++k) {
      const double value = predicted.at(static_cast<int64_t>(k), j), y = y_.at(chosen[k], j);
      const double error = (std::isnan(value) ? (y - data_->mean[j]) * n / (n - 1) : y - value) / data_->deviation[j];
      squares += error * error;
    }
    total += squares / static_cast<double>(chosen.size());
  }
  return total / static_cast<double>(outputs());
}

Tensor KernelRegression::weights(const Points& at) const {
  check_points("weights", at);
  check(at.rows == 0 || rows() <= (int64_t{1} << 31) / at.rows, "[weights] ", at.rows, " queries x ", rows(),
        " rows are too many to show");
  Tensor out = Tensor::empty({at.rows, rows()});
  const double work = static_cast<double>(at.rows * rows()) * (2.0 + static_cast<double>(dimension()));
  parallel_ranges(at.rows, 8, work, [&](int64_t first, int64_t last) {
    CloudSums cloud_sums(data_->cloud, kernel_, width_, {order(), false});
    LocalSums sums(dimension(), data_->parts.count());
    LocalFit fit(dimension(), data_->parts.count(), estimator_);
    std::vector<double> kernel(static_cast<size_t>(rows())), u(static_cast<size_t>(dimension()));
    for (int64_t q = first; q < last; ++q) {
      cloud_sums.direct(at.row(q), -1, sums);
      const bool found = fit.solve(sums);
      cloud_sums.weights(at.row(q), -1, kernel);
      float* row = out.mutable_ptr() + q * rows();
      for (int64_t i = 0; i < rows(); ++i) {
        for (int64_t a = 0; a < dimension(); ++a) u[a] = (x_.at(i, a) - cloud_sums.reference()[a]) / width_[a];
        row[i] = found ? static_cast<float>(fit.weight(sums, kernel[i], u)) : 0;
      }
    }
  });
  return out;
}

std::vector<double> KernelRegression::effective_keys(const Points& at) const {
  check_points("effective_keys", at);
  std::vector<double> out(static_cast<size_t>(at.rows));
  const double work = static_cast<double>(at.rows * rows()) * (10.0 + static_cast<double>(dimension()));
  parallel_ranges(at.rows, 8, work, [&](int64_t first, int64_t last) {
    CloudSums cloud_sums(data_->cloud, kernel_, width_, {});
    LocalSums sums(dimension(), data_->parts.count());
    std::vector<double> kernel(static_cast<size_t>(rows()));
    for (int64_t q = first; q < last; ++q) {
      cloud_sums.direct(at.row(q), -1, sums);
      cloud_sums.weights(at.row(q), -1, kernel);
      double entropy = 0;
      for (const double k : kernel) {
        const double alpha = k / sums.s0;  // may underflow to zero where k does not
        if (alpha > 0) entropy -= alpha * std::log(alpha);
      }
      out[q] = sums.s0 > 0 ? std::exp(entropy) : 0;
    }
  });
  return out;
}

}  // namespace qkv
