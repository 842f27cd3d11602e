// The sum of the outer products b_j c_j^T so far is a small matrix; every row adds to it and is multiplied by it.
#include "qkv/kernels/running_sums.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/running_sums.cpp"
#include <hwy/foreach_target.h>

#include "qkv/kernels/row-inl.h"
#include "qkv/kernels/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

constexpr int64_t kVectors = 4;  // of columns that a pass over the features holds in registers

// sum += b c^T, for columns padded to whole vectors.
HWY_INLINE void Absorb(const float* b, const float* c, int64_t features, int64_t columns, float* sum) {
  const Floats d;
  for (int64_t f = 0; f < features; ++f) {
    const Vec x = hn::Set(d, b[f]);
    float* row = sum + f * columns;
    for (int64_t i = 0; i < columns; i += kLanes)
      hn::Store(hn::MulAdd(x, hn::Load(d, c + i), hn::Load(d, row + i)), d, row + i);
  }
}

// kCount vectors of y = a sum.
template <int kCount>
HWY_INLINE void Product(const float* a, const float* sum, int64_t features, int64_t columns, float* y) {
  const Floats d;
  Vec total[kCount];
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) total[i] = hn::Zero(d);
  for (int64_t f = 0; f < features; ++f) {
    const Vec x = hn::Set(d, a[f]);
#pragma GCC unroll 4
    for (int i = 0; i < kCount; ++i) total[i] = hn::MulAdd(x, hn::Load(d, sum + f * columns + i * kLanes), total[i]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) hn::Store(total[i], d, y + i * kLanes);
}

void SumsOfColumns(const RunningSums& s, float* y, int64_t begin, int64_t end) {
  const int64_t width = end - begin, columns = (width + kLanes - 1) / kLanes * kLanes;
  Scratch scratch((s.features + 2) * columns, 3);
  float *sum = scratch.take(s.features * columns), *c = scratch.take(columns), *out = scratch.take(columns);
  std::fill_n(sum, s.features * columns, 0.f);
  std::fill_n(c, columns, 0.f);
  const bool up = s.way == Running::up;
  const auto absorb = [&](int64_t j) HWY_ATTR {
    std::copy_n(s.c + j * s.width + begin, width, c);
    Absorb(s.b + j * s.features, c, s.features, columns, sum);
  };
  int64_t next = up ? 0 : s.keys - 1;  // the key that is absorbed next
  for (int64_t step = 0; step < s.queries; ++step) {
    const int64_t i = up ? step : s.queries - 1 - step;
    if (up)
      for (; next < s.keys && next <= i + s.offset; ++next) absorb(next);
    else
      for (; next >= 0 && next >= i - s.offset; --next) absorb(next);
    const float* a = s.a + i * s.features;
    int64_t at = 0;
    for (; at + kVectors * kLanes <= columns; at += kVectors * kLanes)
      Product<kVectors>(a, sum + at, s.features, columns, out + at);
    for (; at < columns; at += kLanes) Product<1>(a, sum + at, s.features, columns, out + at);
    std::copy_n(out, width, y + i * s.width + begin);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(SumsOfColumns);

void running_sums(const RunningSums& s, float* y, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(SumsOfColumns)(s, y, begin, end);
}

}  // namespace qkv::kernels
#endif
