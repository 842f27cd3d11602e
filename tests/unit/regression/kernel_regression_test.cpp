// Kernel regression against its definition: every kernel, estimator and dimension; fast sums; edges.
#include "qkv/regression/kernel_regression.h"

#include <gtest/gtest.h>

#include <cstring>

#include "qkv/core/check.h"
#include "qkv/core/names.h"
#include "qkv/core/parallel.h"
#include "support/files.h"
#include "support/threads.h"
#include "unit/regression/brute_force.h"

using namespace qkv;
using namespace qkv::test;

namespace {

using qkv_test::error_of;

/// Predictions, leave-one-out and band against the definition.
void expect_equal(const Sample& s, const Points& at, const RegressionOptions& options, double tolerance) {
  SCOPED_TRACE(
      text(name_of(options.kernel), " ", name_of(options.estimator), " h ", options.bandwidth[0], " d ", s.x.width));
  const KernelRegression regression(s.x, s.y, options);
  const Predictions got = regression.predict(at);
  for (int64_t q = 0; q < at.rows; ++q) {
    const BruteForce want = brute_force(s.x, s.y, options, at.row(q));
    for (int64_t j = 0; j < s.y.width; ++j) {
      if (want.weight.empty())
        EXPECT_TRUE(std::isnan(got.values.at(q, j)));
      else
        ASSERT_NEAR(got.values.at(q, j), want.value[j], tolerance) << "query " << q << " at " << at.at(q, 0);
    }
  }
  const Predictions left_out = regression.leave_one_out();
  for (int64_t i = 0; i < s.x.rows; i += 7) {
    const BruteForce want = brute_force(s.x, s.y, options, s.x.row(i), i);
    if (want.weight.empty())
      EXPECT_TRUE(std::isnan(left_out.values.at(i, 0)));
    else
      ASSERT_NEAR(left_out.values.at(i, 0), want.value[0], tolerance) << "row " << i << " at " << s.x.at(i, 0);
  }
}

Points grid(double low, double high, int64_t n) {
  Points p(n, 1);
  for (int64_t i = 0; i < n; ++i) p.at(i, 0) = low + (high - low) * static_cast<double>(i) / static_cast<double>(n - 1);
  return p;
}

}  // namespace

TEST(KernelRegression, EveryKernelEstimatorAndDimensionAgreesWithItsDefinition) {
  for (const int64_t d : {1, 2, 3}) {
    const Sample s = sample(80, d, 2, 10 + static_cast<uint64_t>(d), 3);
    Sample at = sample(9, d, 1, 99, 2.6);
    for (double& v : at.x.values) v += 0.2;
    std::vector<double> h = {1.7};
    if (d > 1) {
      h.assign(static_cast<size_t>(d), 1.9);
      h[1] = 2.3;
    }
    for (const KernelShape shape : kShapes)
      for (const Estimator estimator : kEstimators) expect_equal(s, at.x, {shape, estimator, h}, 1e-8);
  }
}

TEST(KernelRegression, FastSumsAgreeOnUniformPointsAtEveryWidth) {
  const Sample s = sample(2000, 1, 2, 5);
  for (const KernelShape shape :
       {KernelShape::gaussian, KernelShape::boxcar, KernelShape::epanechnikov, KernelShape::triangular})
    for (const double h : {3.0, 0.4, 0.02})
      for (const Estimator estimator : {Estimator::local_constant, Estimator::local_linear})
        expect_equal(s, grid(0, 5, 61), {shape, estimator, {h}}, 1e-6);
}

TEST(KernelRegression, FastSumsAgreeOnClustersDuplicatesGapsAndFarOffsets) {
  Sample s = sample(2000, 1, 1, 6);
  for (int64_t i = 0; i < s.x.rows; ++i) {
    double& x = s.x.at(i, 0);
    if (i % 4 == 0)
      x = std::round(x);  // many equal points
    else if (i % 4 == 1)
      x = 2.5 + (x - 2.5) * 1e-3;  // a tight cluster
    else if (i % 4 == 2)
      x = x < 2.5 ? x * 0.1 : 5 - (5 - x) * 0.1;  // a gap in the middle
  }
  for (const double offset : {0.0, 1e6, -1e9}) {
    Sample moved = s;
    for (double& x : moved.x.values) x += offset;
    Points at = grid(-0.4, 5.4, 60);
    for (double& x : at.values) x += offset;
    for (const KernelShape shape :
         {KernelShape::gaussian, KernelShape::boxcar, KernelShape::epanechnikov, KernelShape::triangular})
      for (const double h : {0.5, 0.06}) expect_equal(moved, at, {shape, Estimator::local_constant, {h}}, 1e-6);
    expect_equal(moved, grid(offset + 0.1, offset + 4.9, 40), {KernelShape::gaussian, Estimator::local_linear, {0.5}},
                 1e-6);
  }
}

TEST(KernelRegression, WhereFastSumsHaveNoDigitsLeftKeysAreSummedOneByOne) {
  Points x(20000, 1), y(20000, 1);
  for (int64_t i = 0; i < x.rows; ++i) {
    x.at(i, 0) = 1e-5 * static_cast<double>(i);
    y.at(i, 0) = std::sin(static_cast<double>(i));
  }
  y.at(0, 0) = 7;
  for (const KernelShape shape : {KernelShape::triangular, KernelShape::epanechnikov}) {
    const KernelRegression regression(
        x, y, {shape, Estimator::local_constant, {1}});  // one key of a crowded cell, at the very edge
    EXPECT_NEAR(regression.predict(Points::of({-1 + 1e-12})).values.at(0, 0), 7, 1e-9) << name_of(shape);
  }
  const Sample lonely{Points::of({0, 8, 8.3, 16.5, 100}),
                      Points::of({1, 2, 4, 8, 16})};  // weights of 1e-14 beside the row's own
  expect_equal(lonely, Points::of({0.0, 4.0, 12.5}), {.bandwidth = {1}}, 1e-9);
  const Predictions left_out = KernelRegression(lonely.x, lonely.y, {.bandwidth = {1}}).leave_one_out();
  const double ratio = std::exp(-0.5 * (8.3 * 8.3 - 8 * 8));
  EXPECT_NEAR(left_out.values.at(0, 0), (2 + 4 * ratio) / (1 + ratio), 1e-9);
  EXPECT_NEAR(left_out.values.at(4, 0), 8, 1e-9);
}

TEST(KernelRegression, ManyOutputsAreManyRegressions) {
  const Sample s = sample(500, 1, 19, 8);
  const Points at = grid(0, 5, 11);
  const RegressionOptions options{.bandwidth = {0.3}};
  const Predictions all = KernelRegression(s.x, s.y, options).predict(at);
  for (const int64_t j : {0, 6, 7, 8, 15, 18}) {
    const Predictions one = KernelRegression(s.x, Points::of(s.y.column(j)), options).predict(at);
    for (int64_t q = 0; q < at.rows; ++q) EXPECT_NEAR(all.values.at(q, j), one.values.at(q, 0), 1e-12);
  }
}

TEST(KernelRegression, TheNotesWorkedExamples) {
  const KernelRegression waist(Points::of({51.0, 56.0, 58.0}), Points::of({40.0, 43.0, 48.0}), {.bandwidth = {1}});
  EXPECT_NEAR(waist.predict(Points::of({57.0})).values.at(0, 0), 45.49999993, 5e-9);
  const Tensor w = waist.weights(Points::of({57.0}));
  EXPECT_NEAR(w.at({0, 0}), 1.25550e-8, 1e-12);
  EXPECT_NEAR(w.at({0, 1}), 0.49999999, 1e-7);
  EXPECT_EQ(w.at({0, 1}), w.at({0, 2}));

  const std::vector<std::vector<double>> keys = {{51, 56, 56}, {70, 82, 82}}, values = {{40, 43, 48}, {155, 159, 162}};
  const std::vector<std::vector<double>> queries = {{57, 55}, {83, 76}};
  const KernelRegression measures(Points::from_columns(keys), Points::from_columns(values), {.bandwidth = {1}});
  const Predictions p = measures.predict(Points::from_columns(queries));
  EXPECT_NEAR(p.values.at(0, 0), 45.5, 1e-9);
  EXPECT_NEAR(p.values.at(0, 1), 160.5, 1e-9);
  EXPECT_NEAR(p.values.at(1, 0), 45.49848, 5e-6);
  EXPECT_NEAR(p.values.at(1, 1), 160.49848, 5e-6);
  const Tensor w2 = measures.weights(Points::from_columns(queries));
  EXPECT_NEAR(w2.at({1, 0}), 2.7647e-4, 5e-9);
  EXPECT_NEAR(w2.at({1, 1}), 0.499862, 5e-7);
}

TEST(KernelRegression, WeightsSumToOneAndGiveThePrediction) {
  const Sample s = sample(60, 2, 1, 3, 2);
  const Points at = sample(5, 2, 1, 4, 2).x;
  for (const KernelShape shape : kShapes) {
    for (const Estimator estimator : kEstimators) {
      const KernelRegression regression(s.x, s.y, {shape, estimator, {1.4}});
      const Tensor w = regression.weights(at);
      const Predictions p = regression.predict(at);
      for (int64_t q = 0; q < at.rows; ++q) {
        double sum = 0, f = 0;
        for (int64_t i = 0; i < s.x.rows; ++i) {
          sum += w.at({q, i});
          f += w.at({q, i}) * s.y.at(i, 0);
        }
        EXPECT_NEAR(sum, 1, 1e-5);
        EXPECT_NEAR(f, p.values.at(q, 0), 1e-5);
      }
    }
  }
}

TEST(KernelRegression, BandIsTheQuantileTimesTheNoiseOfTheWeights) {
  for (const int64_t d : {1, 2}) {
    const Sample s = sample(150, d, 2, 21, 3);
    Points at = sample(6, d, 1, 22, 2.4).x;
    for (double& v : at.values) v += 0.3;
    for (const KernelShape shape : kShapes) {
      for (const Estimator estimator : kEstimators) {
        SCOPED_TRACE(text(name_of(shape), " ", name_of(estimator), " d ", d));
        const RegressionOptions options{shape, estimator, {1.5}};
        const KernelRegression regression(s.x, s.y, options);
        const Predictions p = regression.predict_with_band(at, 0.9);
        for (int64_t j = 0; j < 2; ++j) {
          double squares = 0;
          for (int64_t i = 0; i < s.x.rows; ++i) {
            const double r = s.y.at(i, j) - brute_force(s.x, s.y, options, s.x.row(i), i).value[j];
            squares += r * r;
          }
          const double sigma = std::sqrt(squares / static_cast<double>(s.x.rows));
          EXPECT_NEAR(p.deviation[j], sigma, 1e-8);
          for (int64_t q = 0; q < at.rows; ++q) {
            double l2 = 0;
            for (const double l : brute_force(s.x, s.y, options, at.row(q)).weight) l2 += l * l;
            EXPECT_NEAR(p.high.at(q, j) - p.values.at(q, j), 1.6448536269514722 * sigma * std::sqrt(l2), 1e-7);
            EXPECT_NEAR(p.values.at(q, j) - p.low.at(q, j), 1.6448536269514722 * sigma * std::sqrt(l2), 1e-7);
          }
        }
      }
    }
  }
}

TEST(KernelRegression, BandCoversTheTruthAboutAsOftenAsItSays) {
  int64_t inside = 0, total = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Rng rng(seed);
    Points x(200, 1), y(200, 1);
    for (int64_t i = 0; i < 200; ++i) {
      x.at(i, 0) = 5.0 * rng.at("x").uniform(static_cast<uint64_t>(i));
      y.at(i, 0) = 0.5 * x.at(i, 0) + 0.5 * rng.at("noise").normal(static_cast<uint64_t>(i));
    }
    const Points at = grid(1, 4, 13);
    const Predictions p =
        KernelRegression(x, y, {.estimator = Estimator::local_linear, .bandwidth = {0.4}}).predict_with_band(at, 0.95);
    for (int64_t q = 0; q < at.rows; ++q, ++total)
      inside += p.low.at(q, 0) <= 0.5 * at.at(q, 0) && 0.5 * at.at(q, 0) <= p.high.at(q, 0);
  }
  const double share = static_cast<double>(inside) / static_cast<double>(total);
  EXPECT_GT(share, 0.91);
  EXPECT_LT(share, 0.985);
}

TEST(KernelRegression, EffectiveKeysIsTheExponentOfTheEntropy) {
  const Points x = Points::of({0.0, 0.1, 0.2, 10.0}), y = Points::of({1.0, 2.0, 3.0, 4.0});
  EXPECT_NEAR(
      KernelRegression(x, y, {.kernel = KernelShape::boxcar, .bandwidth = {1}}).effective_keys(Points::of({0.1}))[0], 3,
      1e-12);
  EXPECT_NEAR(KernelRegression(x, y, {.estimator = Estimator::average}).effective_keys(Points::of({0.1}))[0], 4, 1e-12);
  EXPECT_NEAR(KernelRegression(x, y, {.bandwidth = {1}}).effective_keys(Points::of({10.0}))[0], 1, 1e-9);
  EXPECT_EQ(
      KernelRegression(x, y, {.kernel = KernelShape::boxcar, .bandwidth = {1}}).effective_keys(Points::of({5.0}))[0],
      0);
  // A far key's weight is not zero, but its share of the sum underflows.
  std::vector<double> crowd(100, 0.0);
  crowd.push_back(37.64);
  const KernelRegression tiny(Points::of(crowd), Points::of(crowd), {.bandwidth = {1}});
  EXPECT_NEAR(tiny.effective_keys(Points::of({0.0}))[0], 100, 1e-9);
}

TEST(KernelRegression, AQueryFarFromAllKeysFollowsTheNearest) {
  for (const int64_t d : {1, 2}) {
    Points x(3, d), y = Points::of({1.0, 2.0, 3.0}), at(2, d);
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t a = 0; a < d; ++a) x.at(i, a) = static_cast<double>(i);
    for (int64_t a = 0; a < d; ++a) {
      at.at(0, a) = 1e5;
      at.at(1, a) = -1e5;
    }
    for (const Estimator estimator : {Estimator::local_constant, Estimator::local_linear}) {
      const KernelRegression regression(x, y, {.estimator = estimator, .bandwidth = {0.5}});
      const Predictions p = regression.predict(at);
      EXPECT_DOUBLE_EQ(p.values.at(0, 0), 3);
      EXPECT_DOUBLE_EQ(p.values.at(1, 0), 1);
      EXPECT_EQ(regression.weights(at).at({0, 2}), 1);
    }
  }
}

TEST(KernelRegression, CompactKernelsWithoutNeighbourGiveNoPrediction) {
  for (const KernelShape shape : {KernelShape::boxcar, KernelShape::epanechnikov, KernelShape::triangular}) {
    const Predictions p =
        KernelRegression(Points::of({0.0, 1.0}), Points::of({5.0, 7.0}), {shape, Estimator::local_constant, {0.5}})
            .predict(Points::of({0.0, 0.5, 0.75, 9.0}));
    EXPECT_EQ(p.absent, 2) << name_of(shape);  // a key exactly at the edge is outside
    EXPECT_EQ(p.values.at(0, 0), 5);
    EXPECT_TRUE(std::isnan(p.values.at(1, 0)));
    EXPECT_EQ(p.values.at(2, 0), 7);
    EXPECT_TRUE(std::isnan(p.values.at(3, 0)));
  }
}

TEST(KernelRegression, OnePointAndEqualPointsAreNoSpecialCase) {
  for (const Estimator estimator : kEstimators) {
    const KernelRegression one(Points::of({2.0}), Points::of({7.0}), {.estimator = estimator, .bandwidth = {1}});
    EXPECT_DOUBLE_EQ(one.predict(Points::of({2.5})).values.at(0, 0), 7);
    EXPECT_EQ(error_of([&] { one.leave_one_out(); }), "[leave-one-out] needs at least 2 rows, got 1");
    const KernelRegression equal(Points::of({2.0, 2.0, 2.0}), Points::of({6.0, 7.0, 11.0}),
                                 {.estimator = estimator, .bandwidth = {1}});
    EXPECT_DOUBLE_EQ(equal.predict(Points::of({2.5})).values.at(0, 0), 8);
    EXPECT_DOUBLE_EQ(equal.leave_one_out().values.at(2, 0), 6.5);
  }
}

TEST(KernelRegression, CollinearKeysHaveNoSlopeAcrossTheirLine) {
  Points x(50, 2), y(50, 1);
  for (int64_t i = 0; i < 50; ++i) {
    x.at(i, 0) = x.at(i, 1) = 0.1 * static_cast<double>(i);
    y.at(i, 0) = 3 * x.at(i, 0) + 1;
  }
  Points at(1, 2);
  at.at(0, 0) = at.at(0, 1) = 2.33;
  const Predictions p = KernelRegression(x, y, {.estimator = Estimator::local_linear, .bandwidth = {0.5}}).predict(at);
  EXPECT_NEAR(p.values.at(0, 0), 3 * 2.33 + 1, 1e-8);
}

TEST(KernelRegression, LocalLinearReproducesALineUpToTheBorder) {
  const Sample s = sample(400, 1, 1, 31);
  Points y(400, 1);
  for (int64_t i = 0; i < 400; ++i) y.at(i, 0) = 4 - 2.5 * s.x.at(i, 0);
  for (const KernelShape shape : kShapes) {
    const Predictions p = KernelRegression(s.x, y, {shape, Estimator::local_linear, {0.4}}).predict(grid(0, 5, 21));
    for (int64_t q = 0; q < 21; ++q) EXPECT_NEAR(p.values.at(q, 0), 4 - 2.5 * 0.25 * static_cast<double>(q), 1e-7);
  }
}

TEST(KernelRegression, SameBitsAtAnyNumberOfThreads) {
  const qkv_test::ThreadsScope threads_scope;
  for (const int64_t d : {1, 2}) {
    const Sample s = sample(1500, d, 2, 41);
    const Points at = sample(700, d, 1, 42).x;
    for (const KernelShape shape : kShapes) {
      std::vector<double> first;
      for (const int count : {1, 2, 8}) {
        set_threads(count);
        const KernelRegression regression(s.x, s.y, {shape, Estimator::local_linear, {0.7}});
        std::vector<double> bits = regression.predict_with_band(at).low.values;
        const std::vector<double> more = regression.leave_one_out().values.values;
        bits.insert(bits.end(), more.begin(), more.end());
        if (first.empty()) first = bits;
        ASSERT_EQ(std::memcmp(first.data(), bits.data(), bits.size() * sizeof(double)), 0)
            << name_of(shape) << " threads " << count;
      }
    }
  }
}

TEST(KernelRegression, RefusesBadInputWithBothValues) {
  const auto make = [](Points x, Points y, RegressionOptions o = {}) {
    return error_of([&] { KernelRegression(x, y, o); });
  };
  const Points two = Points::of({1.0, 2.0}), three = Points::of({1.0, 2.0, 3.0});
  EXPECT_EQ(make(two, three), "[regression] x has 2 rows, y has 3");
  EXPECT_EQ(make(Points::of({}), Points::of({})), "[regression] there are no rows");
  EXPECT_EQ(make(two, two, {.bandwidth = {0}}), "[regression] a bandwidth must be positive and finite, got 0");
  EXPECT_EQ(make(two, two, {.bandwidth = {-2.5}}), "[regression] a bandwidth must be positive and finite, got -2.5");
  EXPECT_EQ(make(two, two, {.bandwidth = {1, 2}}),
            "[regression] 2 bandwidths for 1 columns of x: give one, or one per column");
  EXPECT_EQ(make(Points::of({1.0, NAN}), two), "[regression] x row 2, column 1 is not finite: nan");
  EXPECT_EQ(make(two, Points::of({INFINITY, 1.0})), "[regression] y row 1, column 1 is not finite: inf");
  EXPECT_EQ(error_of([&] { KernelRegression(two, two).predict(Points(1, 3)); }),
            "[predict] points have 3 coordinates, the data have 1");
  EXPECT_EQ(error_of([] { normal_quantile(1.5); }), "[band] the level must be between 0 and 1, got 1.5");
}

TEST(KernelRegression, NormalQuantiles) {
  EXPECT_NEAR(normal_quantile(0.95), 1.959963984540054, 1e-12);
  EXPECT_NEAR(normal_quantile(0.6826894921370859), 1, 1e-12);
  EXPECT_NEAR(normal_quantile(0.999999), 4.891638475699, 1e-9);
}
