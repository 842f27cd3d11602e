// Vector maths, correct for NaN, infinities, denormals and huge values (Highway's is not: exp(NaN) = 0, log(0) = -105).
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

constexpr float kLog2E = 1.44269504f;

/// max(floor, x), NaN where x is: x86's max returns its second operand when one is NaN.
HWY_INLINE Vec AtLeast(Vec floor, Vec x) { return hn::Max(floor, x); }
/// min(ceiling, x), NaN where x is.
HWY_INLINE Vec AtMost(Vec ceiling, Vec x) { return hn::Min(ceiling, x); }

/// y * 2^n for whole n in [-252, 254], in two steps so that both ends round correctly.
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
  const Vec n = hn::Round(hn::Mul(in_range, hn::Set(d, kLog2E)));
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

/// p <- 2^r for |r| <= 1/2. Several vectors advance together: a single one would stall on its previous step.
template <int kCount>
HWY_INLINE void PowersOfFraction(Floats d, const Vec (&r)[kCount], Vec (&p)[kCount]) {
  constexpr float kFactors[] = {1.3392022e-3f, 9.6180537e-3f, 5.5503549e-2f, 2.4022651e-1f, 6.9314719e-1f, 1.f};
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i) p[i] = hn::Set(d, 1.5462614e-4f);
#pragma GCC unroll 8
  for (const float factor : kFactors) {
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) p[i] = hn::MulAdd(p[i], r[i], hn::Set(d, factor));
  }
}

/// 2^x for x <= 127, 1 ulp: 0 below -126 (-inf included), NaN for NaN. The fast version, for scores minus their
/// maximum. Adding 1.5 * 2^23 rounds x to an integer n, halves to even, and leaves n in the lowest bits.
HWY_INLINE Vec Exp2(Floats d, Vec x) {
  const hn::RebindToSigned<Floats> di;
  const auto small = hn::Lt(x, hn::Set(d, -126.f));
  const Vec in_range = AtLeast(hn::Set(d, -126.f), x);
  const Vec magic = hn::Set(d, 12582912.f), shifted = hn::Add(in_range, magic);
  const Vec r[1] = {hn::Sub(in_range, hn::Sub(shifted, magic))};
  Vec p[1];
  PowersOfFraction(d, r, p);
  const auto power = hn::ShiftLeft<23>(hn::Add(hn::BitCast(di, shifted), hn::Set(di, 127)));
  return hn::IfThenZeroElse(small, hn::Mul(p[0], hn::BitCast(d, power)));
}

/// x <- 2^x for x <= 127, 1 ulp; exactly 0 below -126.5 (-inf included), NaN for NaN. Adding 1.5 * 2^23 + 127 rounds x
/// to an integer n and leaves n + 127 in the lowest bits, which are the exponent of 2^n; for n = -127 that is 0. So it
/// needs one step fewer than Exp2, but rounds halves to odd n: the bits of the two may differ there.
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
  }
  PowersOfFraction(d, x, p);
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i) x[i] = hn::Mul(p[i], hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted[i]))));
}
HWY_INLINE Vec PowerOfTwo(Floats d, Vec x) {
  Vec one[1] = {x};
  PowersOfTwo(d, one);
  return one[0];
}

/// tanh x = 1 - 2 / (e^2x + 1), with an absolute error of 1e-7.
HWY_INLINE Vec FastTanh(Floats d, Vec x) {
  const Vec one = hn::Set(d, 1.f);
  const Vec power = PowerOfTwo(d, AtMost(hn::Set(d, 64.f), hn::Mul(x, hn::Set(d, 2 * kLog2E))));
  return hn::Sub(one, hn::Div(hn::Set(d, 2.f), hn::Add(power, one)));
}

/// 1 / (1 + e^-x), with an absolute error of 1e-7.
HWY_INLINE Vec FastSigmoid(Floats d, Vec x) {
  const Vec one = hn::Set(d, 1.f);
  const Vec power = PowerOfTwo(d, AtMost(hn::Set(d, 126.f), hn::Mul(x, hn::Set(d, -kLog2E))));
  return hn::Div(one, hn::Add(one, power));
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

/// erfc(z) = e^(-z^2) erfcx(z), with (1 + 2z) erfcx(z) a polynomial in (z - 2) / (z + 2) fitted on [0, 10]; 2 -
/// erfc(-z) below 0.
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

/// x sigmoid(x)
HWY_INLINE Vec Silu(Floats d, Vec x) { return hn::Mul(x, Sigmoid(d, x)); }

/// d Gelu / dx = Phi(x) + x phi(x)
HWY_INLINE Vec GeluSlope(Floats d, Vec x) {
  const Vec phi = hn::Mul(hn::Set(d, 0.39894228f), Exp(d, hn::Mul(hn::Set(d, -0.5f), hn::Mul(x, x))));
  return hn::MulAdd(x, phi, hn::Mul(hn::Set(d, 0.5f), Erfc(d, hn::Mul(x, hn::Set(d, -0.70710678f)))));
}

/// x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3): GELU by a hyperbolic tangent, because sigmoid(2 u) = (1 + tanh
/// u) / 2 (Hendrycks and Gimpel, 2016).
HWY_INLINE Vec GeluTanh(Floats d, Vec x) {
  const Vec cube = hn::Mul(hn::Mul(x, x), x);
  return hn::Mul(x, Sigmoid(d, hn::Mul(hn::Set(d, 1.5957691f), hn::MulAdd(hn::Set(d, 0.044715f), cube, x))));
}

/// d GeluTanh / dx = s + x s (1 - s) 2 u', s = sigmoid(2 u). Where |x| > 100, s (1 - s) is 0, and u' need not grow.
HWY_INLINE Vec GeluTanhSlope(Floats d, Vec x) {
  const Vec one = hn::Set(d, 1.f), square = hn::Mul(x, x), scale = hn::Set(d, 1.5957691f);
  const Vec s = Sigmoid(d, hn::Mul(scale, hn::MulAdd(hn::Set(d, 0.044715f), hn::Mul(square, x), x)));
  const Vec slope = hn::Mul(scale, hn::MulAdd(hn::Set(d, 0.134145f), hn::Min(square, hn::Set(d, 10000.f)), one));
  return hn::MulAdd(hn::Mul(x, hn::Mul(s, hn::Sub(one, s))), slope, s);
}

/// sin and cos: vector code up to 10,000, libm in double beyond, NaN for infinities. A lane's bits do not depend on the
/// other lanes.
template <bool kCos>
HWY_INLINE Vec SinCos(Floats d, Vec x) {
  const auto small = hn::Lt(hn::Abs(x), hn::Set(d, 10000.f));
  const Vec reduced = hn::IfThenElseZero(small, x);
  const Vec y = kCos ? hn::Cos(d, reduced) : hn::Sin(d, reduced);
  if (hn::AllTrue(d, small)) return y;
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(x, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i)
    lanes[i] = static_cast<float>(kCos ? std::cos(double{lanes[i]}) : std::sin(double{lanes[i]}));
  return hn::IfThenElse(small, y, hn::Load(d, lanes));
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
