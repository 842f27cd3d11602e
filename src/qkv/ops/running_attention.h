// Causal attention whose weights are dot products: a running sum, O(n) in time and memory.
#pragma once

#include <cstdint>

#include "qkv/core/api.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// y_i = sum over j <= i + offset of (q_i . k_j) v_j: q (B, H, Lq, F), k (B, H, Lk, F), v (B, H, Lk, D) -> (B, H, Lq,
/// D). Nothing is normalised, and no result depends on a key that it does not see. offset is 0 or more.
Tensor running_attention(const Tensor& q, const Tensor& k, const Tensor& v, int64_t offset = 0);

}  // namespace qkv
