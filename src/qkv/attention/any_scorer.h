// The list of scorers that a configuration, command line or other language can name; and one chosen at run time.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "qkv/attention/scorers.h"
#include "qkv/core/api.h"
#include "qkv/core/check.h"
#include "qkv/core/names.h"
#include "qkv/nn/module.h"

namespace QKV_API qkv {

/// No attention at all.
struct NoScorer {
  static constexpr ScorerFacts facts{"none", ""};
  [[noreturn]] Tensor scores(const Tensor& q, const Tensor& k) const;
  [[noreturn]] PairScores lower(const Tensor& q, const Tensor& k) const;
  void visit(auto&&) {}
};

/// Your own scorer, of any type: it can be used wherever the scorers of this file can.
class OwnScorer {
 public:
  OwnScorer() = default;
  template <Scorer S>
  explicit OwnScorer(S scorer) : held_(std::make_unique<Held<S>>(std::move(scorer))) {}
  OwnScorer(const OwnScorer& other) : held_(other.held_ ? other.held_->copy() : nullptr) {}
  OwnScorer(OwnScorer&&) noexcept = default;
  OwnScorer& operator=(OwnScorer other) noexcept {
    held_ = std::move(other.held_);
    return *this;
  }

  // An empty one, default-constructed or moved from, fails as NoScorer does.
  Tensor scores(const Tensor& q, const Tensor& k) const { return held().scores(q, k); }
  bool lowers() const { return !held_ || held_->lowers(); }
  Lowered lower(const Tensor& q, const Tensor& k) const { return held().lower(q, k); }
  bool any_head_axis() const { return held_ && held_->any_head_axis(); }
  /// The parameters of a scorer that has visit, by their dotted names.
  void visit(auto&& f) {
    if (held_) held_->each([&](const std::string& name, Tensor& t) { f(name, t); });
  }
  /// The scorer if it is an S, else null.
  template <class S>
  const S* as() const {
    const auto* held = dynamic_cast<const Held<S>*>(held_.get());
    return held ? &held->scorer : nullptr;
  }

 private:
  using Field = std::function<void(const std::string&, Tensor&)>;
  struct Base {
    virtual ~Base() = default;
    virtual std::unique_ptr<Base> copy() const = 0;
    virtual Tensor scores(const Tensor& q, const Tensor& k) const = 0;
    virtual bool lowers() const = 0;
    virtual Lowered lower(const Tensor& q, const Tensor& k) const = 0;
    virtual bool any_head_axis() const = 0;
    virtual void each(const Field& f) = 0;
  };
  template <class S>
  struct Held final : Base {
    explicit Held(S s) : scorer(std::move(s)) {}
    std::unique_ptr<Base> copy() const override { return std::make_unique<Held>(scorer); }
    Tensor scores(const Tensor& q, const Tensor& k) const override { return scorer.scores(q, k); }
    bool lowers() const override { return qkv::lowers(scorer); }
    Lowered lower(const Tensor& q, const Tensor& k) const override {
      if constexpr (LoweringScorer<S>)
        return scorer.lower(q, k);
      else
        fail("[attention] this scorer has no kernel form");
    }
    bool any_head_axis() const override { return lowers_any_head_axis(scorer); }
    void each(const Field& f) override {
      if constexpr (requires(detail::FieldWalker<const Field> walker) { scorer.visit(walker); }) each_tensor(scorer, f);
    }
    S scorer;
  };
  const Base& held() const {
    check(held_ != nullptr, "[attention] there is no scorer");
    return *held_;
  }
  std::unique_ptr<Base> held_;
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
using NamedScorers = std::variant<NoScorer, Constant, Salience, Gaussian, Boxcar, Triangular, Epanechnikov,
                                  NegativeSquaredDistance, Dot, ScaledDot, Bilinear, Cosine, VectorSum, Additive>;

namespace detail {
template <class... S>
constexpr std::array<ScorerFacts, sizeof...(S)> scorer_facts(std::type_identity<std::variant<S...>>) {
  return {S::facts...};
}
template <class S, class Variant>
inline constexpr bool is_among = false;
template <class S, class... T>
inline constexpr bool is_among<S, std::variant<T...>> = (std::is_same_v<S, T> || ...);
template <class... S>
std::variant<S..., OwnScorer> with_own(std::type_identity<std::variant<S...>>);
}  // namespace detail

/// The facts of every scorer, in the order of ScorerKind.
inline constexpr auto kScorerFacts = detail::scorer_facts(std::type_identity<NamedScorers>{});
static_assert(kScorerFacts.size() == static_cast<size_t>(ScorerKind::additive) + 1, "every kind has its scorer");

constexpr const ScorerFacts& facts_of(ScorerKind kind) { return kScorerFacts[static_cast<size_t>(kind)]; }

constexpr std::array<std::string_view, kScorerFacts.size()> names(ScorerKind) {
  std::array<std::string_view, kScorerFacts.size()> all;
  for (size_t i = 0; i < all.size(); ++i) all[i] = kScorerFacts[i].name;
  return all;
}

using ScorerVariant = decltype(detail::with_own(std::type_identity<NamedScorers>{}));

/// Any one of the scorers, or your own. It is itself a Scorer and a module, so it can be used wherever they can.
struct AnyScorer {
  ScorerVariant scorer = ScaledDot{};

  /// Fails for a scorer of your own: it has none.
  ScorerKind kind() const;
  /// The scorer if it is an S, else null.
  template <class S>
  const S* as() const {
    if constexpr (detail::is_among<S, NamedScorers>) {
      return std::get_if<S>(&scorer);
    } else {
      const auto* own = std::get_if<OwnScorer>(&scorer);
      return own ? own->template as<S>() : nullptr;
    }
  }

  Tensor scores(const Tensor& q, const Tensor& k) const;
  bool lowers() const { return !std::holds_alternative<OwnScorer>(scorer) || std::get<OwnScorer>(scorer).lowers(); }
  Lowered lower(const Tensor& q, const Tensor& k) const;
  bool any_head_axis() const;
  void visit(auto&& f) {
    std::visit([&](auto& s) { s.visit(f); }, scorer);
  }
};

/// Any scorer as an AnyScorer; one that already is stays as it is.
template <Scorer S>
AnyScorer any_scorer(S scorer) {
  if constexpr (std::is_same_v<S, AnyScorer>)
    return scorer;
  else if constexpr (detail::is_among<S, ScorerVariant>)
    return {std::move(scorer)};
  else
    return {OwnScorer(std::move(scorer))};
}

struct ScorerSizes {
  int64_t query, key;  // widths
  int64_t hidden;      // units of additive
};
/// Makes your own scorer for queries and keys of these widths; called once per attention.
using ScorerMaker = std::function<AnyScorer(const ScorerSizes& sizes, const Rng& rng)>;
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
