// Shared by all attention kernels: log-sum-exps in units of log 2, and the weights of a row from its scores.
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

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// A log-sum-exp in units of log 2, and back.
HWY_INLINE float ToLog2(float x) { return static_cast<float>(static_cast<double>(x) * 1.44269504088896341); }
HWY_INLINE float LogSum(float top, float total) {
  return static_cast<float>((std::log2(static_cast<double>(total)) + static_cast<double>(top)) * 0.693147180559945309);
}

/// Weights of one row from its scores and log-sum-exp, both in units of log 2; then normalised to sum to one, which
/// removes the rounding error of the log-sum-exp from all of them. If the scores are so large that this error amounts
/// to whole powers of two, the largest score is used instead of the log-sum-exp.
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
