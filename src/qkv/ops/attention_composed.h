// Attention in plain steps on the whole (B, H, Lq, Lk) score matrix: the oracle of the fused ops, and the path of
// scorers that only know their scores.
#pragma once

#include <cstdint>

#include "qkv/ops/attention.h"

namespace qkv {

struct MaskedSoftmax {
  Tensor weights;      // (B, H, Lq, Lk): exactly 0 where a key is not seen, whatever its score
  int64_t empty_rows;  // rows that see nothing, or nothing but scores of -inf: all 0
};

/// softmax on the last axis over the keys that the plan shows; of its bias only -inf counts, as masking. scores (B, H,
/// Lq, Lk)
MaskedSoftmax masked_softmax(const Tensor& scores, const AttentionPlan& plan);

/// weights times values, where a key that is not seen contributes nothing even if its value is NaN.
/// weights (B, H, Lq, Lk), v (B, H, Lk, Dv) -> (B, H, Lq, Dv)
Tensor pool_values(const Tensor& weights, const Tensor& v, const AttentionPlan& plan);

/// 0 or 1 / (1 - rate) for every weight, the decisions of the fused kernels: (B, H, Lq, Lk). A constant.
Tensor dropout_factors(const Shape& weights, const AttentionDropout& dropout);

/// Whether no element is NaN or infinite.
bool all_finite(const Tensor& x);

}  // namespace qkv
