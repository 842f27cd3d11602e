// Losses: conventions that the formulas in the op table do not show.
#include "qkv/ops/loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "qkv/core/parallel.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/embedding.h"
#include "qkv/ops/softmax.h"
#include "qkv/tensor/tape.h"
#include "support/threads.h"

namespace qkv {
namespace {

std::vector<float> values(const Tensor& t) { return {t.data().begin(), t.data().end()}; }

TEST(CrossEntropy, SmoothingMixesTheTargetWithTheMeanOverAllClasses) {
  const Tensor x = uniform({4, 7}, Rng(1), -3, 3), logs = log_softmax(x);
  const Ids targets({4}, {0, 6, 3, 3});
  const float e = 0.2f;
  double expected = 0;
  for (int64_t r = 0; r < 4; ++r) {
    double mean = 0;
    for (int64_t j = 0; j < 7; ++j) mean += logs.ptr()[r * 7 + j] / 7.0;
    expected -= ((1 - e) * logs.ptr()[r * 7 + targets.ptr()[r]] + e * mean) / 4;
  }
  EXPECT_NEAR(cross_entropy(x, targets, {.label_smoothing = e}).item(), expected, 1e-6);
}

TEST(CrossEntropy, IgnoredRowsHaveNoLossAndNoGradientEvenIfTheyAreNaN) {
  const Tensor x = parameter(Tensor({3, 2}, {1, 2, std::nanf(""), 5, 3, 1}));
  const Ids targets({3}, {0, -100, 1});
  const CrossEntropyOptions options{.ignore_id = -100, .reduction = Reduction::none};
  Tape tape;
  const Tensor y = cross_entropy(x, targets, options);
  EXPECT_EQ(y.ptr()[1], 0);
  tape.backward(y, ones({3}));
  EXPECT_EQ(tape.grad(x).ptr()[2], 0);
  EXPECT_EQ(tape.grad(x).ptr()[3], 0);
  const double both = double{y.ptr()[0]} + y.ptr()[2];
  EXPECT_NEAR(cross_entropy(x.detached(), targets, {.ignore_id = -100}).item(), both / 2, 1e-6)
      << "the mean is over the two that count";
}

TEST(CrossEntropy, WithNothingCountedIsZeroWithGradientZero) {
  const Tensor x = parameter(ones({2, 3}));
  Tape tape;
  const Tensor y = cross_entropy(x, Ids({2}, {1, 1}), {.ignore_id = 1});
  EXPECT_EQ(y.item(), 0);
  tape.backward(y);
  for (float v : tape.grad(x).data()) EXPECT_EQ(v, 0);
}

TEST(CrossEntropy, OfACertainAnswerIsZeroAndOfAnImpossibleOneInfinite) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor x({1, 3}, {5, -inf, -inf});
  EXPECT_EQ(cross_entropy(x, Ids({1}, {0})).item(), 0);
  EXPECT_EQ(cross_entropy(x, Ids({1}, {2})).item(), inf);
}

TEST(Losses, HaveTheSameBitsWithOneTwoAndEightThreads) {
  const Tensor x = uniform({500, 101}, Rng(1), -3, 3), t = uniform({500, 101}, Rng(2));
  Ids targets = Ids::empty({500});
  for (int32_t i = 0; i < 500; ++i) targets.mutable_ptr()[i] = i * 13 % 101;
  const qkv_test::ThreadsScope threads_scope;
  std::vector<float> first;
  for (int count : {1, 2, 8}) {
    set_threads(count);
    const Tensor leaf = parameter(x);
    std::vector<float> all;
    {
      Tape tape;
      const Tensor y = cross_entropy(leaf, targets, {.label_smoothing = 0.1f});
      tape.backward(y);
      all = values(tape.grad(leaf));
      all.push_back(y.item());
    }
    {
      Tape tape;
      const Tensor y = squared_error(leaf, t);
      tape.backward(y);
      for (float v : tape.grad(leaf).data()) all.push_back(v);
      all.push_back(y.item());
    }
    if (first.empty()) first = all;
    EXPECT_EQ(all, first) << count << " threads";
  }
}

TEST(Embedding, AddsTheGradientsOfTwoUsesOfATable) {
  const Tensor table = parameter(zeros({3, 2}));
  Tape tape;
  const Tensor a = embedding(table, Ids({4}, {2, 0, 2, 2})), target = embedding(table, Ids({4}, {1, 1, 1, 0}));
  const Tensor loss = squared_error(a, shift(target, -1), Reduction::sum);  // da = 2 everywhere, dtarget = -2
  tape.backward(loss);
  EXPECT_EQ(values(tape.grad(table)), (std::vector<float>{0, 0, -6, -6, 6, 6}));
}

}  // namespace
}  // namespace qkv
