// The compiled mask of an attention: an interval of keys per row, a dense keep, biases.
#pragma once

#include <cstdint>
#include <limits>

#include "qkv/core/api.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

namespace kernels {
struct AttentionMask;
}  // namespace kernels

/// 0 or 1 for every query-key pair: (1 or B, 1 or H, Lq, Lk).
struct KeepMap {
  Shape shape;
  Buffer bytes;
  const uint8_t* ptr() const { return reinterpret_cast<const uint8_t*>(bytes.data()); }
};

/// What one row sees.
struct PlanRow {
  int64_t begin, end;
  const uint8_t* keep;    // null: all
  const float* bias;      // null: none
  const float* relative;  // null: none

  /// Added to the score of key j.
  float added(int64_t j) const { return (bias ? bias[j] : 0) + (relative ? relative[j] : 0); }
  bool sees(int64_t j) const {
    constexpr float kHidden = -std::numeric_limits<float>::infinity();
    return j >= begin && j < end && (!keep || keep[j] != 0) && (!bias || bias[j] != kHidden) &&
           (!relative || relative[j] != kHidden);
  }
};

/// If everything is absent, every row sees every key and nothing is added.
struct AttentionPlan {
  Ids begin, end;   // (1 or B, Lq): row i sees keys [begin, end), 0 <= begin <= end <= Lk
  KeepMap keep;     // among those, only keys where it is not 0
  Tensor bias;      // (1 or B, 1 or H, Lq, Lk), added to the scores; -inf masks
  Tensor relative;  // (1 or B, 1 or H, Lq + Lk - 1): element j - i + Lq - 1 is added to the score of (i, j); -inf masks

  PlanRow row(int64_t b, int64_t h, int64_t i, int64_t keys) const;
  /// The same for the kernels; valid as long as the plan is.
  kernels::AttentionMask mask() const;
  /// The plan for (B H, 1, Lq, Lk) whose row (b H + h, 0, i) sees what row (b, h, i) sees here. Biases are repeated by
  /// a recorded op.
  AttentionPlan heads_as_batch(int64_t batch, int64_t heads) const;
};

}  // namespace qkv
