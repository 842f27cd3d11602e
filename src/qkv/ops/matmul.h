// Matrix products: batched matmul, and linear with bias and activation in one.
#pragma once

#include "qkv/core/api.h"
#include "qkv/core/forms.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// op(a) op(b) over the last two axes: (..., M, K) x (..., K, N) -> (..., M, N); a transposed operand is (..., K, M) or
/// (..., N, K). The leading axes are equal, or one operand has none (or only ones) and is shared by the whole batch.
Tensor matmul(const Tensor& a, const Tensor& b, Transpose transpose_a = Transpose::no,
              Transpose transpose_b = Transpose::no);

/// activation(x weight^T + bias): x (..., in), weight (out, in), bias (out) or absent -> (..., out).
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, Activation activation = Activation::none);

}  // namespace qkv
