// e^x for doubles x <= 0, for the weights of a kernel smoother.
#if defined(QKV_KERNELS_EXP64_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_EXP64_INL_H_
#undef QKV_KERNELS_EXP64_INL_H_
#else
#define QKV_KERNELS_EXP64_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::ScalableTag<double>;
using VecD = hn::Vec<Doubles>;

/// e^x for x <= 0 within 2 ulp; 0 below -708 (-inf included). NaN is not handled: callers check their input.
HWY_INLINE VecD ExpNonPositive(Doubles d, VecD x) {
  const hn::RebindToUnsigned<Doubles> du;
  const VecD in_range = hn::Max(x, hn::Set(d, -708.0));
  // The low bits of `shifted` hold n = round(x / ln 2); r = x - n ln 2 with ln 2 in two parts (Cody and Waite, 1980).
  const VecD magic = hn::Set(d, 0x1.8p52);
  const VecD shifted = hn::Add(hn::Mul(in_range, hn::Set(d, 1.4426950408889634)), magic);
  const VecD n = hn::Sub(shifted, magic);
  const VecD r =
      hn::NegMulAdd(n, hn::Set(d, 1.90821492927058770002e-10), hn::NegMulAdd(n, hn::Set(d, 0x1.62e42feep-1), in_range));
  // Taylor to degree 13: |r| <= 0.347 leaves 5e-18. Estrin's order, to keep the pipes full.
  const VecD r2 = hn::Mul(r, r), r4 = hn::Mul(r2, r2);
  const VecD p01 = hn::Add(hn::Set(d, 1.0), r);
  const VecD p23 = hn::MulAdd(hn::Set(d, 1.0 / 6), r, hn::Set(d, 0.5));
  const VecD p45 = hn::MulAdd(hn::Set(d, 1.0 / 120), r, hn::Set(d, 1.0 / 24));
  const VecD p67 = hn::MulAdd(hn::Set(d, 1.0 / 5040), r, hn::Set(d, 1.0 / 720));
  const VecD p89 = hn::MulAdd(hn::Set(d, 1.0 / 362880), r, hn::Set(d, 1.0 / 40320));
  const VecD p1011 = hn::MulAdd(hn::Set(d, 1.0 / 39916800), r, hn::Set(d, 1.0 / 3628800));
  const VecD p1213 = hn::MulAdd(hn::Set(d, 1.0 / 6227020800.0), r, hn::Set(d, 1.0 / 479001600));
  const VecD high = hn::MulAdd(hn::MulAdd(p1213, r4, hn::MulAdd(p1011, r2, p89)), r4, hn::MulAdd(p67, r2, p45));
  const VecD p = hn::MulAdd(high, r4, hn::MulAdd(p23, r2, p01));
  const VecD y = hn::BitCast(d, hn::Add(hn::BitCast(du, p), hn::ShiftLeft<52>(hn::BitCast(du, shifted))));
  return hn::IfThenElseZero(hn::Ge(x, hn::Set(d, -708.0)), y);
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
