// Fused attention: one tape node that keeps its output and the log-sum-exp of every row, O(n) memory forward and
// backward. The same in plain ops is in attention_composed.h.
#pragma once

#include <cstdint>

#include "qkv/core/api.h"
#include "qkv/core/forms.h"
#include "qkv/ops/attention_plan.h"
#include "qkv/tensor/run.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// Where the head axis is: (B, H, L, D), or (B, L, H, D), which is (B, L, H D) as linear layers read and write it.
enum class HeadAxis { outer, inner };

/// The sizes as (B, H, L, D), wherever the head axis is.
Shape heads_outer(const Shape& shape, HeadAxis axis);

/// Scores that are a function of one query and one key: a dot product plus a key bias, or the log of a distance kernel.
struct PairScores {
  Tensor q, k;                      // (B, H, Lq, D) and (B, Hk, Lk, D), by axis; H is a multiple of Hk
  ScoreForm form = ScoreForm::dot;  // core/forms.h has the formulas
  float scale = 1;
  Tensor factor = {};               // one element or absent: scale * factor is the scale, and factor gets a gradient
  Tensor key_bias = {};             // (B, Hk, Lk) or absent: added to the scores of that key
  HeadAxis axis = HeadAxis::outer;  // of q, k, the values and the output

  float full_scale() const { return factor.defined() ? scale * factor.item() : scale; }
};

/// Additive scores: w . tanh(pq + pk).
struct AdditiveScores {
  Tensor pq, pk;  // (B, H, Lq, D) and (B, Hk, Lk, D), already projected
  Tensor w;       // (D)
};

struct AttentionResult {
  Tensor output;       // (B, H, Lq, Dv), or laid out like the queries
  Tensor lse;          // (B, H, Lq): log of the sum of e^score; -inf for a row that sees nothing
  int64_t empty_rows;  // rows that see nothing; their output is 0
};

/// softmax(scores + bias) v over the keys that the plan shows. v (B, Hk, Lk, Dv)
AttentionResult attention(const PairScores& scores, const Tensor& v, const AttentionPlan& plan,
                          const AttentionDropout& dropout = {});
AttentionResult attention(const AdditiveScores& scores, const Tensor& v, const AttentionPlan& plan,
                          const AttentionDropout& dropout = {});

/// The weights of row i of (b, h), before dropout, recomputed from what the forward pass kept: Lk floats. Not recorded.
void attention_row(const PairScores& scores, const AttentionPlan& plan, const Tensor& lse, int64_t b, int64_t h,
                   int64_t i, float* weights);
void attention_row(const AdditiveScores& scores, const AttentionPlan& plan, const Tensor& lse, int64_t b, int64_t h,
                   int64_t i, float* weights);

/// The dropout of a run: none unless it is training.
AttentionDropout attention_dropout(const char* op, float rate, const Run& run);

}  // namespace qkv
