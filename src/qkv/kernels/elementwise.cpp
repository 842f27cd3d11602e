// Element-wise kernels: each a functor on vectors, run by the loops of map-inl.h.
#include "qkv/kernels/elementwise.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/elementwise.cpp"
#include <hwy/foreach_target.h>

#include "qkv/kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

void AddKernel(const float* a, const float* b, float* y, int64_t n) {
  Map(a, b, y, n, [](Floats, Vec u, Vec v) HWY_ATTR { return hn::Add(u, v); });
}
void SubKernel(const float* a, const float* b, float* y, int64_t n) {
  Map(a, b, y, n, [](Floats, Vec u, Vec v) HWY_ATTR { return hn::Sub(u, v); });
}
void MulKernel(const float* a, const float* b, float* y, int64_t n) {
  Map(a, b, y, n, [](Floats, Vec u, Vec v) HWY_ATTR { return hn::Mul(u, v); });
}
void DivKernel(const float* a, const float* b, float* y, int64_t n) {
  Map(a, b, y, n, [](Floats, Vec u, Vec v) HWY_ATTR { return hn::Div(u, v); });
}
void ScaleKernel(const float* x, float s, float* y, int64_t n) {
  Map(x, y, n, [=](Floats d, Vec v) HWY_ATTR { return hn::Mul(v, hn::Set(d, s)); });
}
void ShiftKernel(const float* x, float s, float* y, int64_t n) {
  Map(x, y, n, [=](Floats d, Vec v) HWY_ATTR { return hn::Add(v, hn::Set(d, s)); });
}
void NegKernel(const float* x, float* y, int64_t n) {
  Map(x, y, n, [](Floats, Vec v) HWY_ATTR { return hn::Neg(v); });
}
void AbsKernel(const float* x, float* y, int64_t n) {
  Map(x, y, n, [](Floats, Vec v) HWY_ATTR { return hn::Abs(v); });
}
void ExpKernel(const float* x, float* y, int64_t n) {
  Map(x, y, n, [](Floats d, Vec v) HWY_ATTR { return Exp(d, v); });
}
void LogKernel(const float* x, float* y, int64_t n) {
  Map(x, y, n, [](Floats d, Vec v) HWY_ATTR { return Log(d, v); });
}
void SqrtKernel(const float* x, float* y, int64_t n) {
  Map(x, y, n, [](Floats, Vec v) HWY_ATTR { return hn::Sqrt(v); });
}
void SinKernel(const float* x, float* y, int64_t n) {
  Map(x, y, n, [](Floats d, Vec v) HWY_ATTR { return SinCos<false>(d, v); });
}
void CosKernel(const float* x, float* y, int64_t n) {
  Map(x, y, n, [](Floats d, Vec v) HWY_ATTR { return SinCos<true>(d, v); });
}
void TanhKernel(const float* x, float* y, int64_t n) {
  Map(x, y, n, [](Floats d, Vec v) HWY_ATTR { return Tanh(d, v); });
}
void SigmoidKernel(const float* x, float* y, int64_t n) {
  Map(x, y, n, [](Floats d, Vec v) HWY_ATTR { return Sigmoid(d, v); });
}
void ReluKernel(const float* x, float* y, int64_t n) {
  Map(x, y, n, [](Floats d, Vec v) HWY_ATTR { return hn::IfThenZeroElse(hn::Lt(v, hn::Zero(d)), v); });  // keeps NaN
}
void GeluKernel(const float* x, float* y, int64_t n) {
  Map(x, y, n, [](Floats d, Vec v) HWY_ATTR { return Gelu(d, v); });
}
void GeluTanhKernel(const float* x, float* y, int64_t n) {
  Map(x, y, n, [](Floats d, Vec v) HWY_ATTR { return GeluTanh(d, v); });
}
void SiluKernel(const float* x, float* y, int64_t n) {
  Map(x, y, n, [](Floats d, Vec v) HWY_ATTR { return Silu(d, v); });
}
void ClampKernel(const float* x, float low, float high, float* y, int64_t n) {
  Map(x, y, n, [=](Floats d, Vec v) HWY_ATTR {
    const Vec least = hn::Set(d, low), most = hn::Set(d, high);
    return hn::IfThenElse(hn::Lt(v, least), least, hn::IfThenElse(hn::Gt(v, most), most, v));  // keeps NaN
  });
}
void PowKernel(const float* x, float exponent, float* y, int64_t n) {
  if (exponent == 2) return Map(x, y, n, [](Floats, Vec v) HWY_ATTR { return hn::Mul(v, v); });
  if (exponent == 1) return Map(x, y, n, [](Floats, Vec v) HWY_ATTR { return v; });
  for (int64_t i = 0; i < n; ++i) y[i] = std::pow(x[i], exponent);
}

void AbsBackXKernel(const float* x, const float* dy, float* dx, int64_t n) {
  Map(x, dy, dx, n, [](Floats d, Vec v, Vec g) HWY_ATTR {
    const Vec signed_g = hn::IfThenElse(hn::Lt(v, hn::Zero(d)), hn::Neg(g), g);
    return hn::IfThenZeroElse(hn::Eq(v, hn::Zero(d)), signed_g);
  });
}
void TanhBackYKernel(const float* y, const float* dy, float* dx, int64_t n) {
  Map(y, dy, dx, n, [](Floats d, Vec v, Vec g) HWY_ATTR { return hn::Mul(g, hn::NegMulAdd(v, v, hn::Set(d, 1.f))); });
}
void SigmoidBackYKernel(const float* y, const float* dy, float* dx, int64_t n) {
  Map(y, dy, dx, n, [](Floats, Vec v, Vec g) HWY_ATTR { return hn::Mul(g, hn::NegMulAdd(v, v, v)); });
}
void ReluBackYKernel(const float* y, const float* dy, float* dx, int64_t n) {
  Map(y, dy, dx, n, [](Floats d, Vec v, Vec g) HWY_ATTR { return hn::IfThenElseZero(hn::Gt(v, hn::Zero(d)), g); });
}
void GeluBackXKernel(const float* x, const float* dy, float* dx, int64_t n) {
  Map(x, dy, dx, n, [](Floats d, Vec v, Vec g) HWY_ATTR { return hn::Mul(g, GeluSlope(d, v)); });
}
void GeluTanhBackXKernel(const float* x, const float* dy, float* dx, int64_t n) {
  Map(x, dy, dx, n, [](Floats d, Vec v, Vec g) HWY_ATTR { return hn::Mul(g, GeluTanhSlope(d, v)); });
}
void SiluBackXKernel(const float* x, const float* dy, float* dx, int64_t n) {
  Map(x, dy, dx, n, [](Floats d, Vec v, Vec g) HWY_ATTR {
    const Vec one = hn::Set(d, 1.f), s = Sigmoid(d, v);
    return hn::Mul(g, hn::Mul(s, hn::MulAdd(v, hn::Sub(one, s), one)));
  });
}
void ClampBackXKernel(const float* x, const float* dy, float low, float high, float* dx, int64_t n) {
  Map(x, dy, dx, n, [=](Floats d, Vec v, Vec g) HWY_ATTR {
    return hn::IfThenElseZero(hn::And(hn::Ge(v, hn::Set(d, low)), hn::Le(v, hn::Set(d, high))), g);
  });
}
void SqrtBackYKernel(const float* y, const float* dy, float* dx, int64_t n) {
  Map(y, dy, dx, n, [](Floats d, Vec v, Vec g) HWY_ATTR { return hn::Div(hn::Mul(g, hn::Set(d, 0.5f)), v); });
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

#define QKV_UNARY(name, Kernel) \
  HWY_EXPORT(Kernel);           \
  void name(const float* x, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(Kernel)(x, y, n); }
#define QKV_BINARY(name, Kernel) \
  HWY_EXPORT(Kernel);            \
  void name(const float* a, const float* b, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(Kernel)(a, b, y, n); }

QKV_BINARY(add, AddKernel)
QKV_BINARY(sub, SubKernel)
QKV_BINARY(mul, MulKernel)
QKV_BINARY(div, DivKernel)
QKV_UNARY(neg, NegKernel)
QKV_UNARY(abs, AbsKernel)
QKV_UNARY(exp, ExpKernel)
QKV_UNARY(log, LogKernel)
QKV_UNARY(sqrt, SqrtKernel)
QKV_UNARY(sin, SinKernel)
QKV_UNARY(cos, CosKernel)
QKV_UNARY(tanh, TanhKernel)
QKV_UNARY(sigmoid, SigmoidKernel)
QKV_UNARY(relu, ReluKernel)
QKV_UNARY(gelu, GeluKernel)
QKV_UNARY(gelu_tanh, GeluTanhKernel)
QKV_UNARY(silu, SiluKernel)
QKV_BINARY(abs_back_x, AbsBackXKernel)
QKV_BINARY(tanh_back_y, TanhBackYKernel)
QKV_BINARY(sigmoid_back_y, SigmoidBackYKernel)
QKV_BINARY(relu_back_y, ReluBackYKernel)
QKV_BINARY(gelu_back_x, GeluBackXKernel)
QKV_BINARY(gelu_tanh_back_x, GeluTanhBackXKernel)
QKV_BINARY(silu_back_x, SiluBackXKernel)
QKV_BINARY(sqrt_back_y, SqrtBackYKernel)

HWY_EXPORT(ScaleKernel);
void scale(const float* x, float s, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(ScaleKernel)(x, s, y, n); }
HWY_EXPORT(ShiftKernel);
void shift(const float* x, float s, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(ShiftKernel)(x, s, y, n); }
HWY_EXPORT(ClampKernel);
void clamp(const float* x, float low, float high, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ClampKernel)(x, low, high, y, n);
}
HWY_EXPORT(ClampBackXKernel);
void clamp_back_x(const float* x, const float* dy, float low, float high, float* dx, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ClampBackXKernel)(x, dy, low, high, dx, n);
}
HWY_EXPORT(PowKernel);
void pow(const float* x, float exponent, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(PowKernel)(x, exponent, y, n); }

}  // namespace qkv::kernels
#endif
