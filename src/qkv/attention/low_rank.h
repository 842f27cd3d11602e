// Attention through a fixed number of rows that stand for all keys: Linformer and Nystromformer. Neither can be causal.
#pragma once

#include "qkv/attention/mask.h"
#include "qkv/core/api.h"
#include "qkv/nn/module.h"
#include "qkv/tensor/run.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// softmax(q (E k)^T / sqrt(D)) (F v) with learned E and F over positions (Wang et al., 2020). A longer text than there
/// are positions is refused.
struct LowRank {
  Tensor keys, values;  // E and F: (rank, positions)

  LowRank() = default;
  LowRank(int64_t rank, int64_t positions, const Rng& rng);
  /// q (B, Lq, H, D), k and v (B, Lk, H, D) -> (B, Lq, H, D)
  Tensor operator()(const Tensor& q, const Tensor& k, const Tensor& v, const PlainMask& mask) const;
  void visit(auto&& f) {
    f("keys", keys);
    f("values", values);
  }
};

/// softmax(q kl^T) Z softmax(ql k^T) v with landmarks ql and kl, the means of equal segments of the text, and Z the
/// pseudo-inverse of softmax(ql kl^T) by six steps of an iteration (Xiong et al., 2021); all products over sqrt(D). A
/// text with fewer tokens than landmarks repeats tokens; its result is that of exact attention, up to the iteration.
struct Nystrom {
  int64_t landmarks = 32;
  int64_t steps = 6;

  /// q, k and v (B, L, H, D) -> (B, L, H, D); queries and keys are the same text.
  Tensor operator()(const Tensor& q, const Tensor& k, const Tensor& v, const PlainMask& mask) const;
  void visit(auto&&) {}
};

/// The Moore-Penrose inverse of matrices (..., m, m) with rows that are not negative and add up to 1, by `steps` steps
/// of Z <- Z (13 I - A Z (15 I - A Z (7 I - A Z))) / 4.
Tensor pseudo_inverse(const Tensor& a, int64_t steps);

}  // namespace qkv
