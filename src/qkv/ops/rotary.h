// Rotary positions (Su et al., 2021): queries and keys are rotated by angles proportional to the position, so that
// their product depends on the distance between them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "qkv/core/api.h"
#include "qkv/ops/attention.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// Which two elements of a head are rotated together: 2c and 2c + 1, as in the paper, or c and c + D / 2, as Hugging
/// Face's models have them.
enum class RotaryPairs { neighbours, halves };
constexpr std::array<std::string_view, 2> names(RotaryPairs) { return {"neighbours", "halves"}; }

struct Rotation {
  double base = 10000;
  RotaryPairs pairs = RotaryPairs::neighbours;
};

/// Rotates pair c of row i by the angle (offset + i) base^(-2c / D). x (B, H, L, D) or, with heads inner, (B, L, H, D);
/// D even.
Tensor rotate(const Tensor& x, HeadAxis axis, int64_t offset = 0, const Rotation& rotation = {});

}  // namespace qkv
