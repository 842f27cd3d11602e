// A scorer that is chosen at run time: what a configuration's `attention` key names.
#pragma once

#include "qkv/attention/scorers.h"

namespace qkv {

enum class ScorerKind { none, constant, additive, dot, scaled_dot, bilinear, cosine, gaussian };

/// One of the scorers with its parameters, those it does not have absent. It is a Scorer itself, so it goes wherever one goes.
struct AnyScorer {
  ScorerKind kind = ScorerKind::scaled_dot;
  Tensor W_q, W_k, w_v;  // additive
  Tensor W;              // bilinear
  Tensor temperature;    // cosine
  Tensor width;          // gaussian

  AnyScorer() = default;
  /// Additive and bilinear start Xavier-uniform (additive with `hidden` units); temperature and width start at 1.
  AnyScorer(ScorerKind kind, int64_t query_width, int64_t key_width, int64_t hidden, const Rng& rng);

  Tensor scores(const Tensor& q, const Tensor& k) const;
  Lowered lower(const Tensor& q, const Tensor& k) const;
  bool any_head_axis() const { return kind == ScorerKind::dot || kind == ScorerKind::scaled_dot; }
  void visit(auto&& f) {
    f("W_q", W_q);
    f("W_k", W_k);
    f("w_v", w_v);
    f("W", W);
    f("temperature", temperature);
    f("width", width);
  }
};

}  // namespace qkv
