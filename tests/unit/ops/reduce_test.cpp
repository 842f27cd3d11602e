// Reductions beyond the op table: long sums, threads, ties and errors.
#include "qkv/ops/reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "qkv/core/parallel.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/tape.h"
#include "support/threads.h"
#include "unit/ops/expect_error.h"

namespace qkv::tests {
namespace {

double exact_sum(std::span<const float> x) {
  long double sum = 0;
  for (float v : x) sum += v;
  return static_cast<double>(sum);
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.ptr(), b.ptr(), static_cast<size_t>(a.numel()) * sizeof(float)) == 0;
}

TEST(Sum, OfAMillionIsRightToTheLastBits) {
  const Tensor positive = uniform({1000003}, Rng(1));
  const double expected = exact_sum(positive.data());
  EXPECT_LE(std::abs(sum(positive).item() - expected), 1e-7 * expected);
  EXPECT_LE(std::abs(mean(positive).item() * 1000003 - expected), 2e-7 * expected);

  const Tensor tenth = full({1 << 20}, 0.1f);
  EXPECT_LE(std::abs(sum(tenth).item() - 0.1f * double{1 << 20}), 1e-7 * 0.1 * (1 << 20));
}

TEST(Sum, OfLongColumnsIsRightToTheLastBits) {
  const Tensor x = uniform({40001, 37}, Rng(2));
  const Tensor y = sum(x, 0);
  for (int64_t j = 0; j < 37; ++j) {
    long double column = 0;
    for (int64_t i = 0; i < 40001; ++i) column += x.ptr()[i * 37 + j];
    EXPECT_LE(std::abs(y.ptr()[j] - static_cast<double>(column)), 1e-7 * static_cast<double>(column)) << j;
  }
}

// Rows and columns, few and many, short and long: each takes a different path through the chunks.
TEST(Reductions, HaveTheSameBitsWithOneTwoAndEightThreads) {
  const qkv_test::ThreadsScope threads_scope;
  const Shape shapes[] = {{1000003}, {3, 200001}, {500, 700}, {40001, 37}, {2, 5000, 300}, {40, 100, 50}};
  for (const Shape& shape : shapes)
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const Tensor x = parameter(uniform(shape, Rng(3), -1, 1));
      std::vector<Tensor> first;
      for (int count : {1, 2, 8}) {
        set_threads(count);
        Tape tape;
        const Tensor s = sum(x, axis), most = max(x, axis), all = mean(x);
        tape.backward(most, s.detached());
        const std::vector<Tensor> now = {s, most, all, tape.grad(x)};
        if (first.empty()) first = now;
        for (size_t k = 0; k < now.size(); ++k)
          EXPECT_TRUE(same_bits(first[k], now[k]))
              << "result " << k << " of " << shape.str() << " on axis " << axis << " with " << count << " threads";
      }
    }
}

TEST(Sum, OfARowDoesNotDependOnItsMates) {
  const Tensor x = uniform({64, 20001}, Rng(4), -1, 1);
  const Tensor together = sum(x, 1);
  for (int64_t r : {0, 5, 63}) {
    const float alone = sum(x.part(r * 20001, {20001})).item();
    EXPECT_EQ(alone, together.ptr()[r]);
  }
}

TEST(Sum, OfNothingIsZeroAndItsMeanIsNaN) {
  EXPECT_EQ(sum(zeros({0})).item(), 0);
  EXPECT_EQ(sum(zeros({0, 3}), 0).at({2}), 0);
  EXPECT_TRUE(std::isnan(mean(zeros({0})).item()));
}

TEST(Sum, GradientsOfTwoUsesAdd) {
  const Tensor x = parameter(uniform({3, 40}, Rng(5)));
  Tape tape;
  tape.backward(sum(concat({sum(x, 0), mean(x, 1)}, 0)));
  const Tensor dx = tape.grad(x);
  for (float g : dx.data()) EXPECT_FLOAT_EQ(g, 1 + 1 / 40.f);
}

TEST(Max, GradientGoesToTheFirstOfEqualMaxima) {
  const Tensor x = parameter(Tensor({2, 3, 2}, {1, 5, 5, 2, 5, 5, 3, 3, 0, 3, 3, 3}));
  {
    Tape tape;
    tape.backward(max(x), scalar(2));
    EXPECT_EQ(tape.grad(x).at({0, 0, 1}), 2);
    EXPECT_EQ(sum(tape.grad(x)).item(), 2);
  }
  {
    Tape tape;
    tape.backward(max(x, 1), ones({2, 2}));
    const Tensor expected({2, 3, 2}, {0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0});
    EXPECT_TRUE(same_bits(tape.grad(x), expected));
  }
  {  // axes 0 and 2: for each middle index, the first in row-major order
    Tape tape;
    tape.backward(max(x, {0, 2}), ones({3}));
    const Tensor expected({2, 3, 2}, {0, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0});
    EXPECT_TRUE(same_bits(tape.grad(x), expected));
  }
}

TEST(Max, PropagatesNaNWhereverItStandsAndGivesItTheGradient) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (int64_t n : {1, 7, 8, 9, 33, 20000})
    for (int64_t place : {int64_t{0}, n / 2, n - 1}) {
      Tensor x = uniform({n, 9}, Rng(6));
      x.mutable_ptr()[place * 9 + 4] = nan;
      const Tensor w = parameter(x);
      Tape tape;
      const Tensor columns = max(w, 0);
      for (int64_t j = 0; j < 9; ++j) EXPECT_EQ(std::isnan(columns.ptr()[j]), j == 4);
      EXPECT_TRUE(std::isnan(max(w).item()));
      const Tensor rows = max(w, 1);
      EXPECT_TRUE(std::isnan(rows.ptr()[place]));
      tape.backward(columns, ones({9}));
      EXPECT_EQ(tape.grad(w).at({place, 4}), 1);
    }
}

TEST(Max, OfNegativeInfinitiesIsNegativeInfinity) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(max(full({33}, -inf)).item(), -inf);
  EXPECT_EQ(max(full({9, 20}, -inf), 0).at({19}), -inf);
}

TEST(Min, GivesItsGradientToTheFirstOfEqualMinima) {
  const Tensor x = parameter(Tensor({5}, {2, 1, 3, 1, 4}));
  Tape tape;
  const Tensor y = min(x);
  EXPECT_EQ(y.item(), 1);
  tape.backward(y);
  const Tensor dx = tape.grad(x);
  EXPECT_EQ(std::vector<float>(dx.data().begin(), dx.data().end()), (std::vector<float>{0, 1, 0, 0, 0}));
}

TEST(Argmax, IsTheFirstOfEqualMaximaAndNaNIsTheLargest) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const Tensor x({3, 4}, {1, 5, 5, 2, -inf, -inf, -inf, -inf, inf, nan, 0, nan});
  const Ids last = argmax(x), first = argmax(x, 0);
  EXPECT_EQ(last.shape(), Shape({3}));
  EXPECT_EQ(std::vector<int32_t>(last.data().begin(), last.data().end()), (std::vector<int32_t>{1, 0, 1}));
  EXPECT_EQ(std::vector<int32_t>(first.data().begin(), first.data().end()), (std::vector<int32_t>{2, 2, 0, 2}));
  EXPECT_EQ(argmax(Tensor({1}, {nan})).data()[0], 0);
}

TEST(Argmax, PointsAtTheMaximumAlongAnyAxis) {
  const Tensor x = uniform({3, 9, 5}, Rng(8));
  const Ids at = argmax(x, 1);
  const Tensor most = max(x, 1);
  ASSERT_EQ(at.shape(), Shape({3, 5}));
  for (int64_t b = 0; b < 3; ++b)
    for (int64_t j = 0; j < 5; ++j) EXPECT_EQ(x.at({b, at.data()[static_cast<size_t>(b * 5 + j)], j}), most.at({b, j}));
  EXPECT_EQ(argmax(zeros({0, 3})).shape(), Shape({0}));
}

TEST(Reductions, SayWhatIsWrong) {
  const Tensor x = zeros({2, 0, 3});
  expect_error([&] { sum(x, 3); }, "[sum] axis 3 is outside a tensor of 3 axes");
  expect_error([&] { mean(x, -4); }, "[mean] axis -4 is outside a tensor of 3 axes");
  expect_error([&] { sum(x, {1, -2}); }, "[sum] axis -2 is named twice for shape (2, 0, 3)");
  expect_error([&] { max(x, 1); }, "[max] no maximum over an axis of size 0: (2, 0, 3) to (2, 3)");
  expect_error([&] { max(zeros({0})); }, "[max] no maximum over an axis of size 0: (0,) to ()");
  expect_error([&] { min(x, 1); }, "[min] no minimum over an axis of size 0: (2, 0, 3) to (2, 3)");
  expect_error([&] { argmax(x, 1); }, "[argmax] no maximum over an axis of size 0: (2, 0, 3) to (2, 3)");
  expect_error([&] { argmax(scalar(1)); }, "[argmax] axis -1 is outside a tensor of 0 axes");
  expect_error([&] { sum(x, {0, 1, 2, 3, 4, 5, 6}); }, "[axes] at most 6 axes, got 7");
  EXPECT_EQ(max(zeros({0, 3}), 1).shape(), Shape({0}));
}

}  // namespace
}  // namespace qkv::tests
