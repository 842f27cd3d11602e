// Shared by softmax and cross-entropy: the exponentials of a row and their sum.
#if defined(QKV_KERNELS_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_SOFTMAX_INL_H_
#undef QKV_KERNELS_SOFTMAX_INL_H_
#else
#define QKV_KERNELS_SOFTMAX_INL_H_
#endif

#include <cmath>

#include "qkv/kernels/math-inl.h"
#include "qkv/kernels/row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

/// e^(x - shift), for x up to slightly above the shift. The difference is taken first: inf - inf is NaN, as in the
/// formula.
HWY_INLINE Vec ExpLess(Floats d, Vec x, Vec shift) { return Exp2(d, hn::Mul(hn::Sub(x, shift), hn::Set(d, kLog2E))); }

/// sum e^(x - most) over a row.
HWY_INLINE float SumOfExp(const float* x, float most, int64_t n) {
  const Floats d;
  const Vec shift = hn::Set(d, most);
  return SumOver(n, [&](int64_t i, int64_t left) HWY_ATTR { return ExpLess(d, LoadUpTo(d, x + i, left), shift); });
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
