// The kinds of positions inside attention, one case each.
#include "qkv/attention/attention_positions.h"

#include "qkv/core/check.h"

namespace qkv {

Tensor Rotary::placed(const Tensor& x, int64_t offset) const { return rotate(x, HeadAxis::inner, offset, rotation); }

AttentionPositions::AttentionPositions(PositionKind kind, int64_t heads, int64_t head_width, int64_t max_distance,
                                       const Rotation& rotation) {
  switch (kind) {
    case PositionKind::none:
    case PositionKind::sinusoidal:
    case PositionKind::learned:
      break;
    case PositionKind::relative:
      kind_ = RelativeBias(heads, max_distance);
      break;
    case PositionKind::rotary:
      check(head_width % 2 == 0, "[multi_head] rotary positions rotate pairs: the head width ", head_width, " is odd");
      kind_ = Rotary{rotation};
      break;
    case PositionKind::alibi:
      kind_ = Alibi{heads};
      break;
  }
}

Tensor AttentionPositions::placed(const Tensor& x, int64_t offset) const {
  const auto* rotary = std::get_if<Rotary>(&kind_);
  return rotary ? rotary->placed(x, offset) : x;
}

Mask AttentionPositions::onto(const Mask& mask, int64_t queries, int64_t keys, int64_t query_offset) const {
  if (queries == 0 || keys == 0) return mask;
  if (const auto* relative = std::get_if<RelativeBias>(&kind_))
    return mask & Mask::relative((*relative)(queries, keys, query_offset));
  if (const auto* alibi = std::get_if<Alibi>(&kind_))
    return mask & Mask::relative((*alibi)(queries, keys, query_offset));
  return mask;
}

}  // namespace qkv
