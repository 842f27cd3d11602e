// The list of scorers: every kind is tested, attends like its own type, and can be made by name.
#include "qkv/attention/any_scorer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "qkv/nn/module.h"
#include "unit/attention/cases.h"
#include "unit/ops/expect_error.h"

namespace qkv::tests {
namespace {

TEST(AnyScorer, EveryKindHasACaseAndAName) {
  const auto cases = scorer_cases();
  for (const ScorerKind kind : every<ScorerKind>()) {
    EXPECT_EQ(find_named<ScorerKind>(name_of(kind)), kind);
    EXPECT_EQ(make_scorer(kind, {3, 3, 4}, Rng(1)).kind(), kind) << name_of(kind);
    const bool tested =
        std::ranges::any_of(cases, [&](const ScorerCase& c) { return c.attend.any(c.parameters).kind() == kind; });
    EXPECT_TRUE(tested || kind == ScorerKind::none) << name_of(kind);
  }
  EXPECT_EQ(name_of(ScorerKind::negative_squared_distance), "negative-squared-distance");
  EXPECT_EQ(name_of(ScorerKind::scaled_dot), "scaled-dot");
  EXPECT_EQ(name_of(ScorerKind::additive), "additive");
}

TEST(AnyScorer, AttendsWithTheBitsOfItsScorerOnBothPaths) {
  const AttendSizes sizes;
  for (const ScorerCase& scorer : scorer_cases())
    for (const AttendPath path : {AttendPath::fused, AttendPath::composed}) {
      const auto [q, k, v] = random_inputs(scorer, sizes);
      const Attended own = scorer.attend(scorer.parameters, q, k, v, Mask::causal(1), {}, {.path = path});
      const Attended any = attend(scorer.attend.any(scorer.parameters), q, k, v, Mask::causal(1), {}, {.path = path});
      EXPECT_EQ(any.path, own.path) << scorer.name;
      expect_same(any.output, own.output, scorer.name);
      expect_same(any.weights.matrix(), own.weights.matrix(), scorer.name);
    }
}

TEST(AnyScorer, ChecksWidthsWhereItSaysThatTheyMustAgree) {
  for (const ScorerCase& scorer : scorer_cases()) {
    const bool equal = facts_of(scorer.attend.any(scorer.parameters).kind()).equal_widths;
    EXPECT_TRUE(!equal || scorer.query_width == scorer.key_width) << scorer.name;
    if (!equal) continue;
    const Tensor q = zeros({1, 1, 2, scorer.query_width + 1}), k = zeros({1, 1, 2, scorer.key_width});
    EXPECT_THROW(scorer.attend.any(scorer.parameters).scores(q, k), Error) << scorer.name;
  }
}

// Models are saved under these names.
TEST(AnyScorer, AModelsParametersHaveTheirNamesInOrder) {
  const auto listed_parameters = [](ScorerKind kind) {
    std::string all;
    for (const auto& [name, tensor] : parameters(make_scorer(kind, {3, 5, 4}, Rng(1))))
      all += text(name, tensor.shape(), " ");
    return all;
  };
  EXPECT_EQ(listed_parameters(ScorerKind::additive), "W_q(4, 3) W_k(4, 5) w_v(4,) ");
  EXPECT_EQ(listed_parameters(ScorerKind::bilinear), "W(3, 5) ");
  EXPECT_EQ(listed_parameters(ScorerKind::cosine), "temperature(1,) ");
  EXPECT_EQ(listed_parameters(ScorerKind::gaussian), "width(1,) ");
  EXPECT_EQ(listed_parameters(ScorerKind::salience), "w(5,) ");
  for (const ScorerKind kind :
       {ScorerKind::none, ScorerKind::constant, ScorerKind::dot, ScorerKind::scaled_dot, ScorerKind::vector_sum})
    EXPECT_EQ(listed_parameters(kind), "") << name_of(kind);
}

TEST(AnyScorer, IsMadeFromGivenValues) {
  const AnyScorer kernel = make_scorer(ScorerKind::boxcar, {.bandwidth = 4});
  ASSERT_TRUE(kernel.as<Boxcar>());
  EXPECT_EQ(kernel.as<Boxcar>()->width.item(), 0.25f);
  EXPECT_EQ(make_scorer(ScorerKind::cosine, {.temperature = 0.5}).as<Cosine>()->temperature.item(), 0.5f);
  EXPECT_EQ(make_scorer(ScorerKind::salience, {.temperature = 0.5, .tensors = {{"w", ones({2})}}})
                .as<Salience>()
                ->temperature,
            0.5f);
  EXPECT_EQ(make_scorer(ScorerKind::scaled_dot, {.scale = -2}).as<ScaledDot>()->scale, -2.f);
  EXPECT_FALSE(make_scorer(ScorerKind::scaled_dot, ScorerValues{}).as<ScaledDot>()->scale);
  EXPECT_FALSE(make_scorer(ScorerKind::vector_sum, ScorerValues{}).as<VectorSum>()->w);
  EXPECT_EQ(make_scorer(ScorerKind::vector_sum, {.tensors = {{"w", ones({2})}}}).as<VectorSum>()->w->numel(), 2);
  EXPECT_EQ(kernel.as<Dot>(), nullptr);
}

TEST(AnyScorer, RefusesWhatAScorerDoesNotTake) {
  expect_error([] { make_scorer(ScorerKind::dot, {.scale = 1}); }, "[dot] takes no scale");
  expect_error([] { make_scorer(ScorerKind::cosine, {.bandwidth = 1}); }, "[cosine] takes no bandwidth");
  expect_error([] { make_scorer(ScorerKind::gaussian, {.temperature = 1}); }, "[gaussian] takes no temperature");
  expect_error([] { make_scorer(ScorerKind::gaussian, {.bandwidth = 0}); },
               "[gaussian] the bandwidth must be positive, got 0");
  expect_error([] { make_scorer(ScorerKind::bilinear, ScorerValues{}); }, "[bilinear] needs a tensor \"W\"");
  expect_error(
      [] {
        make_scorer(ScorerKind::bilinear, {.tensors = {{"W", ones({1, 1})}, {"w", ones({1})}}});
      },
      "[bilinear] has no tensor \"w\"");
  const Tensor x = ones({1, 1, 2, 2});
  expect_error([&] { attend(make_scorer(ScorerKind::none, ScorerValues{}), x, x, x); },
               "[attention] there is no scorer");
}

}  // namespace
}  // namespace qkv::tests
