// What a Scorer is: a type that scores every query against every key.
#pragma once

#include <concepts>
#include <string_view>
#include <variant>

#include "qkv/core/api.h"
#include "qkv/ops/attention.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// The forms that have a fused kernel: a dot product or a distance (PairScores), and additive.
using Lowered = std::variant<PairScores, AdditiveScores>;

/// A scorer has a formula in ordinary recorded ops: q (B, H, Lq, D), k (B, H, Lk, D') -> (B, H, Lq, Lk). That is
/// enough: attend then computes the whole matrix, O(n^2), and reports it.
template <class S>
concept Scorer = requires(const S& s, const Tensor& q, const Tensor& k) {
  { s.scores(q, k) } -> std::convertible_to<Tensor>;
};

/// A scorer that also lowers to a kernel form, in recorded ops, takes O(n) memory: q (B, H, Lq, D), k (B, Hk, Lk, D').
template <class S>
concept LoweringScorer = Scorer<S> && requires(const S& s, const Tensor& q, const Tensor& k) {
  { s.lower(q, k) } -> std::convertible_to<Lowered>;
};

/// Whether attend can use the kernel: a scorer that is chosen at run time says so by `lowers`.
template <class S>
bool lowers(const S& scorer) {
  if constexpr (requires {
                  { scorer.lowers() } -> std::convertible_to<bool>;
                })
    return scorer.lowers();
  return LoweringScorer<S>;
}

/// What users read and write about a scorer; the scorers of any_scorer.h have it as `S::facts`.
struct ScorerFacts {
  std::string_view name;          // as users write it
  std::string_view formula;       // of a score
  bool equal_widths = false;      // queries and keys must have the same width
  std::string_view tensors = "";  // its parameters with their shapes, for queries of q elements and keys of k
};

/// Whether the scorer also lowers tensors with heads as the inner axis; by default it does not, but a scorer that only
/// uses the last axis can declare it with any_head_axis().
template <class S>
bool lowers_any_head_axis(const S& scorer) {
  if constexpr (requires {
                  { scorer.any_head_axis() } -> std::convertible_to<bool>;
                })
    return scorer.any_head_axis();
  return false;
}

}  // namespace qkv
