// Kinds of positions, and positions as vectors that are added to embeddings.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "qkv/core/api.h"
#include "qkv/core/rng.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// Sinusoidal and learned vectors are added to the embeddings (AddedPositions); the others act inside self-attention,
/// by the distance between query and key (attention_positions.h).
enum class PositionKind { none, sinusoidal, learned, relative, rotary, alibi };
constexpr std::array<std::string_view, 6> names(PositionKind) {
  return {"none", "sinusoidal", "learned", "relative", "rotary", "alibi"};
}

/// Where the sine and the cosine of a frequency are: beside each other, or sines in the first half of the columns and
/// cosines in the second, as in Marian's models.
enum class Waves { pairs, halves };
constexpr std::array<std::string_view, 2> names(Waves) { return {"pairs", "halves"}; }

/// p[i, 2j] = sin((offset + i) / 10000^(2j / width)), p[i, 2j + 1] the cosine: (count, width), computed in double
/// (Vaswani et al., 2017). With halves, the sine is p[i, j], the cosine p[i, (width + 1) / 2 + j].
Tensor sinusoidal_positions(int64_t count, int64_t width, int64_t offset = 0, Waves waves = Waves::pairs);

/// (2, 2): rotates the pair (p[i, 2j], p[i, 2j + 1]) into that of position i + distance, for any i.
Tensor position_shift(int64_t distance, int64_t pair, int64_t width);

/// The vectors that are added to embeddings; none for kinds that act elsewhere.
struct AddedPositions {
  Tensor table;  // (positions, width) if learned, else absent
  Tensor ready;  // the first sinusoidal positions, computed once; a constant
  PositionKind kind = PositionKind::none;
  int64_t width = 0;
  Waves waves = Waves::pairs;

  AddedPositions() = default;
  /// `count`: rows of a learned table.
  AddedPositions(PositionKind kind, int64_t count, int64_t width, const Rng& rng, Waves waves = Waves::pairs);
  /// Computes `ready`, if the positions are sinusoidal; without it they are computed for every call.
  void prepare();
  /// (count, width) for tokens at offset, offset + 1, ...; absent if nothing is added.
  Tensor operator()(int64_t count, int64_t offset) const;
  /// How many positions there are, if limited.
  std::optional<int64_t> end() const { return table.defined() ? std::optional(table.size(0)) : std::nullopt; }
};

}  // namespace qkv
