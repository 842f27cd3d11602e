// What a Scorer is: a type that scores every query against every key.
#pragma once

#include <concepts>
#include <string_view>
#include <variant>

#include "qkv/ops/attention.h"
#include "qkv/tensor/tensor.h"

namespace qkv {

/// The forms that have a fused kernel: a dot product or a distance (PairScores), and additive.
using Lowered = std::variant<PairScores, AdditiveScores>;

/// A scorer has its formula, in ordinary recorded ops: q (B, H, Lq, D), k (B, H, Lk, D') -> (B, H, Lq, Lk). That is
/// enough: attend then makes the whole matrix, O(n^2), and says so.
template <class S>
concept Scorer = requires(const S& s, const Tensor& q, const Tensor& k) {
  { s.scores(q, k) } -> std::convertible_to<Tensor>;
};

/// A scorer that also says, in recorded ops, which kernel form it is takes O(n) memory: q (B, H, Lq, D), k (B, Hk, Lk,
/// D').
template <class S>
concept LoweringScorer = Scorer<S> && requires(const S& s, const Tensor& q, const Tensor& k) {
  { s.lower(q, k) } -> std::convertible_to<Lowered>;
};

/// What a person reads and writes of a scorer: those of any_scorer.h have it as `S::facts`.
struct ScorerFacts {
  std::string_view name;          // as it is written
  std::string_view formula;       // of a score
  bool equal_widths = false;      // queries and keys must have one width
  std::string_view tensors = "";  // its parameters with their shapes, for queries of q elements and keys of k
};

/// Whether the scorer lowers tensors whose heads are the inner axis too: those that only look at the last axis say so.
template <class S>
bool lowers_any_head_axis(const S& scorer) {
  if constexpr (requires {
                  { scorer.any_head_axis() } -> std::convertible_to<bool>;
                })
    return scorer.any_head_axis();
  return false;
}

}  // namespace qkv
