// Attention in plain steps on the whole (B, H, Lq, Lk) score matrix: the oracle of the fused ops, and the path for
// scorers without a kernel form.
#pragma once

#include <cstdint>

#include "qkv/ops/attention.h"

namespace qkv {

struct MaskedSoftmax {
  Tensor weights;      // (B, H, Lq, Lk): exactly 0 where a key is not seen, for any score
  int64_t empty_rows;  // rows that see nothing, or only scores of -inf: all 0
};

/// softmax on the last axis over the keys that the plan shows. Its bias is not added here; a bias of -inf masks. scores
/// (B, H, Lq, Lk)
MaskedSoftmax masked_softmax(const Tensor& scores, const AttentionPlan& plan);

/// weights times values; a key that is not seen contributes nothing, even if its value is NaN.
/// weights (B, H, Lq, Lk), v (B, H, Lk, Dv) -> (B, H, Lq, Dv)
Tensor pool_values(const Tensor& weights, const Tensor& v, const AttentionPlan& plan);

/// 0 or 1 / (1 - rate) for every weight, decided as in the fused kernels: (B, H, Lq, Lk). A constant.
Tensor dropout_factors(const Shape& weights, const AttentionDropout& dropout);

/// Whether no element is NaN or infinite.
bool all_finite(const Tensor& x);

}  // namespace qkv
