// Rules, cross-validation and the learned width.
#include "qkv/regression/bandwidth.h"

#include <gtest/gtest.h>

#include <algorithm>

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

/// L(w) and its slope by central differences, from the definition.
double loss(const Points& x, const Points& y, std::vector<double> w) {
  for (double& value : w) value = 1 / std::abs(value);
  double total = 0;
  for (int64_t i = 0; i < x.rows; ++i) {
    const BruteForce f = brute_force(x, y, {.bandwidth = w}, x.row(i), i);
    for (int64_t j = 0; j < y.width; ++j) total += (f.value[j] - y.at(i, j)) * (f.value[j] - y.at(i, j));
  }
  return total;
}

struct NotesData {
  Points x{50, 1}, y{50, 1};
};

/// 50 points of f(x) = 2 sin x + x^0.8 with noise of deviation 0.5, x uniform in (0, 5), sorted.
NotesData notes_data(uint64_t seed) {
  const Rng rng(seed);
  NotesData data;
  for (uint64_t i = 0; i < 50; ++i) data.x.values[i] = 5.0 * rng.at("x").uniform(i);
  std::sort(data.x.values.begin(), data.x.values.end());
  for (uint64_t i = 0; i < 50; ++i) {
    const double x = data.x.values[i];
    data.y.values[i] = 2 * std::sin(x) + std::pow(x, 0.8) + 0.5 * rng.at("noise").normal(i);
  }
  return data;
}

double test_error(const NotesData& data, const RegressionOptions& options) {
  Points at(50, 1);
  for (int64_t i = 0; i < 50; ++i) at.at(i, 0) = 0.1 * static_cast<double>(i);
  const Predictions p = KernelRegression(data.x, data.y, options).predict(at);
  double total = 0;
  for (int64_t i = 0; i < 50; ++i) {
    const double truth = 2 * std::sin(at.at(i, 0)) + std::pow(at.at(i, 0), 0.8);
    total += (p.values.at(i, 0) - truth) * (p.values.at(i, 0) - truth) / 50;
  }
  return total;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[values.size() / 2] + values[(values.size() - 1) / 2]) / 2;
}

}  // namespace

TEST(Bandwidth, RuleOfThumbIsTheNormalReference) {
  // sd of 0..9 is 3.02765, quartiles 2.25 and 6.75: 4.5 / 1.349 = 3.33580, so the deviation is used.
  std::vector<double> x(10);
  for (int i = 0; i < 10; ++i) x[i] = i;
  EXPECT_NEAR(rule_bandwidth(Points::of(x), KernelShape::gaussian)[0], 1.06 * 3.0276503540974917 * std::pow(10, -0.2),
              1e-12);
  const double gaussian = rule_bandwidth(Points::of(x), KernelShape::gaussian)[0];
  EXPECT_NEAR(rule_bandwidth(Points::of(x), KernelShape::epanechnikov)[0] / gaussian, 2.2138, 1e-4);
  x[9] = 1000;  // an outlier: the quartiles are used
  EXPECT_NEAR(rule_bandwidth(Points::of(x), KernelShape::gaussian)[0], 1.06 * 4.5 / 1.349 * std::pow(10, -0.2), 1e-12);
  EXPECT_EQ(error_of([] {
              rule_bandwidth(Points::of({4.0, 4.0, 4.0}), KernelShape::gaussian);
            }),
            "[bandwidth] all 3 values of x column 1 are 4: a width cannot be derived from them, give one");
  EXPECT_EQ(error_of([] { rule_bandwidth(Points::of({4.0}), KernelShape::gaussian); }),
            "[bandwidth] a rule needs at least 2 rows, got 1");
}

TEST(Bandwidth, CrossValidationFindsTheLeastOfAFineGrid) {
  for (const KernelShape shape : {KernelShape::gaussian, KernelShape::epanechnikov, KernelShape::triangular}) {
    for (const Estimator estimator : {Estimator::local_constant, Estimator::local_linear}) {
      const Sample s = sample(150, 1, 1, 51);
      const KernelRegression regression(s.x, s.y, {shape, estimator, {1}});
      const CrossValidated cv = cross_validate(regression);
      double variance = 0, mean = 0;
      for (const double y : s.y.values) mean += y / 150;
      for (const double y : s.y.values) variance += (y - mean) * (y - mean) / 150;
      double least = INFINITY;
      for (double h = 0.02; h < 5; h *= 1.02) {
        double squares = 0;
        for (int64_t i = 0; i < 150; ++i) {
          const BruteForce f = brute_force(s.x, s.y, {shape, estimator, {h}}, s.x.row(i), i);
          const double error = f.weight.empty() ? (s.y.at(i, 0) - mean) * 150 / 149 : f.value[0] - s.y.at(i, 0);
          squares += error * error;
        }
        least = std::min(least, squares / 150 / variance);
      }
      EXPECT_LE(cv.score, least * (1 + 1e-3))
          << name_of(shape) << " " << name_of(estimator) << " h " << cv.bandwidth[0];
    }
  }
}

TEST(Bandwidth, CrossValidationWidensTheCoordinateThatDoesNotMatter) {
  const Sample s = sample(200, 2, 1, 52);
  Points y(200, 1);
  for (int64_t i = 0; i < 200; ++i) y.at(i, 0) = std::sin(2 * s.x.at(i, 0)) + 0.1 * s.y.at(i, 0);
  const CrossValidated cv = cross_validate(KernelRegression(s.x, y));
  EXPECT_GT(cv.bandwidth[1], 4 * cv.bandwidth[0]);
}

TEST(Bandwidth, CrossValidationOfTheAverageIsRefused) {
  const KernelRegression regression(Points::of({1.0, 2.0}), Points::of({1.0, 2.0}), {.estimator = Estimator::average});
  EXPECT_EQ(error_of([&] { cross_validate(regression); }), "[bandwidth] the average has no bandwidth to choose");
}

TEST(LearnedBandwidth, LossesAndStepsFollowTheDefinition) {
  for (const int64_t d : {1, 2}) {
    const Sample s = sample(40, d, 2, 61);
    const Learned learned = learn_bandwidth(s.x, s.y, Rng(7), {.rate = 0.01, .epochs = 3});
    std::vector<double> w = learned.start;
    for (int epoch = 0; epoch < 3; ++epoch) {
      EXPECT_NEAR(learned.losses[epoch], loss(s.x, s.y, w), 1e-8);
      std::vector<double> next = w;
      for (size_t a = 0; a < w.size(); ++a) {
        std::vector<double> up = w, down = w;
        up[a] += 1e-6;
        down[a] -= 1e-6;
        next[a] -= 0.01 * (loss(s.x, s.y, up) - loss(s.x, s.y, down)) / 2e-6;
      }
      w = next;
    }
    for (size_t a = 0; a < w.size(); ++a) EXPECT_NEAR(learned.w[a], w[a], 1e-5);
    EXPECT_NEAR(learned.bandwidth()[0], 1 / std::abs(learned.w[0]), 1e-15);
  }
}

TEST(LearnedBandwidth, StepsAreTheSameBitsAtAnyNumberOfThreads) {
  const qkv_test::ThreadsScope threads_scope;
  for (const int64_t n : {300, 2400}) {  // several blocks, key by key and with the line's fast sums
    const Sample s = sample(n, 1, 1, 63);
    const LearnOptions options{.rate = 1e-3, .epochs = 4, .start = 0.6};
    set_threads(1);
    const Learned one = learn_bandwidth(s.x, s.y, Rng(0), options);
    for (const int count : {2, 5}) {
      set_threads(count);
      const Learned several = learn_bandwidth(s.x, s.y, Rng(0), options);
      EXPECT_EQ(several.losses, one.losses);
      EXPECT_EQ(several.w, one.w);
    }
  }
}

TEST(LearnedBandwidth, AtZeroTheLossIsThatOfTheAverageOfTheOthersAndNothingMoves) {
  const Sample s = sample(30, 2, 1, 64);
  const Learned learned = learn_bandwidth(s.x, s.y, Rng(0), {.epochs = 2, .start = 0.0});
  double sum = 0, want = 0;
  for (const double y : s.y.values) sum += y;
  for (const double y : s.y.values) want += ((sum - y) / 29 - y) * ((sum - y) / 29 - y);
  EXPECT_NEAR(learned.losses[0], want, 1e-12 * want);
  EXPECT_EQ(learned.losses[1], learned.losses[0]);
  EXPECT_EQ(learned.w, (std::vector<double>{0, 0}));
}

TEST(LearnedBandwidth, SoSharpThatEveryWeightUnderflowsTheNearestRowCounts) {
  // Rows 2 and 4 are equal points; row 5 has several nearest rows at the same distance, which share.
  const Points x = Points::of({0.0, 1.0, 10.0, 1.0, 5.5}), y = Points::of({1.0, 2.0, 4.0, 8.0, 16.0});
  for (const double start : {1e3, 1e100, 1e300}) {
    const Learned learned = learn_bandwidth(x, y, Rng(0), {.epochs = 1, .start = start});
    const double share = (4 + 2 + 8) / 3.0 - 16;  // 5.5 is 4.5 from 10, 1 and 1
    EXPECT_NEAR(learned.losses[0], 4 * 4 + 6 * 6 + 12 * 12 + 6 * 6 + share * share, 1e-9)
        << start;  // 0 sees 2 and 8: 5
    EXPECT_EQ(learned.w[0], start);
  }
}

TEST(LearnedBandwidth, FastSumsTakeTheSameSteps) {
  const Sample s = sample(2400, 1, 1, 62);  // above the size where the line's fast sums begin
  Sample doubled{Points(2400, 2), s.y};     // the same problem in two dimensions, the second constant: key by key
  for (int64_t i = 0; i < 2400; ++i) doubled.x.at(i, 0) = s.x.at(i, 0);
  const LearnOptions options{.rate = 1e-3, .epochs = 3, .start = 0.6};
  const Learned fast = learn_bandwidth(s.x, s.y, Rng(0), options),
                direct = learn_bandwidth(doubled.x, doubled.y, Rng(0), options);
  for (int epoch = 0; epoch < 3; ++epoch)
    EXPECT_NEAR(fast.losses[epoch], direct.losses[epoch], 1e-6 * direct.losses[epoch]);
  EXPECT_NEAR(fast.w[0], direct.w[0], 1e-6 * std::abs(direct.w[0]));
}

TEST(LearnedBandwidth, MediansOverThreeHundredSeedsAreTheBooks) {
  std::vector<double> average, fixed, learned, first, last, width;
  int better = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const NotesData data = notes_data(seed);
    const Learned l = learn_bandwidth(data.x, data.y, Rng(seed).at("w"));
    average.push_back(test_error(data, {.estimator = Estimator::average}));
    fixed.push_back(test_error(data, {.bandwidth = {1}}));
    learned.push_back(test_error(data, {.bandwidth = l.bandwidth()}));
    better += learned.back() < fixed.back();
    first.push_back(l.losses.front());
    last.push_back(l.losses.back());
    width.push_back(std::abs(l.w[0]));
  }
  EXPECT_NEAR(median(average), 0.89, 0.089);
  EXPECT_NEAR(median(fixed), 0.42, 0.042);
  EXPECT_NEAR(median(learned), 0.115, 0.0115);
  EXPECT_NEAR(median(first), 47.0, 4.7);
  EXPECT_NEAR(median(last), 18.1, 1.9);
  EXPECT_NEAR(median(width), 13.9, 2.8);
  EXPECT_GE(better, 280);
}

TEST(LearnedBandwidth, RefusesWhatCannotBeTrained) {
  const Points two = Points::of({1.0, 2.0}), one = Points::of({1.0});
  EXPECT_EQ(error_of([&] { learn_bandwidth(one, one, Rng(0)); }),
            "[learn] leave-one-out training needs at least 2 rows, got 1");
  EXPECT_EQ(error_of([&] { learn_bandwidth(two, one, Rng(0)); }), "[learn] x has 2 rows, y has 1");
  EXPECT_EQ(error_of([&] { learn_bandwidth(two, two, Rng(0), {.rate = -1}); }),
            "[learn] the learning rate must be positive, got -1");
  EXPECT_EQ(error_of([&] { learn_bandwidth(two, two, Rng(0), {.epochs = 0}); }),
            "[learn] the number of epochs must be at least 1, got 0");
}
