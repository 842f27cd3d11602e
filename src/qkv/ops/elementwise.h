// Differentiable functions of single elements, with NumPy's broadcasting where there are two inputs.
#pragma once

#include "qkv/core/api.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);

/// x * factor and x + term, for plain numbers.
Tensor scale(const Tensor& x, float factor);
Tensor shift(const Tensor& x, float term);

Tensor neg(const Tensor& x);
/// |x|; its derivative at 0 is 0.
Tensor abs(const Tensor& x);
/// x^exponent.
Tensor pow(const Tensor& x, float exponent);
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tanh(const Tensor& x);
/// 1 / (1 + e^-x).
Tensor sigmoid(const Tensor& x);
/// max(x, 0); its derivative at 0 is 0.
Tensor relu(const Tensor& x);
/// x Phi(x), Phi the normal distribution function.
Tensor gelu(const Tensor& x);
/// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2: close to gelu, as GPT-2 computes it.
Tensor gelu_tanh(const Tensor& x);
/// x / (1 + e^-x), also called swish.
Tensor silu(const Tensor& x);
/// x no smaller than low and no larger than high. Its derivative is 1 at both limits, 0 outside.
Tensor clamp(const Tensor& x, float low, float high);

/// The sum of x over the axes that broadcasting added or stretched, so that the result has `shape`; not recorded.
Tensor sum_to(Tensor x, const Shape& shape);

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator+(const Tensor& a, float b) { return shift(a, b); }
inline Tensor operator-(const Tensor& a, float b) { return shift(a, -b); }
inline Tensor operator*(const Tensor& a, float b) { return scale(a, b); }
inline Tensor operator*(float a, const Tensor& b) { return scale(b, a); }
inline Tensor operator-(const Tensor& x) { return neg(x); }
inline Tensor operator+(float a, const Tensor& b) { return shift(b, a); }
inline Tensor operator-(float a, const Tensor& b) { return shift(neg(b), a); }
inline Tensor operator/(const Tensor& a, float b) { return div(a, scalar(b)); }
inline Tensor operator/(float a, const Tensor& b) { return div(scalar(a), b); }

/// a = a + b and so on: a new tensor, so copies of a keep their values. Refused for a parameter, which would become a
/// constant.
Tensor& operator+=(Tensor& a, const Tensor& b);
Tensor& operator-=(Tensor& a, const Tensor& b);
Tensor& operator*=(Tensor& a, const Tensor& b);
Tensor& operator/=(Tensor& a, const Tensor& b);
Tensor& operator+=(Tensor& a, float b);
Tensor& operator-=(Tensor& a, float b);
Tensor& operator*=(Tensor& a, float b);
Tensor& operator/=(Tensor& a, float b);

}  // namespace qkv
