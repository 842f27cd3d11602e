// Any attention_kind as one value: what a multi-head attention uses instead of attend.
#pragma once

#include <memory>
#include <variant>

#include "qkv/attention/feature_attention.h"
#include "qkv/attention/key_pattern.h"
#include "qkv/attention/low_rank.h"
#include "qkv/core/api.h"

namespace QKV_API qkv {

/// Weights are those of the scaled dot product, except for linear. Weights are never dropped.
class LongAttention {
 public:
  /// Exact: nothing is done here.
  LongAttention() = default;
  LongAttention(const AttentionKindOptions& options, int64_t head_width, const Rng& rng);

  AttentionKind kind() const { return options_.kind; }
  bool exact() const { return options_.kind == AttentionKind::exact; }
  const AttentionKindOptions& options() const { return options_; }
  /// The keys of a sparse kind, else null.
  const KeyPattern* pattern() const { return std::get_if<KeyPattern>(&form_); }

  /// q (B, Lq, H, D), k and v (B, Lk, Hk, D) -> (B, Lq, H, D). The mask may be causal, or have lengths, or both. The
  /// run's probe gets the weights that the output has in effect: f is linear in v, and f(q, k, identity) are its
  /// weights, which for linformer and nystrom may be negative. It may edit them.
  Tensor operator()(const Tensor& q, const Tensor& k, const Tensor& v, const Mask& mask, const Run& run) const;

  void visit(auto&& f) {
    if (auto* low_rank = std::get_if<LowRank>(&form_)) low_rank->visit(f);
  }

 private:
  Tensor pooled(const Tensor& q, const Tensor& k, const Tensor& v, const PlainMask& mask) const;
  Tensor weights(const Tensor& q, const Tensor& k, const PlainMask& mask) const;
  AttentionKindOptions options_;
  std::variant<std::monostate, KeyPattern, LinearAttention, RandomFeatures, LowRank, Nystrom> form_;
};

}  // namespace qkv
