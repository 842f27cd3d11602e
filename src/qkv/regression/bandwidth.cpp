// The rule of thumb and cross-validation.
#include "qkv/regression/bandwidth.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "qkv/core/check.h"

namespace qkv {
namespace {

/// (R(K) / mu_2(K)^2)^(1/5) with R the integral of K^2 and mu_2 the variance of K as a density.
double canonical_width(KernelShape kernel) {
  switch (kernel) {
    case KernelShape::gaussian:
      return std::pow(0.5 / std::sqrt(std::numbers::pi), 0.2);
    case KernelShape::boxcar:
      return std::pow(0.5 * 9, 0.2);
    case KernelShape::epanechnikov:
      return std::pow(0.6 * 25, 0.2);
    case KernelShape::triangular:
      return std::pow(2.0 / 3 * 36, 0.2);
    case KernelShape::constant:
      break;
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

/// Smallest value of f on [low, high] to a tolerance (Kiefer, 1953); f is called once per step.
std::pair<double, double> golden_section(double low, double high, double tolerance,
                                         const std::function<double(double)>& f) {
  const double ratio = 1 / std::numbers::phi;
  double a = high - ratio * (high - low), b = low + ratio * (high - low), fa = f(a), fb = f(b);
  while (high - low > tolerance) {
    if (fa <= fb) {
      high = b;
      b = a;
      fb = fa;
      a = high - ratio * (high - low);
      fa = f(a);
    } else {
      low = a;
      a = b;
      fa = fb;
      b = low + ratio * (high - low);
      fb = f(b);
    }
  }
  return fa <= fb ? std::pair{a, fa} : std::pair{b, fb};
}

constexpr int kGrid = 16;
constexpr double kTolerance = 2e-3;  // of log h: the score is flat at its minimum, so its relative error is ~1e-6

constexpr int64_t kFullRows = 1500;  // in several dimensions: up to here every score uses all rows
constexpr int64_t kFewRows = 500, kSomeRows = 2000;

/// The search, and the best seen so far.
struct Search {
  const KernelRegression& regression;
  const SearchObserver& observer;
  double expected;  // cost of the whole search, in scores of all rows
  CrossValidated best = {};
  int64_t rows_used = std::numeric_limits<int64_t>::max();
  double spent = 0;

  double score(const std::vector<double>& bandwidth) {
    RegressionOptions options = regression.options();
    options.bandwidth = bandwidth;
    ++best.evaluations;
    const double value = regression.with(std::move(options)).leave_one_out_score(rows_used);
    if (best.bandwidth.empty() || value < best.score) {
      best.bandwidth = bandwidth;
      best.score = value;
    }
    spent += cost();
    if (observer) observer({std::min(spent / expected, 1.0), best.evaluations});
    return value;
  }
  /// The cost of a score, in scores of all rows.
  double cost() const {
    return static_cast<double>(std::min(rows_used, regression.rows())) / static_cast<double>(regression.rows());
  }
  /// Makes further scores use `rows` rows.
  void use(int64_t rows) {
    rows_used = rows;
    best.score = std::numeric_limits<double>::infinity();
    score(best.bandwidth);
  }
};

std::vector<double> scaled(std::vector<double> h, double log_factor) {
  for (double& value : h) value *= std::exp(log_factor);
  return h;
}

std::vector<double> scaled_at(std::vector<double> h, size_t a, double log_factor) {
  h[a] *= std::exp(log_factor);
  return h;
}

/// Golden section on one coordinate at a time, until a round gains little.
void by_golden_sections(Search& search) {
  for (int round = 0; round < 10; ++round) {
    const double before = search.best.score;
    for (size_t a = 0; a < search.best.bandwidth.size(); ++a) {
      const std::vector<double> from = search.best.bandwidth;
      golden_section(-1, 1, 0.02, [&](double factor) { return search.score(scaled_at(from, a, factor)); });
    }
    if (!(search.best.score < before * (1 - 1e-4))) break;
  }
}

/// One round of steps of `step` in log h to both sides of the best, and to the lowest point of the parabola through the
/// three scores. Returns whether that gained more than 1 in 10,000.
bool by_parabolas(Search& search, double step) {
  const double before = search.best.score;
  for (size_t a = 0; a < search.best.bandwidth.size(); ++a) {
    const std::vector<double> from = search.best.bandwidth;
    const double here = search.best.score;
    const auto at = [&](double factor) { return search.score(scaled_at(from, a, factor)); };
    const double below = at(-step), above = at(step), bend = below - 2 * here + above;
    if (below >= here && above >= here && bend > 0) {
      at(0.5 * step * (below - above) / bend);
      continue;
    }
    const double side = below < above ? -1 : 1;  // downhill while the score decreases
    double last = std::min(below, above);
    for (int k = 2; k <= 6 && last < here * (1 - 1e-4); ++k) {  // beyond the data the width has almost no effect
      const double next = at(side * k * step);
      if (!(next < last)) break;
      last = next;
    }
  }
  return search.best.score < before * (1 - 1e-4);
}

/// The expected cost of a search in d dimensions, in scores of all rows: an estimate for progress bars.
double expected_cost(int64_t rows, int64_t d) {
  const double line = kGrid + 16, coordinates = static_cast<double>(d), n = static_cast<double>(rows);
  if (d == 1) return line;
  if (rows <= kFullRows) return line + 2.5 * 12 * coordinates;
  const double few = static_cast<double>(kFewRows) / n, some = std::min(1.0, static_cast<double>(kSomeRows) / n);
  return few * (line + 12 * coordinates) + some * (1 + 3 * coordinates) + 1 + 5 * coordinates;
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
    check(column.front() < column.back(), "[bandwidth] all ", x.rows, " values of x column ", a + 1, " are ",
          column.front(), ": a width cannot be derived from them, give one");
    double mean = 0, squares = 0;
    for (const double value : column) mean += value / n;
    for (const double value : column) squares += (value - mean) * (value - mean);
    const double deviation = std::sqrt(squares / (n - 1)),
                 quartiles = (quantile(column, 0.75) - quantile(column, 0.25)) / 1.349;
    out.push_back(ratio * 1.06 * (quartiles > 0 ? std::min(deviation, quartiles) : deviation) * shrink);
    check(out.back() > 1e-300 && out.back() < 1e300, "[bandwidth] x column ", a + 1, " runs from ", column.front(),
          " to ", column.back(),
          ": its numbers are too small or too large to derive a width from them; scale the column, or give a width");
  }
  return out;
}

CrossValidated cross_validate(const KernelRegression& regression, const SearchObserver& observer) {
  check(regression.options().estimator != Estimator::average, "[bandwidth] the average has no bandwidth to choose");
  const std::vector<double> rule = rule_bandwidth(regression.x(), regression.options().kernel);
  double widest = 8;  // times the rule's width: up to the range of the data
  for (int64_t a = 0; a < regression.dimension(); ++a) {
    const std::vector<double> column = regression.x().column(a);
    const auto [low, high] = std::minmax_element(column.begin(), column.end());
    widest = std::max(widest, (*high - *low) / rule[a]);
  }
  const bool several = regression.dimension() > 1, sampled = several && regression.rows() > kFullRows;
  Search search{regression, observer, expected_cost(regression.rows(), regression.dimension())};
  if (sampled) search.rows_used = kFewRows;
  const double low = std::log(1.0 / 32), step = (std::log(widest) - low) / (kGrid - 1);
  int best = 0;
  double least = 0;
  for (int g = 0; g < kGrid; ++g) {
    const double score = search.score(scaled(rule, low + g * step));
    if (g == 0 || score < least) {
      best = g;
      least = score;
    }
  }
  golden_section(low + (best - 1) * step, low + (best + 1) * step, kTolerance,
                 [&](double factor) { return search.score(scaled(rule, factor)); });
  if (several && !sampled) by_golden_sections(search);
  if (!sampled) return search.best;
  for (const double size : {0.6, 0.3, 0.15}) by_parabolas(search, size);
  search.use(kSomeRows);
  by_parabolas(search, 0.15);
  search.use(regression.rows());
  for (double size = 0.2; size > 0.04 && by_parabolas(search, size);) size /= 2;
  return search.best;
}

}  // namespace qkv
