// A power law with a floor, fitted to a few points: y = floor + (scale / x)^exponent.
#pragma once

#include <span>

namespace qkv::labs {

struct PowerLaw {
  double floor = 0, scale = 0, exponent = 0;
  double low = 0, high = 0;  // the 95 % interval of the exponent
  double worst = 0;          // the largest deviation of a point from the law, relative to the point

  double at(double x) const;
};

/// Least squares of relative deviations, for at least four points with x and y above 0. Neither floor nor scale is
/// negative, and the exponent is at most kMostExponent. The interval holds the exponents that an F test does not reject
/// when floor and scale are fitted to each of them.
inline constexpr double kMostExponent = 3;
PowerLaw fitted_power_law(std::span<const double> x, std::span<const double> y);

}  // namespace qkv::labs
