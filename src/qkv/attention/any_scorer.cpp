// Code common to all scorers, driven by the fields that each type has.
#include "qkv/attention/any_scorer.h"

#include "qkv/core/check.h"

namespace qkv {
namespace {

// Calls make(std::type_identity<S>) for the type S of that kind.
template <class Make>
void with_type(ScorerKind kind, const Make& make) {
  const auto among = [&]<class... S>(std::type_identity<std::variant<S...>>) {
    auto at = static_cast<size_t>(kind);
    ((at-- == 0 ? make(std::type_identity<S>{}) : void()), ...);
  };
  among(std::type_identity<NamedScorers>{});
}

template <class S>
S to_train(const ScorerSizes& n, const Rng& rng) {
  if constexpr (requires { S::random(n.query, n.key, n.hidden, rng); })
    return S::random(n.query, n.key, n.hidden, rng);
  else if constexpr (requires { S::random(n.query, n.key, rng); })
    return S::random(n.query, n.key, rng);
  S scorer;
  scorer.visit([]<class Field>(const char*, Field& number) {
    if constexpr (std::is_same_v<Field, Tensor>) number = parameter(ones({1}));
  });
  return scorer;
}

bool has_default(const Tensor& parameter) { return parameter.defined(); }
bool has_default(const std::optional<Tensor>&) { return true; }

template <class S>
ScorerInputs inputs() {
  S scorer;
  constexpr bool scale = requires { scorer.scale; };
  constexpr bool bandwidth = requires { scorer.width; };
  constexpr bool temperature = requires { scorer.temperature; };
  ScorerInputs in{scale, bandwidth, temperature, {}};
  scorer.visit([&](const char* name, const auto& field) { in.tensors.push_back({name, !has_default(field)}); });
  return in;
}

void set_number(float& field, double value) { field = static_cast<float>(value); }
void set_number(std::optional<float>& field, double value) { field = static_cast<float>(value); }
void set_number(Tensor& field, double value) { field = scalar(static_cast<float>(value)); }

template <class S>
S with_values(const ScorerValues& given) {
  constexpr std::string_view name = S::facts.name;
  const auto positive = [&](const char* what, double value) {
    check(value > 0, "[", name, "] the ", what, " must be positive, got ", value);
    return value;
  };
  S scorer;
  scorer.visit([&](const char* field_name, auto& field) {
    const auto found = given.tensors.find(field_name);
    check(found != given.tensors.end() || has_default(field), "[", name, "] needs a tensor \"", field_name, "\"");
    if (found != given.tensors.end()) field = found->second;
  });
  const ScorerInputs in = inputs<S>();
  for (const auto& [tensor, value] : given.tensors) {
    bool known = false;
    for (const auto& parameter : in.tensors) known |= parameter.name == tensor;
    check(known, "[", name, "] has no tensor \"", tensor, "\"");
  }
  check(in.scale || !given.scale, "[", name, "] takes no scale");
  check(in.bandwidth || !given.bandwidth, "[", name, "] takes no bandwidth");
  check(in.temperature || !given.temperature, "[", name, "] takes no temperature");
  if constexpr (requires { scorer.scale; })
    if (given.scale) set_number(scorer.scale, *given.scale);
  if constexpr (requires { scorer.width; })
    if (given.bandwidth) set_number(scorer.width, 1 / positive("bandwidth", *given.bandwidth));
  if constexpr (requires { scorer.temperature; })
    if (given.temperature) set_number(scorer.temperature, positive("temperature", *given.temperature));
  return scorer;
}

}  // namespace

Tensor NoScorer::scores(const Tensor&, const Tensor&) const { fail("[attention] there is no scorer"); }
PairScores NoScorer::lower(const Tensor&, const Tensor&) const { fail("[attention] there is no scorer"); }

ScorerKind AnyScorer::kind() const {
  check(!std::holds_alternative<OwnScorer>(scorer), "[attention] a scorer of your own has no kind");
  return static_cast<ScorerKind>(scorer.index());
}

Tensor AnyScorer::scores(const Tensor& q, const Tensor& k) const {
  return std::visit([&](const auto& s) { return s.scores(q, k); }, scorer);
}

Lowered AnyScorer::lower(const Tensor& q, const Tensor& k) const {
  return std::visit([&](const auto& s) -> Lowered { return s.lower(q, k); }, scorer);
}

bool AnyScorer::any_head_axis() const {
  return std::visit([](const auto& s) { return lowers_any_head_axis(s); }, scorer);
}

AnyScorer make_scorer(ScorerKind kind, const ScorerSizes& sizes, const Rng& rng) {
  AnyScorer out;
  with_type(kind, [&]<class S>(std::type_identity<S>) { out.scorer = to_train<S>(sizes, rng); });
  return out;
}

AnyScorer make_scorer(ScorerKind kind, const ScorerValues& values) {
  AnyScorer out;
  with_type(kind, [&]<class S>(std::type_identity<S>) { out.scorer = with_values<S>(values); });
  return out;
}

ScorerInputs inputs_of(ScorerKind kind) {
  ScorerInputs out{};
  with_type(kind, [&]<class S>(std::type_identity<S>) { out = inputs<S>(); });
  return out;
}

}  // namespace qkv
