// Rotary positions (Su et al., 2021): queries and keys are rotated by angles proportional to the position, so that
// their product depends on the distance between them.
#pragma once

#include <cstdint>

#include "qkv/core/api.h"
#include "qkv/ops/attention.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// Rotates the pair (2c, 2c + 1) of row i by the angle (offset + i) base^(-2c / D). x (B, H, L, D) or, with heads
/// inner, (B, L, H, D); D even.
Tensor rotate(const Tensor& x, HeadAxis axis, int64_t offset = 0, double base = 10000);

}  // namespace qkv
