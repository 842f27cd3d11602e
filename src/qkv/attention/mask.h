// Masks by name: which keys a query may see. Never a bare bool, since the ecosystem disagrees about what `true` means.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "qkv/core/api.h"
#include "qkv/ops/attention_plan.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// Sizes of an attention's weights, and how many axes the caller's tensors had: a mask with three axes means (B, Lq,
/// Lk) without heads, and is refused with heads.
struct MaskSizes {
  int64_t batch, heads, queries, keys;
  int rank = 4;
};

class Mask;

/// A mask that is causal, or has lengths, or both, or nothing.
struct PlainMask {
  std::optional<int64_t> offset = {};  // causal: query i sees keys 0 .. i + offset
  Ids lengths = {};                    // (B), or absent
  Mask mask() const;
};

class Mask {
 public:
  static constexpr int64_t kUnlimited = std::numeric_limits<int32_t>::max();

  /// Every query sees every key.
  static Mask none() { return {}; }
  /// Query i of batch row b sees the first lengths[b], or lengths[b, i], keys: (B) or (B, Lq). A length beyond the
  /// number of keys means all.
  static Mask valid_lens(const Ids& lengths);
  /// Query i sees keys 0 .. i + offset, for any numbers of queries and keys.
  static Mask causal(int64_t offset = 0);
  /// Query i sees keys i - left .. i + right.
  static Mask window(int64_t left, int64_t right);
  /// Query i of batch row b sees keys 0 .. max(i, lengths[b] - 1): both directions inside the prefix, causal after it.
  /// (B)
  static Mask prefix(const Ids& lengths);
  /// A query sees a key where `seen` is 1, or where `hidden` is 0; other values are refused. (Lq, Lk), (B, Lq, Lk)
  /// without heads, or (B, H, Lq, Lk); sizes of 1 broadcast.
  static Mask keep(const Tensor& seen);
  static Mask keep(const Ids& seen);
  static Mask drop(const Tensor& hidden);
  static Mask drop(const Ids& hidden);
  /// Added to the scores, with a gradient if tracked; -inf hides. Shapes as for keep.
  static Mask bias(const Tensor& added);

  /// Added to the scores by distance alone: element [h, j - i + Lq - 1] for query i and key j, with a gradient if
  /// tracked; -inf hides. (1 or H, Lq + Lk - 1), never expanded to (Lq, Lk).
  static Mask relative(const Tensor& diagonals);

  /// Shows what both masks show; biases add up.
  Mask operator&(const Mask& other) const;

  /// Whether nothing is hidden and nothing added.
  bool is_none() const;
  /// The same as a PlainMask; absent if it hides or adds something else.
  std::optional<PlainMask> plain() const;
  /// Compiled for these sizes; if a shape does not fit, the error names `op` and both shapes.
  AttentionPlan plan(const char* op, const MaskSizes& sizes) const;

 private:
  bool has_intervals() const;
  void check_lengths(const char* op, const MaskSizes& sizes) const;
  void plan_intervals(AttentionPlan& plan, const MaskSizes& sizes) const;
  void plan_keep(const char* op, AttentionPlan& plan, const MaskSizes& sizes) const;

  // Intersections of these are of the same kind, so a mask has a fixed size however it was composed.
  int64_t left_ = kUnlimited, right_ = kUnlimited;  // key in [i - left, i + right]
  Ids lengths_;                                     // (B)
  Ids row_lengths_;                                 // (B, Lq)
  Ids prefix_;                                      // (B)
  Tensor keep_;                                     // 0 or 1
  Tensor bias_;
  Tensor relative_;  // (1 or H, Lq + Lk - 1)
};

}  // namespace qkv
