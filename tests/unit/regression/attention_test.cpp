// Kernel regression is attention pooling: for every kernel, weights and predictions equal those of attend with the
// scorer of that name.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "qkv/attention/any_scorer.h"
#include "qkv/attention/attend.h"
#include "qkv/core/names.h"
#include "qkv/regression/kernel_regression.h"

namespace qkv {
namespace {

Tensor tensor_of(const Points& points) {
  Tensor out = Tensor::empty({points.rows, points.width});
  for (int64_t i = 0; i < out.numel(); ++i)
    out.mutable_ptr()[i] = static_cast<float>(points.values[static_cast<size_t>(i)]);
  return out;
}

// Random numbers that are exact in float, so that both sides use the same values.
Points random_points(int64_t rows, int64_t width, const char* name, float low, float high) {
  const Tensor drawn = uniform({rows, width}, Rng(7).at(name), low, high);
  Points out(rows, width);
  for (int64_t i = 0; i < drawn.numel(); ++i) out.values[static_cast<size_t>(i)] = drawn.ptr()[i];
  return out;
}

double kernel_at(KernelShape shape, double u2) {
  switch (shape) {
    case KernelShape::gaussian:
      return std::exp(-u2 / 2);
    case KernelShape::boxcar:
      return u2 < 1 ? 1 : 0;
    case KernelShape::epanechnikov:
      return std::max(0.0, 1 - u2);
    case KernelShape::triangular:
      return std::max(0.0, 1 - std::sqrt(u2));
    case KernelShape::constant:
      return 1;
  }
  return 0;
}

// attend computes in float. Each of its K is off by at most 8 units of rounding: u^2 by three, the score by its
// logarithm and back by |log K| K <= 1 / e and two more each. A weight K / sum K of n keys is then off by at most 8 (n
// + 1) units over sum K.
double weight_tolerance(double sum, int64_t keys) {
  return 8.0 * static_cast<double>(keys + 1) * std::numeric_limits<float>::epsilon() / sum;
}

void expect_attention(const Points& x, const Points& y, const Points& at, KernelShape shape,
                      const std::vector<double>& bandwidth, const AnyScorer& scorer) {
  const KernelRegression regression(x, y, {shape, Estimator::local_constant, bandwidth});
  const Predictions predicted = regression.predict(at);
  const Tensor weights = regression.weights(at);
  for (const AttendPath path : {AttendPath::fused, AttendPath::composed}) {
    SCOPED_TRACE(text(name_of(shape), ", ", x.width, " columns, ", path == AttendPath::fused ? "fused" : "composed"));
    const Attended attended =
        attend(scorer, tensor_of(at), tensor_of(x), tensor_of(y), Mask::none(), {}, {.path = path});
    EXPECT_EQ(attended.weights.empty_rows(), predicted.absent);
    const Tensor alpha = attended.weights.matrix();  // (1, 1, queries, keys)
    for (int64_t q = 0; q < at.rows; ++q) {
      double sum = 0, size = 0;
      for (int64_t i = 0; i < x.rows; ++i) {
        double u2 = 0;
        for (int64_t a = 0; a < x.width; ++a)
          u2 += std::pow((at.at(q, a) - x.at(i, a)) / bandwidth[bandwidth.size() == 1 ? 0 : static_cast<size_t>(a)], 2);
        ASSERT_GT(std::abs(u2 - 1), 1e-6) << "at the edge of the boxcar rounding decides";
        sum += kernel_at(shape, u2);
        size += std::abs(y.at(i, 0));
      }
      if (sum == 0) {
        EXPECT_TRUE(std::isnan(predicted.values.at(q, 0)));
        EXPECT_EQ(attended.output.at({q, 0}), 0);
      } else {
        EXPECT_NEAR(attended.output.at({q, 0}), predicted.values.at(q, 0), weight_tolerance(sum, x.rows) * size)
            << "query " << q;
      }
      for (int64_t i = 0; i < x.rows; ++i)
        ASSERT_NEAR(alpha.at({0, 0, q, i}), weights.at({q, i}), sum == 0 ? 0 : weight_tolerance(sum, x.rows))
            << "query " << q << ", key " << i;
    }
  }
}

TEST(RegressionIsAttention, ForEveryKernelOnALine) {
  const Points x = random_points(50, 1, "x", 0, 5), y = random_points(50, 1, "y", -2, 2);
  Points at = random_points(40, 1, "at", -0.25f, 5.25f);
  at.at(7, 0) = 9;  // far from all: kernels of bounded support give every key weight 0
  for (const KernelShape shape : every<KernelShape>()) {
    const auto kind = find_named<ScorerKind>(name_of(shape));
    ASSERT_TRUE(kind) << name_of(shape);
    for (const double h : {0.25, 0.5, 2.0})
      expect_attention(
          x, y, at, shape, {h},
          make_scorer(*kind, shape == KernelShape::constant ? ScorerValues{} : ScorerValues{.bandwidth = h}));
  }
}

// In several dimensions the regression multiplies kernels of the coordinates, attention uses one kernel of the
// distance: for the Gaussian both are the same.
TEST(RegressionIsAttention, ForTheGaussianInSeveralDimensions) {
  const Points x = random_points(60, 3, "x", 0, 2), y = random_points(60, 1, "y", -2, 2),
               at = random_points(30, 3, "at", 0, 2);
  expect_attention(x, y, at, KernelShape::gaussian, {0.5}, make_scorer(ScorerKind::gaussian, {.bandwidth = 0.5}));
  expect_attention(x, y, at, KernelShape::gaussian, {0.5, 2, 1}, AnyScorer{Gaussian{Tensor({3}, {2, 0.5f, 1})}});
}

}  // namespace
}  // namespace qkv
