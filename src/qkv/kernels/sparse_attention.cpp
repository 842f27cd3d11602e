// The gradient of one row: its weights are recomputed, and the gradients of keys and values are added where they are.
#include "qkv/kernels/sparse_attention.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/sparse_attention.cpp"
#include <hwy/foreach_target.h>

#include "qkv/kernels/scratch.h"
#include "qkv/kernels/slot_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

HWY_INLINE void AllScores(const SparseRow& r, const float* x, const float* rows, float scale, float* out) {
  int64_t j = 0;
  for (; j + 4 <= r.count; j += 4) Scores<4>(x, rows, r.slots + j, r.stride, r.width, scale, out + j);
  for (; j < r.count; ++j) Scores<1>(x, rows, r.slots + j, r.stride, r.width, scale, out + j);
}

// x becomes softmax(x), or zeros if nothing is above -inf.
HWY_INLINE void SoftmaxRow(float* x, int64_t count) {
  constexpr float kNothing = -std::numeric_limits<float>::infinity();
  const Floats d;
  float most = kNothing;
  bool sick = false;
  for (int64_t j = 0; j < count; ++j) {
    most = x[j] > most ? x[j] : most;
    sick |= x[j] != x[j];
  }
  if (most == kNothing && !sick) {
    std::fill_n(x, count, 0.f);
    return;
  }
  const Vec shift = hn::Set(d, most);
  const float sum = SumOfExp(x, most, count);
  const Vec inverse = hn::Set(d, 1 / sum);
  ForVectors(count, [&](int64_t i, int64_t left) HWY_ATTR {
    StoreUpTo(hn::Mul(ExpLess(d, LoadUpTo(d, x + i, left), shift), inverse), d, x + i, left);
  });
}

// y += factor x
HWY_INLINE void AddTo(float* y, const float* x, float factor, int64_t width) {
  const Floats d;
  const Vec by = hn::Set(d, factor);
  ForVectors(width, [&](int64_t c, int64_t left) HWY_ATTR {
    StoreUpTo(hn::MulAdd(by, LoadUpTo(d, x + c, left), LoadUpTo(d, y + c, left)), d, y + c, left);
  });
}

void SparseBackward(const SparseRow& r, float* dq, float* dk, float* dv) {
  std::fill_n(dq, r.width, 0.f);
  if (r.count == 0) return;
  Scratch scratch(2 * r.count, 2);
  float *p = scratch.take(r.count), *ds = scratch.take(r.count);
  AllScores(r, r.q, r.k, r.scale, p);  // p <- softmax(scale q . k)
  SoftmaxRow(p, r.count);
  AllScores(r, r.dy, r.v, 1, ds);  // ds <- scale p (dp - sum p dp), dp = dy . v
  float mean = 0;
  for (int64_t j = 0; j < r.count; ++j) mean += p[j] * ds[j];
  for (int64_t j = 0; j < r.count; ++j) ds[j] = p[j] == 0 ? 0 : r.scale * p[j] * (ds[j] - mean);
  for (int64_t j = 0; j < r.count; ++j) {
    const int64_t at = r.slots[j] * r.stride;
    AddTo(dq, r.k + at, ds[j], r.width);          // dq <- sum ds k
    if (dk) AddTo(dk + at, r.q, ds[j], r.width);  // dk += ds q
    if (dv) AddTo(dv + at, r.dy, p[j], r.width);  // dv += p dy
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(SparseBackward);

void sparse_attention_backward(const SparseRow& row, float* dq, float* dk, float* dv) {
  HWY_DYNAMIC_DISPATCH(SparseBackward)(row, dq, dk, dv);
}

}  // namespace qkv::kernels
#endif
