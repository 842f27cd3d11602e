// Attention whose weights are dot products of positive features: O(n) in time and memory, also causal.
#pragma once

#include "qkv/attention/mask.h"
#include "qkv/core/api.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// sum_j (fq_i . fk_j) v_j / sum_j (fq_i . fk_j) over the keys that i sees; 0 if it sees none. fq (B, H, Lq, F), fk (B,
/// H, Lk, F), v (B, H, Lk, D) -> (B, H, Lq, D). Causal: a running sum.
Tensor pooled_by_features(const Tensor& fq, const Tensor& fk, const Tensor& v, const PlainMask& mask);

/// Features elu(x) + 1 (Katharopoulos et al., 2020).
struct LinearAttention {
  static Tensor features(const Tensor& x);
  /// q (B, H, Lq, D), k (B, H, Lk, D), v (B, H, Lk, Dv) -> (B, H, Lq, Dv)
  Tensor operator()(const Tensor& q, const Tensor& k, const Tensor& v, const PlainMask& mask) const {
    return pooled_by_features(features(q), features(k), v, mask);
  }
  void visit(auto&&) {}
};

/// Positive orthogonal random features (Choromanski et al., 2021): fq . fk estimates e^(q . k / sqrt(D)) without bias.
struct RandomFeatures {
  Tensor directions;  // (F, D); a constant

  RandomFeatures() = default;
  RandomFeatures(int64_t features, int64_t width, uint64_t seed);
  /// e^(w . x - |x|^2 / 2) for x = q / D^(1/4), up to a factor: one per query, one for all keys.
  Tensor query_features(const Tensor& q) const;
  Tensor key_features(const Tensor& k) const;
  Tensor operator()(const Tensor& q, const Tensor& k, const Tensor& v, const PlainMask& mask) const {
    return pooled_by_features(query_features(q), key_features(k), v, mask);
  }
  void visit(auto&&) {}

 private:
  Tensor projected(const Tensor& x) const;
  float shift_ = 0;  // taken from the exponents of keys, so that none overflows
};

}  // namespace qkv
