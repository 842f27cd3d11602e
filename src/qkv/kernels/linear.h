// The steps after the product in a linear layer: bias and activation in one pass, and the column sums of its gradient.
#pragma once

#include <cstdint>

#include "qkv/core/forms.h"

namespace qkv::kernels {

/// A part of a row-major matrix.
struct Window {
  int64_t rows, columns, stride;
};

/// z <- z + bias, y <- activation(z), row by row; bias (columns) may be null. With y == z only y remains.
void bias_activation(Activation activation, float* z, float* y, const float* bias, Window window);

/// y[j] <- sum_i x[i, j], plus y[j] if add: rows in ascending order, 64 at a time. The bits of a column depend on that
/// column alone.
void column_sum(const float* x, Window window, float* y, bool add);

}  // namespace qkv::kernels
