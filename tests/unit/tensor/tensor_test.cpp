// Tensors outside the ops: makers, views, and what they refuse.
#include "qkv/tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "unit/ops/expect_error.h"

namespace qkv::tests {
namespace {

std::vector<float> values(const Tensor& t) { return {t.data().begin(), t.data().end()}; }

template <class T>
concept Writable = requires(T t) {
  t.mutable_ptr();
};

TEST(Tensor, AConstTensorCannotBeWritten) {
  EXPECT_TRUE(Writable<Tensor&> && Writable<Ids&>);
  EXPECT_FALSE(Writable<const Tensor&> || Writable<const Ids&>);
}

TEST(Makers, GiveWhatTheirNamesSay) {
  EXPECT_EQ(values(zeros({2})), (std::vector<float>{0, 0}));
  EXPECT_EQ(values(ones({2})), (std::vector<float>{1, 1}));
  EXPECT_EQ(values(full({2}, 3)), (std::vector<float>{3, 3}));
  EXPECT_EQ(values(eye(2)), (std::vector<float>{1, 0, 0, 1}));
  EXPECT_EQ(values(arange(0, 3)), (std::vector<float>{0, 1, 2}));
  EXPECT_EQ(arange(0, 5, 0.1f).numel(), 50);
  EXPECT_EQ(values(arange(2, 0, -1)), (std::vector<float>{2, 1}));
  EXPECT_EQ(arange(0, -1).numel(), 0);
  EXPECT_EQ(eye(0).shape(), Shape({0, 0}));
  EXPECT_EQ(scalar(4).item(), 4);
}

TEST(Makers, SortPutsNaNLast) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const std::vector<float> sorted = values(sort(Tensor({6}, {3, nan, -inf, 1, nan, inf})));
  EXPECT_EQ(std::vector<float>(sorted.begin(), sorted.begin() + 4), (std::vector<float>{-inf, 1, 3, inf}));
  EXPECT_TRUE(std::isnan(sorted[4]) && std::isnan(sorted[5]));
}

TEST(Makers, UniformAndNormalHaveTheirMomentsAndTheirSeed) {
  const Tensor u = uniform({100000}, Rng(1), -1, 3), n = normal({100000}, Rng(2), 2, 0.5f);
  double u1 = 0, n1 = 0, n2 = 0;
  for (float x : u.data()) {
    ASSERT_TRUE(x >= -1 && x < 3) << x;
    u1 += x / 1e5;
  }
  for (float x : n.data()) {
    n1 += x / 1e5;
    n2 += (x - 2) * (x - 2) / 1e5;
  }
  EXPECT_NEAR(u1, 1, 0.02);
  EXPECT_NEAR(n1, 2, 0.01);
  EXPECT_NEAR(n2, 0.25, 0.01);
  EXPECT_EQ(values(uniform({10}, Rng(1), -1, 3)), std::vector<float>(u.data().begin(), u.data().begin() + 10));
  EXPECT_NE(values(uniform({10}, Rng(3))), values(uniform({10}, Rng(4))));
}

TEST(Shapes, OfMoreElementsThanBytesCanCountAreRefused) {
  expect_error([] { zeros({int64_t{1} << 62}); }, "[tensor] too many elements: (4611686018427387904,)");
  expect_error(
      [] {
        zeros({int64_t{1} << 32, int64_t{1} << 32});
      },
      "[shape] too many elements: (4294967296, 4294967296)");
  expect_error([] { zeros({int64_t{1} << 58}); }, "[buffer] 1152921504606846976 bytes are more than any machine has");
  expect_error([] { zeros({-1}); }, "[shape] sizes cannot be negative, got -1");
  expect_error([] { zeros({1, 1, 1, 1, 1, 1, 1}); }, "[shape] at most 6 axes, got 7");
}

TEST(Tensors, RefuseWhatDoesNotFitThem) {
  const Tensor x = zeros({2, 3});
  expect_error([] { Tensor({2, 2}, {1, 2, 3}); }, "[tensor] shape (2, 2) has 4 elements, got 3 values");
  expect_error([] { Ids({2}, {1}); }, "[ids] shape (2,) has 2 elements, got 1 values");
  expect_error([&] { x.item(); }, "[item] expected one element, got shape (2, 3)");
  expect_error([] { Tensor().item(); }, "[item] the tensor is absent: it has no values");
  expect_error([] { Tensor().at({}); }, "[at] the tensor is absent: it has no values");
  expect_error([] { Tensor().copied(); }, "[copied] the tensor is absent: it has no values");
  expect_error([] { parameter(Tensor()); }, "[parameter] the tensor is absent: it has no values");
  expect_error([&] { x.at({1}); }, "[at] 1 indices for shape (2, 3)");
  expect_error([&] { x.at({1, 3}); }, "[at] index 3 on axis 1 of shape (2, 3)");
  expect_error([&] { x.viewed({5}); }, "[view] (2, 3) does not have as many elements as (5,)");
  expect_error([&] { x.part(1, {6}); }, "[part] (6,) at 1 is outside (2, 3)");
  expect_error([&] { sort(x); }, "[sort] expected a vector, got shape (2, 3)");
  expect_error([] { arange(0, 1, 0); }, "[arange] cannot go from 0 to 1 by 0");
  expect_error([] { arange(0, 1e30f, 1e-30f); }, "[arange] too many steps from 0 to 1e+30 by 1e-30");
}

}  // namespace
}  // namespace qkv::tests
