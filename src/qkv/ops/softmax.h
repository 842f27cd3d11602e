// Softmax and its logarithm on the last axis.
#pragma once

#include "qkv/core/api.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// y = e^x / sum e^x on the last axis. (..., D) -> (..., D). A key masked by -inf gets exactly 0.
Tensor softmax(const Tensor& x);
/// log softmax(x), without forming the softmax. (..., D) -> (..., D)
Tensor log_softmax(const Tensor& x);

}  // namespace qkv
