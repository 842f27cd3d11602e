// Two linear layers as one op that never holds all of what is between them.
#pragma once

#include "qkv/kernels/linear.h"
#include "qkv/tensor/tensor.h"

namespace qkv {

/// linear(linear(x, w1, b1, activation), w2, b2) some rows at a time, forward and backward: of (rows, hidden) one
/// stretch exists at a time, and it is computed again when backward comes. x (..., in), w1 (hidden, in), w2 (out,
/// hidden), biases absent or as wide as they must be
/// -> (..., out). The value has the bits of the two layers.
Tensor feed_forward(const Tensor& x, const Tensor& w1, const Tensor& b1, const Tensor& w2, const Tensor& b2,
                    Activation activation);

}  // namespace qkv
