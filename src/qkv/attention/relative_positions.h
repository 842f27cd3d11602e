// Positions as score biases by distance. Both are called with the sizes of an attention; the result goes into its mask:
//
//   attend(ScaledDot{}, q, k, v, Mask::causal() & Mask::relative(bias(n, n)));
#pragma once

#include <cstdint>

#include "qkv/core/api.h"
#include "qkv/nn/module.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// A learned number per head and distance up to max_distance; larger distances count as that one (Shaw et al., 2018, as
/// a score bias). Initialised to 0: no key is preferred.
struct RelativeBias {
  Tensor table;  // (H, 2 max_distance + 1): element [h, distance + max_distance], distance = key - query

  RelativeBias() = default;
  RelativeBias(int64_t heads, int64_t max_distance);
  /// (H, Lq + Lk - 1) for Mask::relative. Query i is at position query_offset + i, key j at j.
  Tensor operator()(int64_t queries, int64_t keys, int64_t query_offset = 0) const;
  void visit(auto&& f) { f("table", table); }
};

/// Attention with linear biases (Press et al., 2022): -slope |distance|, nothing learned.
struct Alibi {
  int64_t heads = 1;

  /// (H): 2^(-8 (h + 1) / H) for a power of two. Otherwise the slopes for the largest power of two below H, then every
  /// other slope for twice that many heads, as in the paper's code.
  Tensor slopes() const;
  /// (H, Lq + Lk - 1) for Mask::relative. Query i is at position query_offset + i, key j at j.
  Tensor operator()(int64_t queries, int64_t keys, int64_t query_offset = 0) const;
  void visit(auto&&) {}
};

}  // namespace qkv
