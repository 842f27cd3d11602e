// The most multiplications and additions that this machine does per second: vector registers only, on all threads.
#include <algorithm>
#include <chrono>
#include <vector>

#include "qkv/core/parallel.h"
#include "side.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "peak.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace qkv::peers {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Twelve chains hide the latency of two units; values converge to 1. Returns the number of operations.
double Chains(int64_t steps, float* sink) {
  const hn::ScalableTag<float> d;
  const auto a = hn::Set(d, 0.999f), b = hn::Set(d, 0.001f);
  const auto start = [&](int i) { return hn::Set(d, sink[i]); };  // all different, or a compiler would fold them
  auto x0 = start(0), x1 = start(1), x2 = start(2), x3 = start(3), x4 = start(4), x5 = start(5);
  auto x6 = start(6), x7 = start(7), x8 = start(8), x9 = start(9), x10 = start(10), x11 = start(11);
  for (int64_t i = 0; i < steps; ++i) {
    x0 = hn::MulAdd(x0, a, b), x1 = hn::MulAdd(x1, a, b), x2 = hn::MulAdd(x2, a, b), x3 = hn::MulAdd(x3, a, b);
    x4 = hn::MulAdd(x4, a, b), x5 = hn::MulAdd(x5, a, b), x6 = hn::MulAdd(x6, a, b), x7 = hn::MulAdd(x7, a, b);
    x8 = hn::MulAdd(x8, a, b), x9 = hn::MulAdd(x9, a, b), x10 = hn::MulAdd(x10, a, b), x11 = hn::MulAdd(x11, a, b);
  }
  const auto eight = hn::Add(hn::Add(hn::Add(x0, x1), hn::Add(x2, x3)), hn::Add(hn::Add(x4, x5), hn::Add(x6, x7)));
  *sink = hn::GetLane(hn::Add(eight, hn::Add(hn::Add(x8, x9), hn::Add(x10, x11))));
  return 24.0 * static_cast<double>(hn::Lanes(d)) * static_cast<double>(steps);
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::peers
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::peers {
namespace {
HWY_EXPORT(Chains);
}  // namespace

double fma_peak() {
  using Clock = std::chrono::steady_clock;
  constexpr int64_t kSteps = 1 << 20;
  double best = 0;
  for (int round = 0; round < 8; ++round) {
    std::vector<double> flop(static_cast<size_t>(threads()));
    const auto start = Clock::now();
    parallel_for(threads(), 1e9, [&](int64_t t) {
      float sink[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
      flop[static_cast<size_t>(t)] = HWY_DYNAMIC_DISPATCH(Chains)(kSteps, sink);
    });
    double sum = 0;
    for (const double f : flop) sum += f;
    best = std::max(best, sum / std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best / 1e9;
}

}  // namespace qkv::peers
#endif
