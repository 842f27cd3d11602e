// The list of scorers that a configuration, command line or other language can name; and one chosen at run time.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "qkv/attention/scorers.h"
#include "qkv/core/names.h"

namespace qkv {

/// No attention at all.
struct NoScorer {
  static constexpr ScorerFacts facts{"none", ""};
  [[noreturn]] Tensor scores(const Tensor& q, const Tensor& k) const;
  [[noreturn]] PairScores lower(const Tensor& q, const Tensor& k) const;
  void visit(auto&&) {}
};

// A new scorer goes into both lists, at the same position.
enum class ScorerKind {
  none,
  constant,
  salience,
  gaussian,
  boxcar,
  triangular,
  epanechnikov,
  negative_squared_distance,
  dot,
  scaled_dot,
  bilinear,
  cosine,
  vector_sum,
  additive
};
using ScorerVariant = std::variant<NoScorer, Constant, Salience, Gaussian, Boxcar, Triangular, Epanechnikov,
                                   NegativeSquaredDistance, Dot, ScaledDot, Bilinear, Cosine, VectorSum, Additive>;

namespace detail {
template <class... S>
constexpr std::array<ScorerFacts, sizeof...(S)> scorer_facts(std::type_identity<std::variant<S...>>) {
  return {S::facts...};
}
}  // namespace detail

/// The facts of every scorer, in the order of ScorerKind.
inline constexpr auto kScorerFacts = detail::scorer_facts(std::type_identity<ScorerVariant>{});
static_assert(kScorerFacts.size() == static_cast<size_t>(ScorerKind::additive) + 1, "every kind has its scorer");

constexpr const ScorerFacts& facts_of(ScorerKind kind) { return kScorerFacts[static_cast<size_t>(kind)]; }

constexpr std::array<std::string_view, kScorerFacts.size()> names(ScorerKind) {
  std::array<std::string_view, kScorerFacts.size()> all;
  for (size_t i = 0; i < all.size(); ++i) all[i] = kScorerFacts[i].name;
  return all;
}

/// Any one of the scorers. It is itself a Scorer and a module, so it can be used wherever they can.
struct AnyScorer {
  ScorerVariant scorer = ScaledDot{};

  ScorerKind kind() const { return static_cast<ScorerKind>(scorer.index()); }
  /// The scorer if it is an S, else null.
  template <class S>
  const S* as() const {
    return std::get_if<S>(&scorer);
  }

  Tensor scores(const Tensor& q, const Tensor& k) const;
  Lowered lower(const Tensor& q, const Tensor& k) const;
  bool any_head_axis() const;
  void visit(auto&& f) {
    std::visit([&](auto& s) { s.visit(f); }, scorer);
  }
};

struct ScorerSizes {
  int64_t query, key;  // widths
  int64_t hidden;      // units of additive
};
/// A scorer to be trained: matrices and vectors are initialised Xavier-uniform, temperature and width to 1.
AnyScorer make_scorer(ScorerKind kind, const ScorerSizes& sizes, const Rng& rng);

/// The values that a scorer accepts by name.
struct ScorerInputs {
  bool scale, bandwidth, temperature;
  struct Parameter {
    std::string name;
    bool needed;  // it has no default
  };
  std::vector<Parameter> tensors;
};
ScorerInputs inputs_of(ScorerKind kind);

struct ScorerValues {
  std::optional<double> scale = {}, bandwidth = {}, temperature = {};
  std::map<std::string, Tensor> tensors = {};
};
/// A scorer with given values. A value that it does not take, or a missing tensor, is an error.
AnyScorer make_scorer(ScorerKind kind, const ScorerValues& values);

}  // namespace qkv
