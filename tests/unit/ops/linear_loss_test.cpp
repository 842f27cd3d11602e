// Linear layer with cross-entropy: chunks of rows change nothing.
#include "qkv/ops/linear_loss.h"

#include <gtest/gtest.h>

#include "qkv/core/parallel.h"
#include "qkv/tensor/tape.h"
#include "support/threads.h"
#include "unit/ops/expect_error.h"

namespace qkv {
namespace {

struct Result {
  Tensor loss, dx, dweight, dbias;
};

const CrossEntropyOptions kEach{.ignore_id = 2, .label_smoothing = 0.1f, .reduction = Reduction::none};

Result run_op(const Tensor& x, const Tensor& weight, const Tensor& bias, const Ids& targets, const Tensor& dy) {
  const Tensor px = parameter(x), pw = parameter(weight), pb = parameter(bias);
  Tape tape;
  const Tensor y = linear_cross_entropy(px, pw, pb, targets, kEach);
  tape.backward(y, dy);
  return {y, tape.grad(px), tape.grad(pw), tape.grad(pb)};
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return std::equal(a.data().begin(), a.data().end(), b.data().begin(), b.data().end());
}

TEST(LinearCrossEntropy, RowsAreThoseOfTheRowAloneAndParametersTheirSumAcrossChunks) {
  const int64_t n = 300, d = 5, v = 1100;  // chunks of 128 rows
  const Tensor x = uniform({n, d}, Rng(1), -1, 1), weight = uniform({v, d}, Rng(2), -1, 1),
               bias = uniform({v}, Rng(3), -1, 1);
  const Tensor dy = uniform({n}, Rng(4));
  Ids targets = Ids::empty({n});
  for (int64_t i = 0; i < n; ++i) targets.mutable_ptr()[i] = static_cast<int32_t>(i * 37 % v);
  const Result all = run_op(x, weight, bias, targets, dy);
  std::vector<double> dweight(static_cast<size_t>(v * d)), dbias(static_cast<size_t>(v));
  for (int64_t r = 0; r < n; ++r) {
    const Result row = run_op(x.part(r * d, {1, d}), weight, bias, targets.part(r, {1}), dy.part(r, {1}));
    ASSERT_EQ(row.loss.item(), all.loss.ptr()[r]) << "row " << r;
    ASSERT_TRUE(same_bits(row.dx, all.dx.part(r * d, {1, d}))) << "row " << r;
    for (int64_t i = 0; i < v * d; ++i) dweight[static_cast<size_t>(i)] += row.dweight.ptr()[i];
    for (int64_t i = 0; i < v; ++i) dbias[static_cast<size_t>(i)] += row.dbias.ptr()[i];
  }
  for (int64_t i = 0; i < v * d; ++i) ASSERT_NEAR(all.dweight.ptr()[i], dweight[static_cast<size_t>(i)], 1e-6);
  for (int64_t i = 0; i < v; ++i) ASSERT_NEAR(all.dbias.ptr()[i], dbias[static_cast<size_t>(i)], 1e-6);
}

TEST(LinearCrossEntropy, HasTheSameBitsWithOneTwoAndEightThreads) {
  const Tensor x = uniform({300, 16}, Rng(1)), weight = uniform({1100, 16}, Rng(2)), bias = uniform({1100}, Rng(3));
  const Tensor dy = uniform({300}, Rng(4));
  Ids targets = Ids::empty({300});
  for (int32_t i = 0; i < 300; ++i) targets.mutable_ptr()[i] = i;
  const qkv_test::ThreadsScope threads_scope;
  set_threads(1);
  const Result one = run_op(x, weight, bias, targets, dy);
  for (int count : {2, 8}) {
    set_threads(count);
    const Result many = run_op(x, weight, bias, targets, dy);
    EXPECT_TRUE(same_bits(one.loss, many.loss) && same_bits(one.dx, many.dx) && same_bits(one.dweight, many.dweight) &&
                same_bits(one.dbias, many.dbias))
        << count << " threads";
  }
}

TEST(LinearCrossEntropy, ARowThatDoesNotCountIsNotEvenRead) {
  const Tensor weight = parameter(uniform({5, 3}, Rng(1))), bias = parameter(zeros({5}));
  Tensor values = uniform({2, 2, 3}, Rng(2));
  const auto gradients = [&](const Tensor& x, const Ids& targets, Reduction reduction) {
    const Tensor leaf = parameter(x);
    Tape tape;
    const Tensor y = linear_cross_entropy(leaf, weight, bias, targets, {.ignore_id = -1, .reduction = reduction});
    tape.backward(y, ones(y.shape()));
    return std::vector<Tensor>{y.detached(), tape.grad(leaf), tape.grad(weight), tape.grad(bias)};
  };
  values.mutable_ptr()[4] = std::numeric_limits<float>::quiet_NaN();
  const auto with = gradients(values, Ids({2, 2}, {3, -1, 0, 4}), Reduction::none);
  EXPECT_EQ(with[0].shape(), Shape({2, 2}));
  EXPECT_EQ(with[0].ptr()[1], 0.f);
  for (int64_t i = 3; i < 6; ++i) EXPECT_EQ(with[1].ptr()[i], 0.f);
  Tensor counted = Tensor::empty({3, 3});
  std::copy_n(values.ptr(), 3, counted.mutable_ptr());
  std::copy_n(values.ptr() + 6, 6, counted.mutable_ptr() + 3);
  const auto without = gradients(counted, Ids({3}, {3, 0, 4}), Reduction::none);
  EXPECT_TRUE(same_bits(with[2], without[2]) && same_bits(with[3], without[3]));
  const auto none = gradients(values, Ids({2, 2}, {-1, -1, -1, -1}), Reduction::mean);
  for (const Tensor& t : none)
    for (float v : t.data()) EXPECT_EQ(v, 0.f);
}

TEST(LinearCrossEntropy, ErrorsNameBothShapes) {
  const Tensor x = zeros({2, 3}), weight = zeros({5, 3});
  const Ids targets({2}, {0, 1});
  tests::expect_error(
      [&] {
        linear_cross_entropy(x, zeros({5, 4}), Tensor(), targets);
      },
      "[linear_cross_entropy] x has shape (2, 3), but targets and weight require (2, 4)");
  tests::expect_error([&] { linear_cross_entropy(x, zeros({3}), Tensor(), targets); },
                      "[linear_cross_entropy] the weight must have shape (V, D), got (3,)");
  tests::expect_error([&] { linear_cross_entropy(x, weight, zeros({4}), targets); },
                      "[linear_cross_entropy] bias has shape (4,) for 5 classes");
  tests::expect_error(
      [&] {
        linear_cross_entropy(x, weight, Tensor(), Ids({2}, {0, 5}));
      },
      "[linear_cross_entropy] target 5 is outside the 5 classes");
}

}  // namespace
}  // namespace qkv
