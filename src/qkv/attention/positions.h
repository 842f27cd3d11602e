// How tokens know their places; positions as vectors that are added to embeddings.
#pragma once

#include <array>
#include <string_view>

#include "qkv/tensor/tensor.h"

namespace qkv {

/// Sinusoidal and learned vectors are added to the embeddings; the others work inside self-attention, by the distance of query and key:
/// a learned bias (relative_positions.h), a rotation of queries and keys (ops/rotary.h), a bias that falls linearly.
enum class PositionKind { none, sinusoidal, learned, relative, rotary, alibi };
constexpr std::array<std::string_view, 6> names(PositionKind) { return {"none", "sinusoidal", "learned", "relative", "rotary", "alibi"}; }

/// p[i, 2j] = sin((offset + i) / 10000^(2j / width)), p[i, 2j + 1] the cosine: (count, width), computed in double (Vaswani et al., 2017).
Tensor sinusoidal_positions(int64_t count, int64_t width, int64_t offset = 0);

/// (2, 2): turns the pair (p[i, 2j], p[i, 2j + 1]) into that of position i + distance, whatever i is.
Tensor position_shift(int64_t distance, int64_t pair, int64_t width);

}  // namespace qkv
