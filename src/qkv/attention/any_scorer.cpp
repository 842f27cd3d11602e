// The one switch over scorers.
#include "qkv/attention/any_scorer.h"

#include "qkv/core/check.h"

namespace qkv {
namespace {

template <class Call>
auto with_scorer(const AnyScorer& s, const Call& call) {
  switch (s.kind) {
    case ScorerKind::constant: return call(Constant{});
    case ScorerKind::additive: return call(Additive{s.W_q, s.W_k, s.w_v});
    case ScorerKind::dot: return call(Dot{});
    case ScorerKind::scaled_dot: return call(ScaledDot{});
    case ScorerKind::bilinear: return call(Bilinear{s.W});
    case ScorerKind::cosine: return call(Cosine{s.temperature});
    case ScorerKind::gaussian: return call(Gaussian{s.width});
    case ScorerKind::none: break;
  }
  fail("[attention] there is no scorer");
}

}  // namespace

AnyScorer::AnyScorer(ScorerKind kind_, int64_t query_width, int64_t key_width, int64_t hidden, const Rng& rng) : kind(kind_) {
  if (kind == ScorerKind::additive) {
    const Additive a = Additive::random(query_width, key_width, hidden, rng);
    W_q = a.W_q, W_k = a.W_k, w_v = a.w_v;
  }
  if (kind == ScorerKind::bilinear) W = Bilinear::random(query_width, key_width, rng).W;
  if (kind == ScorerKind::cosine) temperature = parameter(ones({1}));
  if (kind == ScorerKind::gaussian) width = parameter(ones({1}));
}

Tensor AnyScorer::scores(const Tensor& q, const Tensor& k) const {
  return with_scorer(*this, [&](const auto& scorer) { return scorer.scores(q, k); });
}

Lowered AnyScorer::lower(const Tensor& q, const Tensor& k) const {
  return with_scorer(*this, [&](const auto& scorer) -> Lowered { return scorer.lower(q, k); });
}

}  // namespace qkv
