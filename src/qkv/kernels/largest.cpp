// Selection: a bound below the k-th largest, a heap of the best so far, and vectors that skip whatever does not reach both.
#include "qkv/kernels/largest.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/largest.cpp"
#include <hwy/foreach_target.h>

#include "qkv/kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

// A total order, since places differ: the heap's front is the worst that is kept.
HWY_INLINE bool Better(const Scored& a, const Scored& b) { return a.value != b.value ? a.value > b.value : a.id < b.id; }

// Each lane of 8 vectors has the largest of its share of the row, so the k-th largest of the lanes is at most the k-th largest of the row,
// and not far below it. -inf where k is too large for that, or the row too short.
HWY_INLINE float BoundOfLargest(const float* x, int64_t n, int64_t k) {
  const Floats d;
  const int64_t lanes = LaneCount();
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  if (2 * k > 8 * lanes || n < 32 * lanes) return kNone;
  Vec a = hn::Set(d, kNone), b = a, c = a, e = a, f = a, g = a, h = a, l = a;
  const auto more = [&](Vec& most, int64_t at) HWY_ATTR {
    const Vec v = hn::LoadU(d, x + at);
    most = hn::IfThenElse(hn::Gt(v, most), v, most);  // NaN is passed over
  };
  for (int64_t i = 0; i + 8 * lanes <= n; i += 8 * lanes) {
    more(a, i), more(b, i + lanes), more(c, i + 2 * lanes), more(e, i + 3 * lanes);
    more(f, i + 4 * lanes), more(g, i + 5 * lanes), more(h, i + 6 * lanes), more(l, i + 7 * lanes);
  }
  HWY_ALIGN float shares[8 * HWY_MAX_BYTES / sizeof(float)];
  int64_t at = 0;
  for (const Vec& v : {a, b, c, e, f, g, h, l}) hn::Store(v, d, shares + at), at += lanes;
  std::nth_element(shares, shares + k - 1, shares + at, std::greater<>());
  return shares[k - 1];
}

int64_t LargestKernel(const float* x, int64_t n, int64_t k, Scored* out) {
  if (k <= 0) return 0;
  const float bound = BoundOfLargest(x, n, k), below = std::nextafter(bound, -std::numeric_limits<float>::infinity());
  int64_t i = 0, count = 0;
  if (bound == below) {  // none: the first k begin the heap
    for (; i < n && count < k; ++i)
      if (!std::isnan(x[i])) out[count++] = {x[i], static_cast<int32_t>(i)};
    std::make_heap(out, out + count, Better);
  }
  const auto worst = [&] { return count == k ? out[0].value : below; };
  const auto offer = [&](int64_t from, int64_t to) {
    for (int64_t j = from; j < to; ++j) {
      if (!(x[j] > worst())) continue;  // an equal one further on is worse; NaN compares false
      if (count == k) std::pop_heap(out, out + count, Better);
      else ++count;
      out[count - 1] = {x[j], static_cast<int32_t>(j)};
      std::push_heap(out, out + count, Better);
    }
  };
  const Floats d;
  const int64_t lanes = LaneCount();
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const Vec least = hn::Set(d, worst());
    const auto above = [&](int64_t v) HWY_ATTR { return hn::Gt(hn::LoadU(d, x + i + v * lanes), least); };
    if (!hn::AllFalse(d, hn::Or(hn::Or(above(0), above(1)), hn::Or(above(2), above(3))))) offer(i, i + 4 * lanes);
  }
  offer(i, n);
  std::sort_heap(out, out + count, Better);
  return count;
}

float LogSumExpKernel(const float* x, float most, int64_t n) { return std::log(SumOfExp(x, most, n)); }

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(LargestKernel);
HWY_EXPORT(LogSumExpKernel);

int64_t largest(const float* x, int64_t n, int64_t k, Scored* out) { return HWY_DYNAMIC_DISPATCH(LargestKernel)(x, n, k, out); }
float log_sum_exp(const float* x, float most, int64_t n) { return HWY_DYNAMIC_DISPATCH(LogSumExpKernel)(x, most, n); }

}  // namespace qkv::kernels
#endif
