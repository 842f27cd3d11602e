// Convolution and batch norm beyond the op table: the book's numbers, threads and errors.
#include "qkv/ops/conv.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "qkv/core/parallel.h"
#include "qkv/ops/batch_norm.h"
#include "qkv/tensor/tape.h"
#include "support/threads.h"
#include "unit/ops/expect_error.h"

namespace qkv::tests {
namespace {

TEST(Conv1d, AddsTheTapsOfASmallExample) {
  const Tensor x({1, 1, 5}, {0, 1, 2, 3, 4}), weight({1, 1, 2}, {1, 2});
  const Tensor y = conv1d(x, weight);
  const float expected[] = {2, 5, 8, 11};
  EXPECT_EQ(y.shape(), Shape({1, 1, 4}));
  EXPECT_TRUE(std::equal(y.data().begin(), y.data().end(), expected));
}

TEST(Conv1d, HasTheSameBitsWithOneTwoAndEightThreads) {
  const qkv_test::ThreadsScope threads_scope;
  const Tensor x = parameter(uniform({8, 6, 200}, Rng(1), -1, 1)),
               weight = parameter(uniform({10, 6, 5}, Rng(2), -1, 1));
  const Tensor bias = parameter(uniform({10}, Rng(3)));
  std::vector<float> first;
  for (int count : {1, 2, 8}) {
    set_threads(count);
    Tape tape;
    const Tensor y = conv1d(x, weight, bias, {.padding = 2});
    tape.backward(y, uniform(y.shape(), Rng(4)));
    std::vector<float> now;
    for (const Tensor& t : {y, tape.grad(x), tape.grad(weight), tape.grad(bias)})
      now.insert(now.end(), t.data().begin(), t.data().end());
    if (first.empty()) first = now;
    EXPECT_EQ(first, now) << count << " threads";
  }
}

TEST(Conv1d, SaysWhatIsWrong) {
  const Tensor x = zeros({2, 3, 8}), weight = zeros({4, 3, 5});
  expect_error(
      [&] {
        conv1d(zeros({3, 8}), weight);
      },
      "[conv1d] expected (B, Cin, L) and (Cout, Cin, K), got (3, 8) and (4, 3, 5)");
  expect_error([&] { conv1d(x, zeros({4, 2, 5})); }, "[conv1d] input channels differ: (2, 3, 8) and (4, 2, 5)");
  expect_error([&] { conv1d(x, weight, zeros({3})); }, "[conv1d] the bias (3,) does not fit the weight (4, 3, 5)");
  expect_error([&] { conv1d(x, weight, {}, {.padding = -1}); }, "[conv1d] padding must be 0 to 1073741824, got -1");
  expect_error([&] { conv1d(x, weight, {}, {.stride = 0}); }, "[conv1d] stride must be 1 to 1073741824, got 0");
  expect_error([&] { conv1d(x, weight, {}, {.dilation = 0}); }, "[conv1d] dilation must be 1 to 1073741824, got 0");
  expect_error([&] { conv1d(x, zeros({4, 3, 0})); }, "[conv1d] the kernel must have 1 to 1073741824 taps: (4, 3, 0)");
  expect_error([&] { conv1d(x, weight, {}, {.dilation = 2}); },
               "[conv1d] the kernel spans 9 positions, the padded input has 8: (2, 3, 8) and (4, 3, 5)");
}

TEST(BatchNorm, GivesTheBooksNumbers) {
  const Tensor y = batch_norm(Tensor({2, 2}, {1, 2, 2, 3}), ones({2}), zeros({2}));
  const float expected[] = {-0.99998f, -0.99998f, 0.99998f, 0.99998f};
  for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(y.ptr()[i], expected[i], 1e-7);
}

TEST(BatchNorm, OfASingleValueIsBeta) {
  const Tensor y = batch_norm(Tensor({1, 2}, {100, -7}), ones({2}), Tensor({2}, {3, 4}));
  EXPECT_EQ(y.at({0, 0}), 3);
  EXPECT_EQ(y.at({0, 1}), 4);
}

TEST(BatchNorm, StaysExactFarFromZero) {
  const Tensor near = batch_norm(Tensor({4, 1}, {0, 1, 2, 3}), ones({1}), zeros({1}));
  const Tensor far = batch_norm(Tensor({4, 1}, {1048576, 1048577, 1048578, 1048579}), ones({1}), zeros({1}));
  for (int64_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(far.ptr()[i], near.ptr()[i]);
}

TEST(BatchNorm, SaysWhatIsWrong) {
  const Tensor x = zeros({4, 3});
  expect_error([&] { batch_norm(zeros({4}), ones({4}), ones({4})); },
               "[batch_norm] expected (N, C) or (N, C, L), got (4,)");
  expect_error([&] { batch_norm(x, ones({4}), zeros({3})); }, "[batch_norm] gamma (4,) does not fit (4, 3)");
  expect_error([&] { batch_norm(x, ones({3}), zeros({3, 1})); }, "[batch_norm] beta (3, 1) does not fit (4, 3)");
}

}  // namespace
}  // namespace qkv::tests
