// For a given exponent, floor and scale are a linear problem; the exponent is searched.
#include "qkv/labs/power_law.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "qkv/core/check.h"

namespace qkv::labs {
namespace {

constexpr double kStep = 0.001;

// y = floor + factor x^-exponent
struct Candidate {
  double exponent = 0, floor = 0, factor = 0, squares = 0;
};

Candidate best_for(double exponent, std::span<const double> x, std::span<const double> y) {
  // Minimises sum (floor a + factor b - 1)^2 with a = 1 / y and b = x^-exponent / y; x is relative to its first value,
  // which keeps the numbers near 1.
  double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double a = 1 / y[i], b = std::pow(x[i] / x[0], -exponent) / y[i];
    aa += a * a;
    ab += a * b;
    bb += b * b;
    a1 += a;
    b1 += b;
  }
  const double determinant = aa * bb - ab * ab;
  Candidate out{.exponent = exponent};
  out.floor = (a1 * bb - b1 * ab) / determinant;
  out.factor = (b1 * aa - a1 * ab) / determinant;
  if (!(out.floor >= 0)) out = {.exponent = exponent, .floor = 0, .factor = b1 / bb};
  if (out.factor < 0) out = {.exponent = exponent, .floor = a1 / aa, .factor = 0};
  for (size_t i = 0; i < x.size(); ++i) {
    const double d = (out.floor + out.factor * std::pow(x[i] / x[0], -exponent)) / y[i] - 1;
    out.squares += d * d;
  }
  return out;
}

// Student's t at 97.5 % for 1, 2, ... degrees of freedom.
double student(size_t freedom) {
  constexpr std::array kTable = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228};
  return kTable[std::min(freedom, kTable.size()) - 1];
}

}  // namespace

double PowerLaw::at(double x) const { return floor + std::pow(scale / x, exponent); }

PowerLaw fitted_power_law(std::span<const double> x, std::span<const double> y) {
  check(x.size() == y.size() && x.size() >= 4, "[power_law] at least four points, got ", x.size(), " and ", y.size());
  for (size_t i = 0; i < x.size(); ++i)
    check(x[i] > 0 && y[i] > 0 && std::isfinite(x[i]) && std::isfinite(y[i]),
          "[power_law] points must be above 0, got (", x[i], ", ", y[i], ")");
  std::vector<Candidate> all;
  for (int64_t i = 1; i <= std::llround(kMostExponent / kStep); ++i)
    all.push_back(best_for(static_cast<double>(i) * kStep, x, y));
  const Candidate best = *std::ranges::min_element(all, {}, &Candidate::squares);
  const size_t freedom = x.size() - 3;
  const double t = student(freedom);
  const double most = best.squares * (1 + t * t / static_cast<double>(freedom));
  PowerLaw out{.floor = best.floor, .exponent = best.exponent, .low = best.exponent, .high = best.exponent};
  for (const Candidate& c : all)
    if (c.squares <= most) {
      out.low = std::min(out.low, c.exponent);
      out.high = std::max(out.high, c.exponent);
    }
  out.scale = x[0] * std::pow(best.factor, 1 / best.exponent);
  for (size_t i = 0; i < x.size(); ++i) out.worst = std::max(out.worst, std::abs(out.at(x[i]) / y[i] - 1));
  return out;
}

}  // namespace qkv::labs
