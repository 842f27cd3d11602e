// Attention of many rows at once: weights = softmax(score + bias) over the keys a row may see, out = weights v. O(n)
// memory: forward keeps the output and the log-sum-exp of every row, backward recomputes the weights from them.
#pragma once

#include <cstdint>

#include "qkv/core/forms.h"

namespace qkv::kernels {

/// Queries (B, H, Lq, D), keys (B, Hk, Lk, D), values (B, Hk, Lk, Dv); query head h reads key head h / (H / Hk).
struct AttentionSizes {
  int64_t batch, heads, key_heads, queries, keys, width, value_width;
};

/// Element (b, h, i, 0) is at data + b * batch + h * head + i * row; the last axis is contiguous.
struct HeadStrides {
  int64_t batch, head, row;
};

struct ConstHeads {
  const float* data;
  HeadStrides stride;
};
struct Heads {
  float* data;
  HeadStrides stride;
};

/// Which keys a row may see and what is added to its scores. If everything is absent: all keys, nothing added.
struct AttentionMask {
  // Row i of batch row b sees keys [begin, end), at begin[b * interval_batch + i]; if interval_batch is 0, they are the
  // same for every batch row.
  const int32_t *begin = nullptr, *end = nullptr;
  int64_t interval_batch = 0;
  // Among those, it sees key j where keep[b * keep_batch + h * keep_head + i * keys + j] is not 0.
  const uint8_t* keep = nullptr;
  int64_t keep_batch = 0, keep_head = 0;
  // score += bias[b * bias_batch + h * bias_head + i * keys + j]; -inf masks.
  const float* bias = nullptr;
  int64_t bias_batch = 0, bias_head = 0;
  // score += key_bias[(b * key_heads + hk) * keys + j].
  const float* key_bias = nullptr;
  // score += relative[b * relative_batch + h * relative_head + j - i + queries - 1]; -inf masks. A bias by distance
  // alone: one number for each of the queries + keys - 1 diagonals.
  const float* relative = nullptr;
  int64_t relative_batch = 0, relative_head = 0;
};

struct AttentionCall {
  AttentionSizes sizes;
  ScoreForm form = ScoreForm::dot;
  float scale = 1;
  AttentionMask mask;
  AttentionDropout dropout;
};

/// out (B, H, Lq, Dv) and lse (B, H, Lq) contiguous: the natural log of the sum of exp(score); -inf, and out = 0, for a
/// row that sees no key. Returns the number of such rows.
int64_t attention_forward(const AttentionCall& call, ConstHeads q, ConstHeads k, ConstHeads v, Heads out, float* lse);

/// Where the gradients go; null data means not wanted. All are overwritten, not added to. dbias and drelative have the
/// layout of the mask's bias and relative (shared axes are summed); dscale is the derivative by `scale`.
struct AttentionGradients {
  Heads dq{}, dk{}, dv{};
  float *dbias = nullptr, *dkey_bias = nullptr;
  double* dscale = nullptr;
  float* drelative = nullptr;
};
void attention_backward(const AttentionCall& call, ConstHeads q, ConstHeads k, ConstHeads v, ConstHeads out,
                        const float* lse, ConstHeads dout, const AttentionGradients& gradients);

/// The weights (before dropout) of row i of (b, h): keys floats, exactly 0 where masked.
void attention_weights(const AttentionCall& call, ConstHeads q, ConstHeads k, const float* lse, int64_t b, int64_t h,
                       int64_t i, float* weights);

/// Additive scores: w . tanh(pq_i + pk_j), with pq (B, Lq, D) and pk (B, Lk, D) already projected, w (D); values (B,
/// Lk, Dv); one head (sizes.heads = key_heads = 1). Same mask, dropout, lse and meaning as above.
int64_t additive_forward(const AttentionCall& call, ConstHeads pq, ConstHeads pk, const float* w, ConstHeads v,
                         Heads out, float* lse);
struct AdditiveGradients {
  Heads dpq{}, dpk{}, dv{};
  float *dw = nullptr, *dbias = nullptr, *drelative = nullptr;
};
void additive_backward(const AttentionCall& call, ConstHeads pq, ConstHeads pk, const float* w, ConstHeads v,
                       ConstHeads out, const float* lse, ConstHeads dout, const AdditiveGradients& gradients);
void additive_weights(const AttentionCall& call, ConstHeads pq, ConstHeads pk, const float* w, const float* lse,
                      int64_t b, int64_t i, float* weights);

}  // namespace qkv::kernels
