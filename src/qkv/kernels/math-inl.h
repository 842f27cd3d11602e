// Vector maths that is right for NaN, infinities, denormals and huge values (Highway's own is not: exp(NaN) = 0, log(0) = -105).
#if defined(QKV_KERNELS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_MATH_INL_H_
#undef QKV_KERNELS_MATH_INL_H_
#else
#define QKV_KERNELS_MATH_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cmath>
#include <limits>

#include "qkv/kernels/map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

/// y * 2^n for whole n in [-252, 254], in two steps so that both ends round as they should.
HWY_INLINE Vec ScaleByPowerOfTwo(Floats d, Vec y, Vec n) {
  const hn::RebindToSigned<Floats> di;
  const auto whole = hn::ConvertTo(di, n);
  const auto half = hn::ShiftRight<1>(whole);
  const auto bias = hn::Set(di, 127);
  const Vec first = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const Vec second = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(whole, half), bias)));
  return hn::Mul(hn::Mul(y, first), second);
}

/// e^x: 1 ulp; 0 for -inf, inf above 88.73, NaN for NaN.
HWY_INLINE Vec Exp(Floats d, Vec x) {
  const Vec in_range = hn::Min(hn::Max(x, hn::Set(d, -105.f)), hn::Set(d, 90.f));
  const Vec n = hn::Round(hn::Mul(in_range, hn::Set(d, 1.44269504f)));
  // r = x - n ln 2, with ln 2 in two parts (Cody and Waite, 1980)
  const Vec r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), hn::NegMulAdd(n, hn::Set(d, 0.693359375f), in_range));
  Vec p = hn::Set(d, 1.3934545e-3f);
  p = hn::MulAdd(p, r, hn::Set(d, 8.3637765e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1666457e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666573e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5f));
  p = hn::MulAdd(p, hn::Mul(r, r), hn::Add(r, hn::Set(d, 1.f)));
  return hn::IfThenElse(hn::IsNaN(x), x, ScaleByPowerOfTwo(d, p, n));
}

/// 2^x for x <= 127, 1 ulp: 0 below -126 (-inf included), NaN for NaN. The fast one, for scores less their maximum. Adding
/// 1.5 * 2^23 rounds x to a whole n, a half to the even one, and leaves n in the lowest bits. x86's max returns its second operand when one
/// is NaN.
HWY_INLINE Vec Exp2(Floats d, Vec x) {
  const hn::RebindToSigned<Floats> di;
  const auto small = hn::Lt(x, hn::Set(d, -126.f));
  const Vec in_range = hn::Max(hn::Set(d, -126.f), x);
  const Vec magic = hn::Set(d, 12582912.f), shifted = hn::Add(in_range, magic);
  const Vec r = hn::Sub(in_range, hn::Sub(shifted, magic));
  Vec p = hn::Set(d, 1.5462614e-4f);
  p = hn::MulAdd(p, r, hn::Set(d, 1.3392022e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 9.6180537e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.5503549e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 2.4022651e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 6.9314719e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.f));
  const auto power = hn::ShiftLeft<23>(hn::Add(hn::BitCast(di, shifted), hn::Set(di, 127)));
  return hn::IfThenZeroElse(small, hn::Mul(p, hn::BitCast(d, power)));
}

/// ln x: -inf at 0, NaN below, inf at inf.
HWY_INLINE Vec Log(Floats d, Vec x) {
  const Vec inf = hn::Set(d, std::numeric_limits<float>::infinity()), zero = hn::Zero(d);
  Vec y = hn::Log(d, x);
  y = hn::IfThenElse(hn::Eq(x, inf), inf, y);
  y = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(inf), y);
  return hn::IfThenElse(hn::Or(hn::Lt(x, zero), hn::IsNaN(x)), hn::Set(d, std::numeric_limits<float>::quiet_NaN()), y);
}

HWY_INLINE Vec Tanh(Floats d, Vec x) {
  const Vec limit = hn::Set(d, 10.f);  // tanh(10) rounds to 1
  const Vec y = hn::Tanh(d, hn::Min(hn::Max(x, hn::Neg(limit)), limit));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

/// 1 / (1 + e^-x)
HWY_INLINE Vec Sigmoid(Floats d, Vec x) {
  const Vec one = hn::Set(d, 1.f);
  return hn::Div(one, hn::Add(one, Exp(d, hn::Neg(x))));
}

/// erfc(z) = e^(-z^2) erfcx(z), with (1 + 2z) erfcx(z) a polynomial in (z - 2) / (z + 2) fitted on [0, 10]; 2 - erfc(-z) below 0.
HWY_INLINE Vec Erfc(Floats d, Vec z) {
  const Vec two = hn::Set(d, 2.f), one = hn::Set(d, 1.f);
  const Vec a = hn::Min(hn::Abs(z), hn::Set(d, 10.5f));  // erfc(10.5) is 0 in float
  const Vec t = hn::Div(hn::Sub(a, two), hn::Add(a, two));
  Vec p = hn::Set(d, -4.1006559e-4f);
  p = hn::MulAdd(p, t, hn::Set(d, -1.2424590e-3f));
  p = hn::MulAdd(p, t, hn::Set(d, 1.3205977e-3f));
  p = hn::MulAdd(p, t, hn::Set(d, 8.6436776e-3f));
  p = hn::MulAdd(p, t, hn::Set(d, -8.0614548e-3f));
  p = hn::MulAdd(p, t, hn::Set(d, -5.4207971e-2f));
  p = hn::MulAdd(p, t, hn::Set(d, 1.6405548e-1f));
  p = hn::MulAdd(p, t, hn::Set(d, -1.6603106e-1f));
  p = hn::MulAdd(p, t, hn::Set(d, -9.2763988e-2f));
  p = hn::MulAdd(p, t, hn::Set(d, 1.2769784f));
  const Vec upper = hn::Div(hn::Mul(Exp(d, hn::Neg(hn::Mul(a, a))), p), hn::MulAdd(two, a, one));
  const Vec y = hn::IfThenElse(hn::Lt(z, hn::Zero(d)), hn::Sub(two, upper), upper);
  return hn::IfThenElse(hn::IsNaN(z), z, y);
}

/// x Phi(x), Phi the normal distribution function: the exact GELU (Hendrycks and Gimpel, 2016).
HWY_INLINE Vec Gelu(Floats d, Vec x) {
  return hn::Mul(hn::Mul(hn::Set(d, 0.5f), x), Erfc(d, hn::Mul(x, hn::Set(d, -0.70710678f))));
}

/// d Gelu / dx = Phi(x) + x phi(x)
HWY_INLINE Vec GeluSlope(Floats d, Vec x) {
  const Vec phi = hn::Mul(hn::Set(d, 0.39894228f), Exp(d, hn::Mul(hn::Set(d, -0.5f), hn::Mul(x, x))));
  return hn::MulAdd(x, phi, hn::Mul(hn::Set(d, 0.5f), Erfc(d, hn::Mul(x, hn::Set(d, -0.70710678f)))));
}

/// sin and cos: vectors up to 10,000, libm in double beyond, NaN for infinities. A lane's bits do not depend on the other lanes.
template <bool kCos>
HWY_INLINE Vec SinCos(Floats d, Vec x) {
  const auto small = hn::Lt(hn::Abs(x), hn::Set(d, 10000.f));
  const Vec reduced = hn::IfThenElseZero(small, x);
  const Vec y = kCos ? hn::Cos(d, reduced) : hn::Sin(d, reduced);
  if (hn::AllTrue(d, small)) return y;
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(x, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = static_cast<float>(kCos ? std::cos(double{lanes[i]}) : std::sin(double{lanes[i]}));
  return hn::IfThenElse(small, y, hn::Load(d, lanes));
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
