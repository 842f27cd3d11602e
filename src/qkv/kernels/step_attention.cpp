// Scores, softmax and weighted sum of one query at a time: everything a row needs fits into the nearest cache.
#include "qkv/kernels/step_attention.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/step_attention.cpp"
#include <hwy/foreach_target.h>

#include "qkv/kernels/scratch.h"
#include "qkv/kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

// The dot products of q with kKeys keys, side by side so that their chains of additions hide each other's latency.
template <int kKeys>
HWY_INLINE void Scores(const float* q, const float* k, const int32_t* slots, int64_t row, int64_t width, float scale, float* out) {
  const Floats d;
  const int64_t lanes = LaneCount();
  const float* key[kKeys];
  Vec sum[kKeys];
#pragma GCC unroll 4
  for (int i = 0; i < kKeys; ++i) {
    key[i] = k + slots[i] * row;
    sum[i] = hn::Zero(d);
  }
  int64_t c = 0;
  for (; c + lanes <= width; c += lanes) {
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

// kVectors vectors of the weighted sum of the values, from column c on.
template <int kVectors>
HWY_INLINE void Mean(const float* weights, const float* v, const int32_t* slots, int64_t count, int64_t row, float inverse, float* out) {
  const Floats d;
  const int64_t lanes = LaneCount();
  Vec sum[kVectors];
#pragma GCC unroll 4
  for (int i = 0; i < kVectors; ++i) sum[i] = hn::Zero(d);
  for (int64_t j = 0; j < count; ++j) {
    const Vec p = hn::Set(d, weights[j]);
    const float* value = v + slots[j] * row;
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) sum[i] = hn::MulAdd(p, hn::LoadU(d, value + i * lanes), sum[i]);
  }
  const Vec by = hn::Set(d, inverse);
#pragma GCC unroll 4
  for (int i = 0; i < kVectors; ++i) hn::StoreU(hn::Mul(sum[i], by), d, out + i * lanes);
}

// One head of one row; scores has room for count floats and one vector more.
HWY_INLINE void StepHead(const StepAttention& s, const float* q, const StepKeys& keys, int64_t first, const int32_t* slots, int64_t count,
                         float* scores, float* out) {
  const Floats d;
  const int64_t lanes = LaneCount(), row = s.key_heads * s.width;
  const float *k = keys.k + first, *v = keys.v + first;
  int64_t j = 0;
  for (; j + 4 <= count; j += 4) Scores<4>(q, k, slots + j, row, s.width, s.scale, scores + j);
  for (; j < count; ++j) Scores<1>(q, k, slots + j, row, s.width, s.scale, scores + j);
  const int64_t padded = (count + lanes - 1) / lanes * lanes;
  std::fill(scores + count, scores + padded, -std::numeric_limits<float>::infinity());
  Vec highest = hn::Load(d, scores);
  for (int64_t i = lanes; i < padded; i += lanes) highest = hn::Max(highest, hn::Load(d, scores + i));
  const float most = hn::GetLane(hn::MaxOfLanes(d, highest));
  float sum = 0;
  if (most > -std::numeric_limits<float>::infinity()) {
    const Vec shift = hn::Set(d, most);
    Vec sums = hn::Zero(d);
    for (int64_t i = 0; i < padded; i += lanes) {
      const Vec e = ExpLess(d, hn::Load(d, scores + i), shift);
      hn::Store(e, d, scores + i);
      sums = hn::Add(sums, e);
    }
    sum = hn::GetLane(hn::SumOfLanes(d, sums));
  } else {
    for (int64_t i = 0; i < count; ++i) sum += scores[i] == scores[i] ? 0 : scores[i];  // NaN stays
    std::fill_n(scores, count, 0.f);
  }
  const float inverse = sum == 0 ? 0 : 1 / sum;
  int64_t c = 0;
  for (; c + 4 * lanes <= s.width; c += 4 * lanes) Mean<4>(scores, v + c, slots, count, row, inverse, out + c);
  for (; c + lanes <= s.width; c += lanes) Mean<1>(scores, v + c, slots, count, row, inverse, out + c);
  if (c == s.width) return;
  Vec tail = hn::Zero(d);
  for (int64_t i = 0; i < count; ++i) tail = hn::MulAdd(hn::Set(d, scores[i]), LoadPart(d, v + c + slots[i] * row, s.width - c), tail);
  StorePart(hn::Mul(tail, hn::Set(d, inverse)), d, out + c, s.width - c);
}

void StepAttentionRows(const StepAttention& s, const float* q, const StepKeys& keys, float* out, int64_t begin, int64_t end) {
  const int64_t width = s.heads * s.width, shared = s.heads / s.key_heads;
  int64_t most = 1;
  for (int64_t r = begin; r < end; ++r) most = std::max<int64_t>(most, keys.counts[r]);
  most += LaneCount();
  float* scores = Scratch(most, 1).take(most);
  for (int64_t r = begin; r < end; ++r) {
    const int32_t* slots = keys.slots + r * keys.stride;
    if (keys.counts[r] == 0) {
      std::fill_n(out + r * width, width, 0.f);
      continue;
    }
    for (int64_t h = 0; h < s.heads; ++h)
      StepHead(s, q + r * width + h * s.width, keys, h / shared * s.width, slots, keys.counts[r], scores, out + r * width + h * s.width);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(StepAttentionRows);
void step_attention(const StepAttention& sizes, const float* q, const StepKeys& keys, float* out, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(StepAttentionRows)(sizes, q, keys, out, begin, end);
}

}  // namespace qkv::kernels
#endif
