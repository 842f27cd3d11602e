// Positions that act inside self-attention, by the distance between query and key. Each kind is a struct that rotates
// queries and keys (`placed`) or biases the scores (called with sizes, for Mask::relative); a new kind is a struct and
// a line in the variant.
#pragma once

#include <variant>

#include "qkv/attention/mask.h"
#include "qkv/attention/positions.h"
#include "qkv/attention/relative_positions.h"
#include "qkv/core/api.h"
#include "qkv/ops/rotary.h"

namespace QKV_API qkv {

/// Rotates queries and keys by their positions (Su et al., 2021): scores depend on the distance alone.
struct Rotary {
  Rotation rotation;

  /// x (B, L, H, D), with row i at position offset + i.
  Tensor placed(const Tensor& x, int64_t offset) const;
};

class AttentionPositions {
 public:
  AttentionPositions() = default;
  /// head_width: width of one head. max_distance: for relative positions; larger distances count as this one.
  /// rotation: for rotary ones.
  AttentionPositions(PositionKind kind, int64_t heads, int64_t head_width, int64_t max_distance,
                     const Rotation& rotation);

  /// Queries or keys (B, L, H, D), rotated if the positions are rotary.
  Tensor placed(const Tensor& x, int64_t offset) const;
  bool turns() const { return std::holds_alternative<Rotary>(kind_); }
  /// The mask with the distance biases, if any, added. Query i is at position query_offset + i, key j at j.
  Mask onto(const Mask& mask, int64_t queries, int64_t keys, int64_t query_offset) const;
  bool biases() const { return std::holds_alternative<RelativeBias>(kind_) || std::holds_alternative<Alibi>(kind_); }

  void visit(auto&& f) {
    if (auto* relative = std::get_if<RelativeBias>(&kind_)) relative->visit(f);
  }

 private:
  std::variant<std::monostate, RelativeBias, Rotary, Alibi> kind_;
};

}  // namespace qkv
