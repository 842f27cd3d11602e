// Softmax over rows of a matrix (rows, width), width >= 1.
#pragma once

#include <cstdint>

namespace qkv::kernels {

/// y = e^(x - max x) / sum; a row with NaN, +inf or only -inf is NaN; -inf beside a finite value gives exactly 0.
void softmax(const float* x, float* y, int64_t rows, int64_t width);
/// dx = y (dy - sum(y dy))
void softmax_back(const float* y, const float* dy, float* dx, int64_t rows, int64_t width);
/// y = x - max x - log sum e^(x - max x)
void log_softmax(const float* x, float* y, int64_t rows, int64_t width);
/// dx = dy - e^y sum(dy)
void log_softmax_back(const float* y, const float* dy, float* dx, int64_t rows, int64_t width);

}  // namespace qkv::kernels
