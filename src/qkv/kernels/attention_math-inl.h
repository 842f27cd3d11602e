// The vector maths of attention: powers of two for the softmax, tanh for additive scores.
#if defined(QKV_KERNELS_ATTENTION_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_ATTENTION_MATH_INL_H_
#undef QKV_KERNELS_ATTENTION_MATH_INL_H_
#else
#define QKV_KERNELS_ATTENTION_MATH_INL_H_
#endif

#include <cmath>
#include <limits>

#include "qkv/kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace attn {

constexpr float kLog2E = 1.44269504f;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// max(floor, x), NaN where x is: x86's max returns its second operand when one is NaN.
HWY_INLINE Vec AtLeast(Vec floor, Vec x) { return hn::Max(floor, x); }
/// min(ceiling, x), NaN where x is.
HWY_INLINE Vec AtMost(Vec ceiling, Vec x) { return hn::Min(ceiling, x); }

/// x <- 2^x for x <= 127, 1 ulp; exactly 0 below -126.5 (-inf included), NaN for NaN. Adding 1.5 * 2^23 + 127 rounds x to a whole n and
/// leaves n + 127 in the lowest bits, which are the exponent of 2^n; for n = -127 that is 0. The vectors go step by step together, for
/// each alone would wait for its own last step.
template <int kCount>
HWY_INLINE void PowersOfTwo(Floats d, Vec (&x)[kCount]) {
  const hn::RebindToSigned<Floats> di;
  const Vec magic = hn::Set(d, 12583039.f);
  Vec shifted[kCount], p[kCount];
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i) {
    const Vec in_range = AtLeast(hn::Set(d, -127.f), x[i]);
    shifted[i] = hn::Add(in_range, magic);
    x[i] = hn::Sub(in_range, hn::Sub(shifted[i], magic));
    p[i] = hn::Set(d, 1.5462614e-4f);
  }
  constexpr float kFactors[] = {1.3392022e-3f, 9.6180537e-3f, 5.5503549e-2f, 2.4022651e-1f, 6.9314719e-1f, 1.f};
#pragma GCC unroll 8
  for (const float factor : kFactors) {
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) p[i] = hn::MulAdd(p[i], x[i], hn::Set(d, factor));
  }
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i) x[i] = hn::Mul(p[i], hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted[i]))));
}
HWY_INLINE Vec PowerOfTwo(Floats d, Vec x) {
  Vec one[1] = {x};
  PowersOfTwo(d, one);
  return one[0];
}

/// tanh x = 1 - 2 / (e^2x + 1), right to 1e-7 of 1.
HWY_INLINE Vec FastTanh(Floats d, Vec x) {
  const Vec one = hn::Set(d, 1.f);
  const Vec power = PowerOfTwo(d, AtMost(hn::Set(d, 64.f), hn::Mul(x, hn::Set(d, 2 * kLog2E))));
  return hn::Sub(one, hn::Div(hn::Set(d, 2.f), hn::Add(power, one)));
}

/// A log-sum-exp in units of log 2, and back.
HWY_INLINE float ToLog2(float x) { return static_cast<float>(static_cast<double>(x) * 1.44269504088896341); }
HWY_INLINE float LogSum(float top, float total) {
  return static_cast<float>((std::log2(static_cast<double>(total)) + static_cast<double>(top)) * 0.693147180559945309);
}

/// Weights of one row from its scores and log-sum-exp, both in units of log 2; then made to sum to one, which takes off what the
/// rounding of the log-sum-exp has put on all of them. Where the scores are so large that this rounding is whole powers of two, the
/// largest of them stands in for it.
HWY_INLINE void WeightsOfScores(float* row, int64_t n, float lse) {
  if (!(std::abs(lse) < 0x1p20f)) {
    lse = -kInfinity;
    for (int64_t j = 0; j < n; ++j) lse = row[j] > lse ? row[j] : lse;
  }
  const Vec base = hn::Set(Floats(), lse);
  Map(row, row, n, [base](Floats d, Vec score) HWY_ATTR { return PowerOfTwo(d, hn::Sub(score, base)); });
  double sum = 0;
  for (int64_t j = 0; j < n; ++j) sum += static_cast<double>(row[j]);
  const Vec share = hn::Set(Floats(), static_cast<float>(1 / sum));
  Map(row, row, n, [share](Floats, Vec weight) HWY_ATTR { return hn::Mul(weight, share); });
}

}  // namespace attn
}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
