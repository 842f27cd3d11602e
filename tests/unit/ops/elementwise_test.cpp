// Element-wise ops beyond the op table: shapes that do not broadcast, and threads.
#include "qkv/ops/elementwise.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <thread>

#include "qkv/core/parallel.h"
#include "qkv/tensor/tape.h"
#include "support/files.h"
#include "support/threads.h"

namespace qkv {
namespace {

using qkv_test::error_of;

}  // namespace

TEST(Elementwise, ShapesThatDoNotBroadcastAreNamedWithTheOp) {
  const Tensor a = ones({2, 3}), b = ones({4});
  EXPECT_EQ(error_of([&] { add(a, b); }), "[add] shapes do not broadcast: (2, 3) and (4,)");
  EXPECT_EQ(error_of([&] { sub(a, b); }), "[sub] shapes do not broadcast: (2, 3) and (4,)");
  EXPECT_EQ(error_of([&] { mul(b, a); }), "[mul] shapes do not broadcast: (4,) and (2, 3)");
  EXPECT_EQ(error_of([&] { div(a, ones({2, 2})); }), "[div] shapes do not broadcast: (2, 3) and (2, 2)");
}

TEST(Elementwise, LargeArraysHaveTheSameBitsOnOneTwoAndEightThreads) {
  const qkv_test::ThreadsScope threads_scope;
  const Tensor x = normal({300, 401}, Rng(1)), row = normal({401}, Rng(2)), column = normal({300, 1}, Rng(3));
  const auto run = [&](int count) {
    set_threads(count);
    const Tensor y = gelu(mul(add(exp(x), row), column));
    return std::vector<float>(y.data().begin(), y.data().end());
  };
  const auto one = run(1);
  EXPECT_EQ(one, run(2));
  EXPECT_EQ(one, run(8));
}

// Huge arguments of sin and cos take another path; an element beside them in the same vector does not.
TEST(Elementwise, AnElementHasTheSameBitsBesideAnyOther) {
  const Tensor x = uniform({1024}, Rng(4), -100, 100);
  const float huge[] = {2e4f, 3e38f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(),
                        1e-40f};
  for (auto op : {sin, cos, exp, log, tanh, sigmoid, gelu, gelu_tanh, silu, sqrt, relu, abs, neg}) {
    const Tensor alone = op(x);
    for (float mate : huge) {
      Tensor mixed = x.copied();
      for (int64_t i = 0; i < 1024; i += 4) mixed.mutable_ptr()[i] = mate;
      const Tensor y = op(mixed);
      for (int64_t i = 1; i < 1024; i += i % 4 == 3 ? 2 : 1)
        ASSERT_EQ(std::bit_cast<uint32_t>(y.ptr()[i]), std::bit_cast<uint32_t>(alone.ptr()[i]))
            << x.ptr()[i] << " beside " << mate;
    }
  }
}

// The first op of a thread rounds like all later ones: a row alone has the same bits as in a batch.
TEST(Elementwise, DenormalResultsAreZeroFromTheFirstOpOfAThreadOn) {
  for (int64_t n : {int64_t{4}, int64_t{100000}})
    std::thread([n] {
      EXPECT_EQ(mul(full({n}, 1e-30f), full({n}, 1e-10f)).data()[0], 0.f) << n << " elements";
    }).join();
}

TEST(Clamp, KeepsNaNAndPassesTheGradientUpToBothLimits) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = parameter(Tensor({6}, {-3, -1, 0, 2, 5, nan}));
  Tape tape;
  const Tensor y = clamp(x, -1, 2);
  EXPECT_EQ(std::vector<float>(y.ptr(), y.ptr() + 5), (std::vector<float>{-1, -1, 0, 2, 2}));
  EXPECT_TRUE(std::isnan(y.ptr()[5]));
  tape.backward(y, ones({6}));
  const Tensor dx = tape.grad(x);
  EXPECT_EQ(std::vector<float>(dx.ptr(), dx.ptr() + 5), (std::vector<float>{0, 1, 1, 1, 0}));
  EXPECT_EQ(error_of([&] { clamp(x, 2, 1); }), "[clamp] the limits are not in order: 2 and 1");
}

}  // namespace qkv
