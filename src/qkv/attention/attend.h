// attend: f(q) = sum_i alpha_i v_i, alpha = softmax over i of score(q, k_i), over the keys that the mask lets q see.
#pragma once

#include <cstdint>

#include "qkv/attention/mask.h"
#include "qkv/attention/scorer.h"
#include "qkv/attention/weights.h"
#include "qkv/core/api.h"
#include "qkv/tensor/probe.h"
#include "qkv/tensor/run.h"

namespace QKV_API qkv {

struct AttendOptions {
  float dropout = 0;  // of the weights, while training
  AttendPath path = AttendPath::fused;
  HeadAxis axis = HeadAxis::outer;  // inner: tensors are (B, L, H, D), which avoids copying heads apart and back
};

/// auto [output, weights] = attend(...)
struct Attended {
  Tensor output;    // (B, H, Lq, Dv), or with the same axes as the queries
  Weights weights;  // (B, H, Lq, Lk), before dropout
};

namespace detail {

/// An attention with its tensors as (B, H, L, D), its mask compiled and its dropout drawn from the run.
struct AttendCall {
  Tensor q, k, v;
  int rank;              // of the tensors as given
  HeadAxis given, axis;  // of the tensors as given, and as they are here
  AttentionPlan plan;
  AttentionDropout dropout;
  const Run* run;
};

/// any_axis: heads may stay the inner axis.
AttendCall attend_call(const Tensor& q, const Tensor& k, const Tensor& v, const Mask& mask, const Run& run,
                       const AttendOptions& options, bool any_axis);
Attended attend_fused(const AttendCall& call, Lowered scores);
/// Key and value heads repeated, so that there are as many as query heads.
AttendCall with_all_heads(AttendCall call);
Attended attend_composed(const AttendCall& call, const Tensor& scores);

}  // namespace detail

/// Attention pooling. q (B, H, Lq, D), k (B, Hk, Lk, D'), v (B, Hk, Lk, Dv), H a multiple of Hk: query head h reads key
/// head h / (H / Hk). Or (B, L, D) or (L, D) each, or with options.axis inner (B, L, H, D). Gradients go to q, k, v,
/// the scorer's parameters and a learned bias. An attention that the run's probe edits is computed composed.
template <Scorer S>
Attended attend(const S& scorer, const Tensor& q, const Tensor& k, const Tensor& v, const Mask& mask = Mask::none(),
                const Run& run = {}, const AttendOptions& options = {}) {
  const bool edited = run.probe && run.probe->edits(run.path);
  const bool fused = options.path == AttendPath::fused && lowers(scorer) && !edited;
  detail::AttendCall call = detail::attend_call(q, k, v, mask, run, options, fused && lowers_any_head_axis(scorer));
  if constexpr (LoweringScorer<S>) {
    if (fused) return detail::attend_fused(call, scorer.lower(call.q, call.k));
  }
  call = detail::with_all_heads(call);
  return detail::attend_composed(call, scorer.scores(call.q, call.k));
}

}  // namespace qkv
