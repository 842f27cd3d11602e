// Positions as biases of the scores by distance. Both are called with the sizes of an attention, and what they give
// goes into its mask:
//
//   attend(ScaledDot{}, q, k, v, Mask::causal() & Mask::relative(bias(n, n)));
#pragma once

#include <cstdint>

#include "qkv/nn/module.h"
#include "qkv/tensor/tensor.h"

namespace qkv {

/// A learned number for each head and each distance up to max_distance; what is farther counts as that far (Shaw et
/// al., 2018, as a bias of the scores). Starts at 0: no key is preferred.
struct RelativeBias {
  Tensor table;  // (H, 2 max_distance + 1): element [h, distance + max_distance], distance = key - query

  RelativeBias() = default;
  RelativeBias(int64_t heads, int64_t max_distance);
  /// (H, Lq + Lk - 1) for Mask::relative. Query i stands at query_offset + i, key j at j.
  Tensor operator()(int64_t queries, int64_t keys, int64_t query_offset = 0) const;
  void visit(auto&& f) { f("table", table); }
};

/// Attention with linear biases (Press et al., 2022): -slope |distance|, nothing learned.
struct Alibi {
  int64_t heads = 1;

  /// (H): 2^(-8 (h + 1) / H) for a power of two. Otherwise the slopes of the largest power of two below H, and then
  /// every other slope of twice that many, as the paper's code does.
  Tensor slopes() const;
  /// (H, Lq + Lk - 1) for Mask::relative. Query i stands at query_offset + i, key j at j.
  Tensor operator()(int64_t queries, int64_t keys, int64_t query_offset = 0) const;
  void visit(auto&&) {}
};

}  // namespace qkv
