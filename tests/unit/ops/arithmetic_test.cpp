// Operators between tensors and plain numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "qkv/ops/elementwise.h"
#include "qkv/ops/reduce.h"
#include "qkv/tensor/tape.h"
#include "support/files.h"

namespace qkv {
namespace {

using qkv_test::error_of;

std::vector<float> list(const Tensor& x) { return {x.data().begin(), x.data().end()}; }

TEST(Arithmetic, NumbersStandOnEitherSide) {
  const Tensor x({3}, {1, 3, -7});
  EXPECT_EQ(list(x / 3), (std::vector<float>{1 / 3.f, 1, -7 / 3.f})) << "divided, not multiplied by 1 / 3";
  EXPECT_EQ(list(2 / x), (std::vector<float>{2, 2 / 3.f, 2 / -7.f}));
  EXPECT_EQ(list(1 - x), (std::vector<float>{0, -2, 8}));
  EXPECT_EQ(list(1 + x), (std::vector<float>{2, 4, -6}));
  EXPECT_EQ(list(2.0 * x), (std::vector<float>{2, 6, -14}));
  EXPECT_EQ(list(x / 0), (std::vector<float>{INFINITY, INFINITY, -INFINITY}));
}

TEST(Arithmetic, HasItsGradients) {
  const Tensor x = parameter(Tensor({2}, {2, -4}));
  Tape tape;
  const Tensor y = (1 - x) / 4 + 8 / x + (3 + x);  // dy/dx = -1/4 - 8 / x^2 + 1
  tape.backward(sum(y));
  EXPECT_EQ(list(tape.grad(x)), (std::vector<float>{-1.25f, 0.25f}));
}

TEST(Arithmetic, AssignmentMakesANewTensorAndIsRecorded) {
  const Tensor w = parameter(Tensor({2}, {1, 2}));
  Tape tape;
  Tensor x = w * 2;
  const Tensor before = x;
  x += w, x -= Tensor({1}, {1}), x *= w, x /= full({2}, 2), x += 1, x -= 2, x *= 4, x /= 2;  // (3 w - 1) w - 2
  EXPECT_EQ(list(x), (std::vector<float>{0, 8}));
  EXPECT_EQ(list(before), (std::vector<float>{2, 4})) << "a copy keeps its values";
  tape.backward(sum(x));
  EXPECT_EQ(list(tape.grad(w)), (std::vector<float>{5, 11}));
}

TEST(Arithmetic, AParameterIsNotAssignedTo) {
  Tensor w = parameter(ones({2, 3}));
  EXPECT_EQ(error_of([&] { w += 1; }), "[+=] a parameter of shape (2, 3) would become a constant");
  EXPECT_EQ(error_of([&] { w /= w; }), "[/=] a parameter of shape (2, 3) would become a constant");
  EXPECT_TRUE(w.is_parameter());
  Tensor absent;
  EXPECT_EQ(error_of([&] { absent += 1; }), "[shift] the tensor is absent: it has no values");
  EXPECT_EQ(error_of([&] { absent / 2; }), "[div] the tensor \"a\" is absent: it has no values");
}

}  // namespace
}  // namespace qkv
