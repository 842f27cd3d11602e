// Ops on rows: a row alone has the same bits as in a batch, errors show both values, masked entries are exactly zero.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "qkv/core/parallel.h"
#include "qkv/ops/embedding.h"
#include "qkv/ops/loss.h"
#include "qkv/ops/norm.h"
#include "qkv/ops/softmax.h"
#include "qkv/tensor/tape.h"
#include "support/threads.h"

namespace qkv {
namespace {

std::vector<float> values(const Tensor& t) { return {t.data().begin(), t.data().end()}; }

const Run kInference{};

struct Result {
  std::vector<float> y, dx;
};

Result run(const std::function<Tensor(const Tensor&)>& op, const Tensor& x, const Tensor& dy) {
  const Tensor leaf = parameter(x);
  Tape tape;
  const Tensor y = op(leaf);
  tape.backward(y, dy);
  return {values(y), values(tape.grad(leaf))};
}

void expect_row_alone(const std::function<Tensor(const Tensor&)>& op, int64_t width) {
  const int64_t rows = 8192 / width * 2 + 3;  // several blocks
  const Tensor x = uniform({rows, width}, Rng(1), -3, 3), dy = uniform({rows, width}, Rng(2));
  const qkv_test::ThreadsScope threads_scope;
  set_threads(1);
  const Result all = run(op, x, dy);
  for (int count : {2, 8}) {
    set_threads(count);
    const Result again = run(op, x, dy);
    EXPECT_EQ(again.y, all.y) << count << " threads";
    EXPECT_EQ(again.dx, all.dx) << count << " threads";
  }
  for (int64_t r : {int64_t{0}, int64_t{1}, rows / 2, rows - 1}) {
    const Result alone = run(op, x.part(r * width, {1, width}).copied(), dy.part(r * width, {1, width}).copied());
    for (int64_t i = 0; i < width; ++i) {
      ASSERT_EQ(alone.y[static_cast<size_t>(i)], all.y[static_cast<size_t>(r * width + i)])
          << "row " << r << " of width " << width;
      ASSERT_EQ(alone.dx[static_cast<size_t>(i)], all.dx[static_cast<size_t>(r * width + i)])
          << "row " << r << " of width " << width;
    }
  }
}

TEST(RowOps, ARowAloneHasTheBitsItHasAmongMatesAtAnyThreadCount) {
  for (int64_t width : {1, 3, 8, 33, 201, 9000}) {
    expect_row_alone(softmax, width);
    expect_row_alone(log_softmax, width);
    const Tensor gamma = uniform({width}, Rng(3)), beta = uniform({width}, Rng(4));
    expect_row_alone([&](const Tensor& x) { return layer_norm(x, gamma, beta); }, width);
    expect_row_alone([&](const Tensor& x) { return rms_norm(x, gamma); }, width);
    expect_row_alone([&](const Tensor& x) { return residual_layer_norm(x, x, gamma, beta, 0, kInference); }, width);
  }
}

TEST(RowOps, ParameterGradientsOfNormsHaveTheSameBitsAtAnyThreadCount) {
  const Tensor x = uniform({1000, 40}, Rng(1)), gamma = parameter(uniform({40}, Rng(3))),
               beta = parameter(uniform({40}, Rng(4)));
  const qkv_test::ThreadsScope threads_scope;
  std::vector<float> first;
  for (int count : {1, 2, 8}) {
    set_threads(count);
    Tape tape;
    const Tensor y = layer_norm(x, gamma, beta);
    tape.backward(y, uniform(y.shape(), Rng(5)));
    std::vector<float> both = values(tape.grad(gamma));
    for (float v : tape.grad(beta).data()) both.push_back(v);
    Tape second;
    const Tensor z = rms_norm(x, gamma);
    second.backward(z, uniform(z.shape(), Rng(6)));
    for (float v : second.grad(gamma).data()) both.push_back(v);
    if (first.empty()) first = both;
    EXPECT_EQ(both, first) << count << " threads";
  }
}

TEST(Softmax, MinusInfinityGetsExactlyZeroAndNoGradient) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor x({1, 4}, {1, -inf, 2, -inf});
  const Result r = run(softmax, x, Tensor({1, 4}, {1, 2, 3, 4}));
  EXPECT_EQ(r.y[1], 0);
  EXPECT_EQ(r.y[3], 0);
  EXPECT_EQ(r.dx[1], 0);
  EXPECT_EQ(r.dx[3], 0);
  EXPECT_NEAR(r.y[0] + r.y[2], 1, 1e-6);
}

TEST(Softmax, RowsWithoutAFiniteMaximumAreNaNAndLeaveTheirMatesAlone) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor y = softmax(Tensor({4, 2}, {-inf, -inf, 1, inf, nan, 1, 0, 0}));
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(std::isnan(y.ptr()[i])) << i;
  EXPECT_EQ(y.ptr()[6], 0.5f);
}

void expect_error(const std::function<void()>& call, const char* message) {
  try {
    call();
    ADD_FAILURE() << "expected: " << message;
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), message);
  }
}

TEST(RowOps, ErrorsNameTheOpAndBothValues) {
  const Tensor x = zeros({2, 3}), three = zeros({3});
  expect_error([&] { softmax(scalar(1)); }, "[softmax] expected at least one axis, got shape ()");
  expect_error([&] { log_softmax(scalar(1)); }, "[log_softmax] expected at least one axis, got shape ()");
  expect_error([&] { layer_norm(scalar(1), three, three); }, "[layer_norm] expected at least one axis, got shape ()");
  expect_error([&] { residual_layer_norm(x, x, zeros({2}), three, 0, kInference); },
               "[residual_layer_norm] gamma has shape (2,) for rows of shape (3,)");
  expect_error([&] { residual_layer_norm(x, x, three, three, 1, kInference); },
               "[residual_layer_norm] the dropout rate must be in [0, 1), got 1");
  expect_error(
      [&] {
        embedding_scaled_position(x, Ids({}, {0}), 1, zeros({1, 3}), 0, kInference);
      },
      "[embedding_scaled_position] ids need a last axis of positions, got shape ()");
  expect_error([&] { layer_norm(x, zeros({2}), three); }, "[layer_norm] gamma has shape (2,) for rows of shape (3,)");
  expect_error(
      [&] {
        layer_norm(x, three, zeros({3, 1}));
      },
      "[layer_norm] beta has shape (3, 1) for rows of shape (3,)");
  expect_error([&] { rms_norm(scalar(1), three); }, "[rms_norm] expected at least one axis, got shape ()");
  expect_error([&] { rms_norm(x, zeros({2})); }, "[rms_norm] gamma has shape (2,) for rows of shape (3,)");
  expect_error([&] { residual_layer_norm(x, three, three, three, 0, kInference); },
               "[residual_layer_norm] shapes differ: (2, 3) + (3,)");
  expect_error([&] { embedding(x, Ids({2}, {0, 2})); }, "[embedding] id 2 is outside the table of 2 rows");
  expect_error([&] { embedding(x, Ids({1}, {-1})); }, "[embedding] id -1 is outside the table of 2 rows");
  expect_error([&] { embedding(three, Ids({1}, {0})); }, "[embedding] the table must have shape (V, D), got (3,)");
  expect_error(
      [&] {
        embedding_scaled_position(x, Ids({2}, {0, 1}), 1, zeros({1, 3}), 0, kInference);
      },
      "[embedding_scaled_position] positions of shape (1, 3) do not cover the result (2, 3)");
  expect_error([&] { squared_error(x, three); }, "[squared_error] shapes differ: prediction (2, 3), target (3,)");
  expect_error(
      [&] {
        cross_entropy(x, Ids({3}, {0, 0, 0}));
      },
      "[cross_entropy] targets of shape (3,) do not fit logits of shape (2, 3)");
  expect_error([&] { cross_entropy(x, Ids({2}, {0, 3})); }, "[cross_entropy] target 3 is outside the 3 classes");
  expect_error(
      [&] {
        cross_entropy(x, Ids({2}, {0, 0}), {.label_smoothing = 1.5f});
      },
      "[cross_entropy] label smoothing must be in [0, 1], got 1.5");
  expect_error(
      [&] {
        cross_entropy(x, Ids({2}, {0, 0}), {.reduction = Reduction::half_sum});
      },
      "[cross_entropy] half_sum is a reduction of squared errors only");
}

}  // namespace
}  // namespace qkv
