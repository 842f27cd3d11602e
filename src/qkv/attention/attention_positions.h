// Positions that act inside self-attention, by the distance of query and key. Each kind is a struct that may turn
// queries and keys
// (`placed`) or bias the scores (called with sizes, for Mask::relative); a new one is its struct and a line in the
// variant.
#pragma once

#include <variant>

#include "qkv/attention/mask.h"
#include "qkv/attention/positions.h"
#include "qkv/attention/relative_positions.h"

namespace qkv {

/// Rotation of queries and keys by their positions (Su et al., 2021): scores depend on the distance alone.
struct Rotary {
  /// x (B, L, H, D), whose row i stands at offset + i.
  Tensor placed(const Tensor& x, int64_t offset) const;
};

class AttentionPositions {
 public:
  AttentionPositions() = default;
  /// head_width: of a head. max_distance: of relative positions, what is farther counts as that far.
  AttentionPositions(PositionKind kind, int64_t heads, int64_t head_width, int64_t max_distance);

  /// Queries or keys (B, L, H, D), turned where positions turn them.
  Tensor placed(const Tensor& x, int64_t offset) const;
  bool turns() const { return std::holds_alternative<Rotary>(kind_); }
  /// The mask, with the biases of the distances where there are any. Query i stands at query_offset + i, key j at j.
  Mask onto(const Mask& mask, int64_t queries, int64_t keys, int64_t query_offset) const;
  bool biases() const { return std::holds_alternative<RelativeBias>(kind_) || std::holds_alternative<Alibi>(kind_); }

  void visit(auto&& f) {
    if (auto* relative = std::get_if<RelativeBias>(&kind_)) relative->visit(f);
  }

 private:
  std::variant<std::monostate, RelativeBias, Rotary, Alibi> kind_;
};

}  // namespace qkv
