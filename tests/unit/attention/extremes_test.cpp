// Scores near the limits of a float: weights stay finite and sum to one, and narrow kernels pick the nearest key.
#include <gtest/gtest.h>

#include <cmath>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/reduce.h"
#include "qkv/tensor/tape.h"
#include "support/files.h"

namespace qkv {
namespace {

using qkv_test::error_of;

void expect_weights_of_output(const Attended& a, const Tensor& v) {
  const Tensor weights = a.weights.matrix(), out = a.output;
  const int64_t queries = weights.size(2), keys = weights.size(3), width = v.size(-1);
  for (int64_t i = 0; i < queries; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < keys; ++j) sum += weights.ptr()[i * keys + j];
    ASSERT_NEAR(sum, 1, 1e-6) << "row " << i;
    for (int64_t c = 0; c < width; ++c) {
      double value = 0;
      for (int64_t j = 0; j < keys; ++j) value += double{weights.ptr()[i * keys + j]} * v.ptr()[j * width + c];
      ASSERT_NEAR(value, out.ptr()[i * width + c], 1e-5) << "row " << i;
    }
  }
}

Tensor row(std::initializer_list<float> values) {
  return Tensor({1, 1, static_cast<int64_t>(values.size()), 1}, values);
}

}  // namespace

TEST(Extremes, WeightsOfHugeScoresAreNumbersThatSumToOne) {
  const Tensor v = normal({1, 1, 60, 3}, Rng(3));
  for (const float size : {1e3f, 1e5f, 1e8f, 1e15f})
    for (const int64_t width : {1, 16}) {
      const Tensor q = scale(normal({1, 1, 20, width}, Rng(1)), size),
                   k = scale(normal({1, 1, 60, width}, Rng(2)), size);
      expect_weights_of_output(attend(Dot{}, q, k, v), v);
      expect_weights_of_output(attend(ScaledDot{}, q, k, v), v);
      expect_weights_of_output(attend(NegativeSquaredDistance{}, q, k, v), v);
      expect_weights_of_output(attend(Gaussian{scalar(1)}, q, k, v), v);
    }
}

TEST(Extremes, ANarrowGaussianSeesTheNearestKeysInEqualShares) {
  const Tensor q = row({0, 0.5f, 7, 3}), k = row({1, -1, 3}), v = row({10, 20, 60});
  for (const float width : {1e10f, 1e30f, 3e38f}) {
    const Attended a = attend(Gaussian{scalar(width)}, q, k, v);
    EXPECT_EQ(a.weights.empty_rows(), 0);
    EXPECT_EQ(a.output.at({0, 0, 0, 0}), 15) << width;
    EXPECT_EQ(a.output.at({0, 0, 1, 0}), 10) << width;
    EXPECT_EQ(a.output.at({0, 0, 2, 0}), 60) << width;
    EXPECT_EQ(a.output.at({0, 0, 3, 0}), 60) << width << ": a key that is the query";
    expect_weights_of_output(a, v);
  }
}

TEST(Extremes, TheNearestKeyIsOneThatIsSeenAndNoKeyIsNone) {
  const Tensor q = row({0, 0}), k = row({100, 1000, 50}), v = row({1, 2, 3});
  const Attended some = attend(Gaussian{scalar(1e30f)}, q, k, v, Mask::keep(Tensor({2, 3}, {0, 1, 0, 0, 0, 0})));
  EXPECT_EQ(some.output.at({0, 0, 0, 0}), 2);
  EXPECT_EQ(some.output.at({0, 0, 1, 0}), 0);
  EXPECT_EQ(some.weights.empty_rows(), 1);
}

TEST(Extremes, ValuesOfTheNearestKeysGetTheGradient) {
  const Tensor q = row({0, 100}), k = row({10, -10, 40}), v = parameter(row({1, 2, 3}));
  Tape tape;
  tape.backward(sum(attend(Gaussian{scalar(1e30f)}, q, k, v).output));
  const Tensor dv = tape.grad(v);
  EXPECT_EQ(std::vector<float>(dv.data().begin(), dv.data().end()), (std::vector<float>{0.5f, 0.5f, 1}));
}

TEST(Extremes, CosineDoesNotKnowTheSizeOfItsInputs) {
  const Tensor q = normal({1, 1, 5, 4}, Rng(1)), k = normal({1, 1, 7, 4}, Rng(2)), v = normal({1, 1, 7, 2}, Rng(3));
  const Cosine cosine{scalar(0.5f)};
  const Tensor want = attend(cosine, q, k, v).output;
  for (const float power : {0x1p66f, 0x1p-83f, 0x1p120f}) {  // exact, so the bits are the same
    const Tensor got = attend(cosine, scale(q, power), k, v).output;
    for (int64_t i = 0; i < want.numel(); ++i) ASSERT_EQ(got.ptr()[i], want.ptr()[i]) << power;
  }
  Tape tape;
  const Tensor large = parameter(scale(q, 0x1p66f));
  tape.backward(sum(attend(cosine, large, k, v).output));
  for (const float d : tape.grad(large).data()) ASSERT_TRUE(std::isfinite(d));
}

TEST(Extremes, ABiasWhoseScoresPassTheLargestFloatIsRefused) {
  const Tensor v = row({1, 2, 3});
  EXPECT_EQ(error_of([] { Mask::bias(full({1, 3}, 2.5e38f)); }).substr(0, 20), "[mask] a bias of 2.5");
  EXPECT_EQ(attend(Dot{}, row({0}), row({0, 0, 0}), v, Mask::bias(full({1, 3}, 2e38f))).output.item(), 2);
}

}  // namespace qkv
