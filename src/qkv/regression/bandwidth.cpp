// The rule of thumb and cross-validation.
#include "qkv/regression/bandwidth.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "qkv/core/check.h"

namespace qkv {
namespace {

/// (R(K) / mu_2(K)^2)^(1/5) with R the integral of K^2 and mu_2 the variance of K as a density.
double canonical_width(KernelShape kernel) {
  switch (kernel) {
    case KernelShape::gaussian: return std::pow(0.5 / std::sqrt(std::numbers::pi), 0.2);
    case KernelShape::boxcar: return std::pow(0.5 * 9, 0.2);
    case KernelShape::epanechnikov: return std::pow(0.6 * 25, 0.2);
    case KernelShape::triangular: return std::pow(2.0 / 3 * 36, 0.2);
    case KernelShape::constant: break;
  }
  fail("[bandwidth] the constant kernel has no bandwidth to choose");
}

/// Quantile p of ascending values, linear between them.
double quantile(const std::vector<double>& sorted, double p) {
  const double place = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// Smallest value of f on [low, high] to a tolerance (Kiefer, 1953); f is called once a step.
std::pair<double, double> golden_section(double low, double high, double tolerance, const std::function<double(double)>& f) {
  const double ratio = 1 / std::numbers::phi;
  double a = high - ratio * (high - low), b = low + ratio * (high - low), fa = f(a), fb = f(b);
  while (high - low > tolerance) {
    if (fa <= fb) {
      high = b, b = a, fb = fa;
      a = high - ratio * (high - low), fa = f(a);
    } else {
      low = a, a = b, fa = fb;
      b = low + ratio * (high - low), fb = f(b);
    }
  }
  return fa <= fb ? std::pair{a, fa} : std::pair{b, fb};
}

constexpr int kGrid = 16;
constexpr double kTolerance = 2e-3;  // of log h: the score is flat at its minimum, this changes it by ~1e-6 of itself

/// The search, and the best seen so far.
struct Search {
  const KernelRegression& regression;
  CrossValidated best;

  double score(const std::vector<double>& bandwidth) {
    RegressionOptions options = regression.options();
    options.bandwidth = bandwidth;
    ++best.evaluations;
    const double value = regression.with(std::move(options)).leave_one_out_score();
    if (best.bandwidth.empty() || value < best.score) best.bandwidth = bandwidth, best.score = value;
    return value;
  }
};

std::vector<double> scaled(std::vector<double> h, double log_factor) {
  for (double& value : h) value *= std::exp(log_factor);
  return h;
}

}  // namespace

std::vector<double> rule_bandwidth(const Points& x, KernelShape kernel) {
  const double ratio = canonical_width(kernel) / canonical_width(KernelShape::gaussian);
  check(x.rows >= 2, "[bandwidth] a rule needs at least 2 rows, got ", x.rows);
  const double n = static_cast<double>(x.rows), shrink = std::pow(n, -1 / (static_cast<double>(x.width) + 4));
  std::vector<double> out;
  for (int64_t a = 0; a < x.width; ++a) {
    std::vector<double> column = x.column(a);
    std::sort(column.begin(), column.end());
    check(column.front() < column.back(), "[bandwidth] all ", x.rows, " values of x column ", a + 1, " are ", column.front(),
          ": no width follows from them, give one");
    double mean = 0, squares = 0;
    for (const double value : column) mean += value / n;
    for (const double value : column) squares += (value - mean) * (value - mean);
    const double deviation = std::sqrt(squares / (n - 1)), quartiles = (quantile(column, 0.75) - quantile(column, 0.25)) / 1.349;
    out.push_back(ratio * 1.06 * (quartiles > 0 ? std::min(deviation, quartiles) : deviation) * shrink);
  }
  return out;
}

CrossValidated cross_validate(const KernelRegression& regression) {
  check(regression.options().estimator != Estimator::average, "[bandwidth] the average has no bandwidth to choose");
  const std::vector<double> rule = rule_bandwidth(regression.x(), regression.options().kernel);
  double widest = 8;  // in units of the rule: up to the range of the data
  for (int64_t a = 0; a < regression.dimension(); ++a) {
    const std::vector<double> column = regression.x().column(a);
    const auto [low, high] = std::minmax_element(column.begin(), column.end());
    widest = std::max(widest, (*high - *low) / rule[a]);
  }
  Search search{regression, {}};
  const double low = std::log(1.0 / 32), step = (std::log(widest) - low) / (kGrid - 1);
  int best = 0;
  double least = 0;
  for (int g = 0; g < kGrid; ++g) {
    const double score = search.score(scaled(rule, low + g * step));
    if (g == 0 || score < least) best = g, least = score;
  }
  golden_section(low + (best - 1) * step, low + (best + 1) * step, kTolerance,
                 [&](double factor) { return search.score(scaled(rule, factor)); });
  for (int round = 0; regression.dimension() > 1 && round < 10; ++round) {
    const double before = search.best.score;
    for (int64_t a = 0; a < regression.dimension(); ++a) {
      const std::vector<double> from = search.best.bandwidth;
      golden_section(-1, 1, 0.02, [&](double factor) {
        std::vector<double> h = from;
        h[a] *= std::exp(factor);
        return search.score(h);
      });
    }
    if (!(search.best.score < before * (1 - 1e-4))) break;
  }
  return search.best;
}

}  // namespace qkv
