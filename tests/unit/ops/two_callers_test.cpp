// Two threads of a program that both call the library: while one waits for the end of a region it may run blocks of the
// other's region, possibly from the same op. The results of neither thread may depend on that.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/core/parallel.h"
#include "qkv/nn/layers.h"
#include "qkv/ops/rotary.h"
#include "qkv/tensor/tape.h"
#include "support/threads.h"

namespace qkv {
namespace {

// How often `large` gave different bits than alone while another thread ran `small` in the blocks of its regions.
int64_t disturbed(const std::function<Tensor()>& large, const std::function<void()>& small) {
  const qkv_test::ThreadsScope threads_scope;
  set_threads(4);
  const Tensor alone = large();
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) parallel_for(16, 1e9, [&](int64_t) { small(); });
  });
  int64_t wrong = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
  while (std::chrono::steady_clock::now() < end) {
    const Tensor again = large();
    wrong += std::memcmp(again.ptr(), alone.ptr(), static_cast<size_t>(alone.numel()) * sizeof(float)) != 0;
  }
  stop = true;
  other.join();
  return wrong;
}

// The gradient of the scorer's vector.
Tensor additive_gradient(int64_t batch, int64_t length, int64_t width) {
  Additive scorer = Additive::random(width, width, width, Rng(1));
  scorer.w_v = parameter(scorer.w_v);
  const Shape shape{batch, length, width};
  const Tensor q = normal(shape, Rng(2)), k = normal(shape, Rng(3)), v = normal(shape, Rng(4));
  Tape tape;
  tape.backward(attend(scorer, q, k, v).output, normal(shape, Rng(5)));
  return tape.grad(scorer.w_v).copied();
}

TEST(TwoCallers, Rotation) {
  const Tensor x = ones({1, 1, 4000, 64}), y = ones({1, 1, 4, 32});
  EXPECT_EQ(disturbed([&] { return rotate(x, HeadAxis::outer); },
                      [&] {
                        for (int i = 0; i < 20; ++i) rotate(y, HeadAxis::outer, 0, {.base = 3});
                      }),
            0);
}

TEST(TwoCallers, GradientOfAdditiveAttention) {
  EXPECT_EQ(disturbed([] { return additive_gradient(64, 10, 32); }, [] { additive_gradient(4, 3, 8); }), 0);
}

}  // namespace
}  // namespace qkv
