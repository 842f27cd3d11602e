// Products of one query with keys, and weighted sums of values, that are rows named by slots.
#if defined(QKV_KERNELS_SLOT_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_SLOT_ROWS_INL_H_
#undef QKV_KERNELS_SLOT_ROWS_INL_H_
#else
#define QKV_KERNELS_SLOT_ROWS_INL_H_
#endif

#include <cstdint>

#include "qkv/kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

// The dot products of q with kKeys keys, side by side so that their chains of additions hide each other's latency.
template <int kKeys>
HWY_INLINE void Scores(const float* q, const float* k, const int32_t* slots, int64_t row, int64_t width, float scale,
                       float* out) {
  const Floats d;
  const float* key[kKeys];
  Vec sum[kKeys];
#pragma GCC unroll 4
  for (int i = 0; i < kKeys; ++i) {
    key[i] = k + slots[i] * row;
    sum[i] = hn::Zero(d);
  }
  int64_t c = 0;
  for (; c + kLanes <= width; c += kLanes) {
    const Vec x = hn::LoadU(d, q + c);
#pragma GCC unroll 4
    for (int i = 0; i < kKeys; ++i) sum[i] = hn::MulAdd(x, hn::LoadU(d, key[i] + c), sum[i]);
  }
  if (c < width) {
    const Vec x = LoadPart(d, q + c, width - c);
#pragma GCC unroll 4
    for (int i = 0; i < kKeys; ++i) sum[i] = hn::MulAdd(x, LoadPart(d, key[i] + c, width - c), sum[i]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < kKeys; ++i) out[i] = scale * hn::GetLane(hn::SumOfLanes(d, sum[i]));
}

// kVectors vectors of the weighted sum of the values, starting at column c.
template <int kVectors>
HWY_INLINE void Mean(const float* weights, const float* v, const int32_t* slots, int64_t count, int64_t row,
                     float inverse, float* out) {
  const Floats d;
  Vec sum[kVectors];
#pragma GCC unroll 4
  for (int i = 0; i < kVectors; ++i) sum[i] = hn::Zero(d);
  for (int64_t j = 0; j < count; ++j) {
    const Vec p = hn::Set(d, weights[j]);
    const float* value = v + slots[j] * row;
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) sum[i] = hn::MulAdd(p, hn::LoadU(d, value + i * kLanes), sum[i]);
  }
  const Vec by = hn::Set(d, inverse);
#pragma GCC unroll 4
  for (int i = 0; i < kVectors; ++i) hn::StoreU(hn::Mul(sum[i], by), d, out + i * kLanes);
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
