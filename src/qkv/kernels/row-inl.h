// Loops over one row: vectors of a row with its tail, and sums in an order that depends on the width alone.
#if defined(QKV_KERNELS_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_ROW_INL_H_
#undef QKV_KERNELS_ROW_INL_H_
#else
#define QKV_KERNELS_ROW_INL_H_
#endif

#include "qkv/kernels/map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

/// A vector of which only the first `count` elements exist; the lanes beyond are zero.
HWY_INLINE Vec LoadUpTo(Floats d, const float* x, int64_t count) {
  return count >= kLanes ? hn::LoadU(d, x) : LoadPart(d, x, count);
}

HWY_INLINE void StoreUpTo(Vec v, Floats d, float* y, int64_t count) {
  if (count >= kLanes)
    hn::StoreU(v, d, y);
  else
    StorePart(v, d, y, count);
}

/// f(i, count) for i = 0, lanes, 2 lanes, ... with count = n - i elements left, of which f handles one vector.
template <class F>
HWY_INLINE void ForVectors(int64_t n, F&& f) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) f(i, kLanes);
  if (i < n) f(i, n - i);
}

/// The sum of f(i, count) over the row; whatever f puts into lanes beyond the row is ignored.
template <class F>
HWY_INLINE float SumOver(int64_t n, F&& f) {
  const Floats d;
  Vec a = hn::Zero(d), b = a, c = a, e = a;
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    a = hn::Add(a, f(i, kLanes));
    b = hn::Add(b, f(i + kLanes, kLanes));
    c = hn::Add(c, f(i + 2 * kLanes, kLanes));
    e = hn::Add(e, f(i + 3 * kLanes, kLanes));
  }
  for (; i + kLanes <= n; i += kLanes) a = hn::Add(a, f(i, kLanes));
  if (i < n) b = hn::Add(b, hn::IfThenElseZero(hn::FirstN(d, static_cast<size_t>(n - i)), f(i, n - i)));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

/// The largest element of a row of n >= 1; NaN may or may not count.
HWY_INLINE float MaxOf(const float* x, int64_t n) {
  const Floats d;
  if (n < kLanes) {
    float most = x[0];
    for (int64_t i = 1; i < n; ++i) most = x[i] > most ? x[i] : most;
    return most;
  }
  Vec a = hn::LoadU(d, x), b = hn::LoadU(d, x + n - kLanes);  // the last vector may overlap
  int64_t i = kLanes;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    a = hn::Max(a, hn::LoadU(d, x + i));
    b = hn::Max(b, hn::LoadU(d, x + i + kLanes));
  }
  if (i + kLanes <= n) a = hn::Max(a, hn::LoadU(d, x + i));
  return LargestLane(d, hn::Max(a, b));
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
