// The fit of a power law: exact laws are found again, noisy ones lie in the interval, nonsense is refused.
#include "qkv/labs/power_law.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "qkv/core/check.h"
#include "qkv/core/rng.h"

namespace qkv::labs {
namespace {

const std::vector<double> kX = {1e3, 3e3, 1e4, 3e4, 1e5, 3e5};

std::vector<double> law(double floor, double scale, double exponent) {
  std::vector<double> y;
  for (const double x : kX) y.push_back(floor + std::pow(scale / x, exponent));
  return y;
}

TEST(PowerLaw, FindsAnExactLawAgain) {
  for (const double floor : {0.0, 1.5})
    for (const double exponent : {0.076, 0.3, 1.0}) {
      const PowerLaw found = fitted_power_law(kX, law(floor, 5e3, exponent));
      EXPECT_NEAR(found.exponent, exponent, 1.1e-3);
      EXPECT_NEAR(found.floor, floor, 0.02);
      EXPECT_NEAR(found.scale, 5e3, 100);
      EXPECT_LT(found.worst, 1e-4);
      EXPECT_LT(found.high - found.low, 0.01);
    }
}

TEST(PowerLaw, TheIntervalHoldsTheExponentOfNoisyPointsAboutNineteenTimesInTwenty) {
  int64_t held = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    std::vector<double> y = law(2, 1e4, 0.5);
    for (size_t k = 0; k < y.size(); ++k) y[k] *= 1 + 0.01 * Rng(i).normal(k);
    const PowerLaw found = fitted_power_law(kX, y);
    held += found.low <= 0.5 && 0.5 <= found.high;
  }
  EXPECT_GE(held, 180);
  EXPECT_LE(held, 200);
}

TEST(PowerLaw, PointsThatDoNotFallHaveAFloorAlone) {
  const std::vector<double> y(kX.size(), 3.0);
  const PowerLaw found = fitted_power_law(kX, y);
  EXPECT_NEAR(found.at(1e4), 3, 1e-6);
}

TEST(PowerLaw, RefusesFewPointsAndPointsBelowZero) {
  const std::vector<double> three = {1, 2, 3}, bad = {1, 2, 0, 4}, good = {1, 2, 3, 4};
  EXPECT_THROW(fitted_power_law(three, three), Error);
  EXPECT_THROW(fitted_power_law(bad, good), Error);
  EXPECT_THROW(fitted_power_law(good, bad), Error);
  EXPECT_THROW(fitted_power_law(good, three), Error);
}

}  // namespace
}  // namespace qkv::labs
