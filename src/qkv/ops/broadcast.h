// Two-input kernels under NumPy's broadcasting.
#pragma once

#include "qkv/kernels/elementwise.h"
#include "qkv/tensor/tensor.h"

namespace qkv {

/// kernel(a, b) element by element on the common shape; errors name the op.
Tensor broadcast_map(const char* op, kernels::Binary kernel, const Tensor& a, const Tensor& b);

}  // namespace qkv
