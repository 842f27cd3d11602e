// Selection: for small k, a bound below the k-th largest and a second pass over the elements that reach it; for large
// k, a heap of the best so far.
#include "qkv/kernels/largest.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/largest.cpp"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>

#include "qkv/kernels/scratch.h"
#include "qkv/kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

// A total order, since ids differ: the heap's front is the worst element kept.
HWY_INLINE bool Better(const Scored& a, const Scored& b) {
  return a.value != b.value ? a.value > b.value : a.id < b.id;
}

constexpr float kLeast = -std::numeric_limits<float>::infinity();
constexpr int64_t kBlock = 8;  // vectors of the row whose maxima are checked together

// The k-th largest of the shares of a row. At least k elements of the row reach it, so it is at most their k-th
// largest, and not far below it if k is at most half the number of shares.
template <int kShares>
HWY_INLINE float KthOfShares(const Vec (&shares)[kShares], int64_t k) {
  const Floats d;
  HWY_ALIGN float values[kShares * HWY_MAX_BYTES / sizeof(float)];
  for (int i = 0; i < kShares; ++i) hn::Store(shares[i], d, values + i * kLanes);
  const Vec one = hn::Set(d, 1.f);
  Vec reached[kShares];  // number of shares that reach it
#pragma GCC unroll 8
  for (int i = 0; i < kShares; ++i) reached[i] = hn::Zero(d);
  for (int64_t s = 0; s < kShares * kLanes; ++s) {
    const Vec value = hn::Set(d, values[s]);
#pragma GCC unroll 8
    for (int i = 0; i < kShares; ++i)
      reached[i] = hn::Add(reached[i], hn::IfThenElseZero(hn::Ge(value, shares[i]), one));
  }
  Vec most = hn::Set(d, kLeast);
#pragma GCC unroll 8
  for (int i = 0; i < kShares; ++i)
    most = hn::Max(
        most, hn::IfThenElse(hn::Ge(reached[i], hn::Set(d, static_cast<float>(k))), shares[i], hn::Set(d, kLeast)));
  return LargestLane(d, most);
}

// The k best so far, in order.
struct Kept {
  Scored* out;
  int64_t k, count = 0;
  float bound;  // elements not above it need not be offered

  HWY_INLINE void Offer(const float* x, int64_t from, int64_t to) {
    for (int64_t j = from; j < to; ++j) {
      if (!(x[j] > bound)) continue;  // a later equal element is worse; NaN compares false
      int64_t at = count == k ? k - 1 : count++;
      for (; at > 0 && out[at - 1].value < x[j]; --at) out[at] = out[at - 1];
      out[at] = {x[j], static_cast<int32_t>(j)};
      if (count == k) bound = out[k - 1].value;
    }
  }
};

// Small k, long row: keeps the maximum of each block and re-reads only blocks that hold one of the k largest. Returns
// -1 if there is no bound because too much of the row is -inf or NaN. A lane of the kShares shares has the maximum of
// that lane over every kShares-th block.
template <int kShares>
int64_t FewLargest(const float* x, int64_t n, int64_t k, Scored* out) {
  const Floats d;
  const int64_t step = kBlock * kLanes, blocks = n / step;
  float* tops = Scratch(blocks * kLanes, 1).take(blocks * kLanes);
  Vec shares[kShares];
#pragma GCC unroll 8
  for (int i = 0; i < kShares; ++i) shares[i] = hn::Set(d, kLeast);
  const auto top_of = [&](int64_t block, Vec& share) HWY_ATTR {
    Vec top = hn::Set(d, kLeast);
#pragma GCC unroll 8
    for (int64_t v = 0; v < kBlock; ++v)
      top = hn::Max(hn::LoadU(d, x + block * step + v * kLanes), top);  // NaN leaves it unchanged
    hn::Store(top, d, tops + block * kLanes);
    share = hn::Max(top, share);
  };
  int64_t b = 0;
  for (; b + kShares <= blocks; b += kShares) {
#pragma GCC unroll 8
    for (int i = 0; i < kShares; ++i) top_of(b + i, shares[i]);
  }
  for (; b < blocks; ++b) top_of(b, shares[0]);
  const float kth = KthOfShares(shares, k);
  if (kth == kLeast) return -1;
  Kept kept{out, k, 0, std::nextafter(kth, kLeast)};
  for (b = 0; b < blocks; ++b) {
    if (hn::AllFalse(d, hn::Gt(hn::Load(d, tops + b * kLanes), hn::Set(d, kept.bound)))) continue;
    for (int64_t i = b * step; i < (b + 1) * step; i += kLanes)
      if (!hn::AllFalse(d, hn::Gt(hn::LoadU(d, x + i), hn::Set(d, kept.bound)))) kept.Offer(x, i, i + kLanes);
  }
  kept.Offer(x, blocks * step, n);
  return kept.count;
}

int64_t LargestKernel(const float* x, int64_t n, int64_t k, Scored* out) {
  if (k <= 0) return 0;
  const Floats d;
  int64_t i = 0, count = -1;
  if (k <= 2 * kLanes && n >= 4 * kBlock * kLanes)
    count = FewLargest<4>(x, n, k, out);
  else if (k <= 4 * kLanes && n >= 8 * kBlock * kLanes)
    count = FewLargest<8>(x, n, k, out);
  if (count >= 0) return count;
  count = 0;
  for (; i < n && count < k; ++i)
    if (!std::isnan(x[i])) out[count++] = {x[i], static_cast<int32_t>(i)};
  std::make_heap(out, out + count, Better);
  const auto offer = [&](int64_t from, int64_t to) {
    for (int64_t j = from; j < to; ++j) {
      if (!(x[j] > out[0].value)) continue;
      std::pop_heap(out, out + count, Better);
      out[count - 1] = {x[j], static_cast<int32_t>(j)};
      std::push_heap(out, out + count, Better);
    }
  };
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    const Vec least = hn::Set(d, out[0].value);
    const auto above = [&](int64_t v) HWY_ATTR { return hn::Gt(hn::LoadU(d, x + i + v * kLanes), least); };
    if (!hn::AllFalse(d, hn::Or(hn::Or(above(0), above(1)), hn::Or(above(2), above(3))))) offer(i, i + 4 * kLanes);
  }
  offer(i, n);
  std::sort_heap(out, out + count, Better);
  return count;
}

float LogSumExpKernel(const float* x, float most, int64_t n, const float* soon) {
  if (!soon) return std::log(SumOfExp(x, most, n));
  const Floats d;
  const Vec shift = hn::Set(d, most);
  return std::log(SumOver(n, [&](int64_t i, int64_t left) HWY_ATTR {
    hwy::Prefetch(soon + i);
    return ExpLess(d, LoadUpTo(d, x + i, left), shift);
  }));
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(LargestKernel);
HWY_EXPORT(LogSumExpKernel);

int64_t largest(const float* x, int64_t n, int64_t k, Scored* out) {
  return HWY_DYNAMIC_DISPATCH(LargestKernel)(x, n, k, out);
}
float log_sum_exp(const float* x, float most, int64_t n, const float* soon) {
  return HWY_DYNAMIC_DISPATCH(LogSumExpKernel)(x, most, n, soon);
}

}  // namespace qkv::kernels
#endif
