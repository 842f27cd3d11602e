// Element by element: y may be the same array as an input.
#pragma once

#include <cstdint>

namespace qkv::kernels {

using Unary = void(const float* x, float* y, int64_t n);
using Binary = void(const float* a, const float* b, float* y, int64_t n);

Binary add, sub, mul, div;
/// y = x * s, y = x + s
void scale(const float* x, float s, float* y, int64_t n);
void shift(const float* x, float s, float* y, int64_t n);

Unary neg, abs, exp, log, sqrt, sin, cos, tanh, sigmoid, relu, gelu, gelu_tanh, silu;
void pow(const float* x, float exponent, float* y, int64_t n);
/// y = min(max(x, low), high); NaN stays.
void clamp(const float* x, float low, float high, float* y, int64_t n);

// Pullbacks: dx = dy * derivative, from the input x or from the output y, whichever is kept.
Binary abs_back_x;                                  // (x, dy): dy * sign(x)
Binary tanh_back_y;                                 // (y, dy): dy * (1 - y^2)
Binary sigmoid_back_y;                              // (y, dy): dy * y * (1 - y)
Binary relu_back_y;                                 // (y, dy): dy where y > 0
Binary gelu_back_x, gelu_tanh_back_x, silu_back_x;  // (x, dy)
Binary sqrt_back_y;                                 // (y, dy): dy / (2 y)
void clamp_back_x(const float* x, const float* dy, float low, float high, float* dx, int64_t n);

}  // namespace qkv::kernels
