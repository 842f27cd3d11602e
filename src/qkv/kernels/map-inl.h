// Element loops, one per arity: y[i] = f(a[i], ...) with vector functors. Tails go through a padded vector, so they
// give the same bits as full vectors.
#if defined(QKV_KERNELS_MAP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_MAP_INL_H_
#undef QKV_KERNELS_MAP_INL_H_
#else
#define QKV_KERNELS_MAP_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vec = hn::Vec<Floats>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Floats()));  // per Vec, fixed on every target here

/// Loads count <= lanes elements; the other lanes are zero.
HWY_INLINE Vec LoadPart(Floats d, const float* x, int64_t count) {
#if HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, x);  // does not read the other lanes
#else
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)] = {};
  for (int64_t i = 0; i < count; ++i) lanes[i] = x[i];
  return hn::Load(d, lanes);
#endif
}

/// Stores the first count < lanes elements and touches nothing after them.
HWY_INLINE void StorePart(Vec v, Floats d, float* y, int64_t count) {
#if HWY_TARGET < HWY_AVX2
  hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(count)), d, y);
#elif HWY_TARGET == HWY_AVX2
  (void)d;
  const hn::Full128<float> four;
  const hn::Half<decltype(four)> two;
  auto part = hn::LowerHalf(four, v);
  if (count & 4) {
    hn::StoreU(part, four, y);
    y += 4;
    part = hn::UpperHalf(four, v);
  }
  if (count & 2) {
    hn::StoreU(hn::LowerHalf(two, part), two, y);
    y += 2;
    part = hn::Shuffle1032(part);
  }
  if (count & 1) *y = hn::GetLane(part);
#else
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, d, lanes);
  for (int64_t i = 0; i < count; ++i) y[i] = lanes[i];
#endif
}

/// The largest lane. Highway's own, on targets without vectors, begins at the lowest finite number and loses -infinity.
HWY_INLINE float LargestLane(Floats d, Vec v) {
#if HWY_TARGET == HWY_EMU128
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, d, lanes);
  for (int64_t i = 1; i < kLanes; ++i) lanes[0] = lanes[0] < lanes[i] ? lanes[i] : lanes[0];
  return lanes[0];
#else
  return hn::GetLane(hn::MaxOfLanes(d, v));
#endif
}

/// y[i] = f(a[i])
template <class F>
HWY_INLINE void Map(const float* a, float* y, int64_t n, F&& f) {
  const Floats d;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(f(d, hn::LoadU(d, a + i)), d, y + i);
  if (i < n) StorePart(f(d, LoadPart(d, a + i, n - i)), d, y + i, n - i);
}

/// y[i] = f(a[i], b[i])
template <class F>
HWY_INLINE void Map(const float* a, const float* b, float* y, int64_t n, F&& f) {
  const Floats d;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(f(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
  if (i < n) StorePart(f(d, LoadPart(d, a + i, n - i), LoadPart(d, b + i, n - i)), d, y + i, n - i);
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
