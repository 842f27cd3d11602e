// Two linear layers as one op that never holds all of the hidden values.
#pragma once

#include "qkv/core/api.h"
#include "qkv/core/forms.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// linear(linear(x, w1, b1, activation), w2, b2), a block of rows at a time, forward and backward: only one block of
/// the hidden values exists at a time, and backward recomputes it. x (..., in), w1 (hidden, in), b1 (hidden) or absent,
/// w2 (out, hidden), b2 (out) or absent -> (..., out). The result is bit-identical to the two layers.
Tensor feed_forward(const Tensor& x, const Tensor& w1, const Tensor& b1, const Tensor& w2, const Tensor& b2,
                    Activation activation);

}  // namespace qkv
