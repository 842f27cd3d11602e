// A huge y does not cost digits in predictions where it has no weight, and the search for widths works on a subset of
// many rows.
#include <gtest/gtest.h>

#include <cmath>

#include "qkv/core/names.h"
#include "qkv/core/parallel.h"
#include "qkv/regression/bandwidth.h"
#include "qkv/regression/kernel_regression.h"
#include "qkv/regression/output_parts.h"
#include "support/threads.h"
#include "unit/regression/brute_force.h"

using namespace qkv;
using namespace qkv::test;

namespace {

/// Within 2e-9 of the definition, relative to the prediction itself, not to the largest y. A tiny weight times a huge y
/// is part of some predictions, and the fast sums have such a weight to within 5e-10 (kernels/gauss_line.h).
void expect_locally_right(double got, const BruteForce& want, const char* what) {
  if (want.weight.empty())
    EXPECT_TRUE(std::isnan(got)) << what;
  else
    EXPECT_NEAR(got, want.value[0], 2e-9 * (1 + std::abs(want.value[0]))) << what;
}

void expect_all_right(const Sample& s, const std::vector<Points>& at, double h) {
  for (const KernelShape shape :
       {KernelShape::gaussian, KernelShape::boxcar, KernelShape::epanechnikov, KernelShape::triangular})
    for (const Estimator estimator : {Estimator::local_constant, Estimator::local_linear}) {
      const RegressionOptions options{shape, estimator, {h}};
      SCOPED_TRACE(text(name_of(shape), " ", name_of(estimator)));
      const KernelRegression regression(s.x, s.y, options);
      for (const Points& points : at) {
        const Predictions got = regression.predict(points), band = regression.predict_with_band(points);
        for (int64_t q = 0; q < points.rows; ++q) {
          const BruteForce want = brute_force(s.x, s.y, options, points.row(q));
          expect_locally_right(got.values.at(q, 0), want, "predict");
          expect_locally_right(band.values.at(q, 0), want, "predict_with_band");
        }
      }
      const Predictions left_out = regression.leave_one_out();
      for (int64_t i = 0; i < s.x.rows; ++i)
        expect_locally_right(left_out.values.at(i, 0), brute_force(s.x, s.y, options, s.x.row(i), i), "leave_one_out");
    }
}

}  // namespace

TEST(HugeValues, HaveNoInfluenceWhereTheyHaveNoWeight) {
  for (const double huge : {1e10, 1e15, 1e20, -9.969209968386869e36, 1e200}) {
    SCOPED_TRACE(huge);
    const Points x = Points::of({0.0, 1.0, 2.0, 100.0}), y = Points::of({1.0, 2.0, 3.0, huge});
    for (const KernelShape shape :
         {KernelShape::gaussian, KernelShape::boxcar, KernelShape::epanechnikov, KernelShape::triangular})
      for (const Estimator estimator : {Estimator::local_constant, Estimator::local_linear}) {
        const KernelRegression regression(x, y, {shape, estimator, {1.5}});
        EXPECT_NEAR(regression.predict(Points::of({1.0})).values.at(0, 0), 2, 1e-14) << name_of(shape);
        EXPECT_NEAR(regression.leave_one_out().values.at(1, 0), 2, 1e-14) << name_of(shape);
        EXPECT_DOUBLE_EQ(regression.predict(Points::of({100.0})).values.at(0, 0), huge);
      }
  }
}

TEST(HugeValues, AmongManyPointsOnALineOnlyTheirNeighboursSeeThem) {
  Sample s = sample(400, 1, 1, 71, 3);
  for (const int64_t row : {17, 170, 333}) s.y.at(row, 0) = 1e20;  // a fill value, more than once
  s.y.at(250, 0) = -3e34;
  Points at(60, 1);
  for (int64_t i = 0; i < at.rows; ++i) at.at(i, 0) = -3 + 0.1 * static_cast<double>(i);
  expect_all_right(s, {at}, 0.11);
}

TEST(HugeValues, InTwoDimensionsToo) {
  Sample s = sample(150, 2, 1, 72, 3);
  for (const int64_t row : {17, 140}) s.y.at(row, 0) = 1e20;
  expect_all_right(s, {sample(20, 2, 1, 73, 2.5).x}, 1.3);
}

TEST(HugeValues, AGaussianFarFromOneIsItsTinyWeightTimesIt) {
  const Points x = Points::of({0.0, 0.5, 1.0, 12.0}), y = Points::of({1.0, 1.0, 1.0, 1e36});
  const RegressionOptions options{KernelShape::gaussian, Estimator::local_constant, {1}};
  const double at = 0.4;  // exp(-67.28) is beyond the cutoff of the fast sums, and 1e36 is not
  const BruteForce want = brute_force(x, y, options, std::vector<double>{at});
  ASSERT_GT(want.value[0], 1e3);
  EXPECT_NEAR(KernelRegression(x, y, options).predict(Points::of({at})).values.at(0, 0), want.value[0],
              1e-9 * want.value[0]);
}

TEST(HugeValues, UsualDataHaveOnePartPerOutput) {
  const Sample s = sample(500, 1, 2, 74);
  const OutputParts usual(s.y);
  EXPECT_EQ(usual.count(), 2);
  EXPECT_TRUE(usual.huge_rows.empty());
  const OutputParts zeros(Points::of({0.0, 0.0, 5.0, 6.0}));
  EXPECT_EQ(zeros.count(), 1);
  const OutputParts mixed(Points::of({1.0, 2.0, 1e9, 3.0, -1e30}));
  EXPECT_EQ(mixed.count(), 3);
  EXPECT_EQ(mixed.huge_rows, (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(mixed.centre[0], 2);
}

TEST(HugeValues, ScoresOfHugeOutputsAreThoseOfUsualOnes) {
  Sample s = sample(80, 2, 1, 75);
  const double usual = KernelRegression(s.x, s.y, {.bandwidth = {0.7}}).leave_one_out_score();
  for (double& y : s.y.values) y *= 1e200;
  EXPECT_NEAR(KernelRegression(s.x, s.y, {.bandwidth = {0.7}}).leave_one_out_score(), usual, 1e-12 * usual);
}

TEST(ManyRows, ASearchOnAPartOfThemEndsAtALeastOfTheWholeScore) {
  for (const Estimator estimator : {Estimator::local_constant, Estimator::local_linear}) {
    const Sample s = sample(1600, 2, 1, 76, 2);
    Points y(1600, 1);
    for (int64_t i = 0; i < y.rows; ++i)
      y.at(i, 0) = std::sin(2 * s.x.at(i, 0)) + 0.5 * s.x.at(i, 1) + 0.2 * s.y.at(i, 0);
    const KernelRegression regression(s.x, y, {.estimator = estimator});
    double share = 0;
    int calls = 0;
    const CrossValidated cv = cross_validate(regression, [&](const SearchProgress& p) {
      EXPECT_GE(p.share, share);
      EXPECT_LE(p.share, 1);
      share = p.share;
      ++calls;
    });
    EXPECT_EQ(calls, cv.evaluations);
    EXPECT_GT(share, 0.5);
    const auto score = [&](std::vector<double> h) {
      return regression.with({.estimator = estimator, .bandwidth = std::move(h)}).leave_one_out_score();
    };
    EXPECT_EQ(cv.score, score(cv.bandwidth)) << "it is of all rows";
    for (const double factor : {0.8, 0.9, 1.1, 1.25}) {
      EXPECT_GE(score({cv.bandwidth[0] * factor, cv.bandwidth[1]}), cv.score * (1 - 2e-4)) << factor;
      EXPECT_GE(score({cv.bandwidth[0], cv.bandwidth[1] * factor}), cv.score * (1 - 2e-4)) << factor;
    }
    const qkv_test::ThreadsScope three(3);
    EXPECT_EQ(cross_validate(regression).bandwidth, cv.bandwidth);
  }
}

TEST(Bandwidth, ColumnsOfNumbersTooSmallOrTooLargeAreNamed) {
  Points x(4, 2);
  for (int64_t i = 0; i < 4; ++i) {
    x.at(i, 0) = static_cast<double>(i);
    x.at(i, 1) = static_cast<double>(i) * 1e-305;
  }
  const auto error = [&] {
    try {
      rule_bandwidth(x, KernelShape::gaussian);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(error().substr(0, 42), "[bandwidth] x column 2 runs from 0 to 3e-3");
  for (int64_t i = 0; i < 4; ++i) x.at(i, 1) = i % 2 == 0 ? 1e308 : -1e308;
  EXPECT_EQ(error(),
            "[bandwidth] x column 2 runs from -1e+308 to 1e+308: its numbers are too small or too large to derive "
            "a width from them; scale the column, or give a width");
}
