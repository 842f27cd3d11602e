// The list of scorers: every kind is tested, attends like its own type, and can be made by name.
#include "qkv/attention/any_scorer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "qkv/attention/attend.h"
#include "qkv/nn/module.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/matmul.h"
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
      EXPECT_EQ(any.weights.path(), own.weights.path()) << scorer.name;
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

// A scorer of the tests' own, with and without a kernel form.
struct Plain {
  Tensor w;
  Tensor scores(const Tensor& q, const Tensor& k) const { return matmul(mul(q, w), k, Transpose::no, Transpose::yes); }
  void visit(auto&& f) { f("w", w); }
};
struct WithKernel : Plain {
  PairScores lower(const Tensor& q, const Tensor& k) const { return {.q = mul(q, w), .k = k}; }
};

TEST(AnyScorer, HoldsAScorerOfYourOwnWithItsParametersAndItsKernel) {
  const Tensor q = uniform({1, 2, 3, 4}, Rng(1)), k = uniform({1, 2, 5, 4}, Rng(2));
  const Plain plain{parameter(uniform({4}, Rng(3)))};
  const AnyScorer composed = any_scorer(plain), fused = any_scorer(WithKernel{plain});
  const Attended a = attend(composed, q, k, k), b = attend(fused, q, k, k);
  EXPECT_EQ(a.weights.path(), AttendPath::composed);
  EXPECT_EQ(b.weights.path(), AttendPath::fused);
  expect_same(a.output, attend(plain, q, k, k).output, "composed");
  expect_near(b.output, Array(a.output), 1e-6, "fused");
  ASSERT_EQ(parameters(composed).size(), 1u);
  EXPECT_EQ(parameters(composed)[0].name, "w");
  EXPECT_EQ(composed.as<Plain>()->w.leaf_id(), plain.w.leaf_id());
  EXPECT_EQ(composed.as<WithKernel>(), nullptr);
  EXPECT_EQ(composed.as<Dot>(), nullptr);
  EXPECT_NE(any_scorer(Dot{}).as<Dot>(), nullptr);
  expect_error([&] { composed.kind(); }, "[attention] a scorer of your own has no kind");
}

TEST(AnyScorer, AnEmptyScorerOfYourOwnIsRefusedLikeNone) {
  const Tensor x = ones({1, 1, 2, 2});
  for (const AttendPath path : {AttendPath::fused, AttendPath::composed}) {
    const AttendOptions options{.path = path};
    expect_error([&] { attend(OwnScorer{}, x, x, x, Mask::none(), {}, options); }, "[attention] there is no scorer");
    expect_error([&] { attend(AnyScorer{OwnScorer{}}, x, x, x, Mask::none(), {}, options); },
                 "[attention] there is no scorer");
  }
  EXPECT_TRUE(parameters(AnyScorer{OwnScorer{}}).empty());
}

TEST(AnyScorer, AScorerWrappedTwiceIsTheSameScorer) {
  const Tensor q = uniform({1, 2, 3, 4}, Rng(1)), k = uniform({1, 2, 5, 4}, Rng(2));
  const Plain plain{parameter(uniform({4}, Rng(3)))};
  const AnyScorer twice = any_scorer(any_scorer(plain)), own = any_scorer(OwnScorer(plain));
  // One that is made by hand asks what it holds.
  const AnyScorer by_hand{OwnScorer(any_scorer(plain))};
  for (const AnyScorer* scorer : {&twice, &own, &by_hand}) {
    const Attended a = attend(*scorer, q, k, k);
    EXPECT_EQ(a.weights.path(), AttendPath::composed);
    expect_same(a.output, attend(plain, q, k, k).output, "wrapped twice");
    ASSERT_EQ(parameters(*scorer).size(), 1u);
    EXPECT_EQ(parameters(*scorer)[0].name, "w");
  }
  EXPECT_NE(twice.as<Plain>(), nullptr);
  EXPECT_NE(own.as<Plain>(), nullptr);
  EXPECT_EQ(attend(any_scorer(any_scorer(WithKernel{plain})), q, k, k).weights.path(), AttendPath::fused);
  EXPECT_EQ(any_scorer(any_scorer(Dot{})).kind(), ScorerKind::dot);
}

TEST(AnyScorer, ACloneOfAScorerOfYourOwnHasMemoryOfItsOwn) {
  const AnyScorer first = any_scorer(Plain{parameter(ones({2}))});
  AnyScorer second = clone(first);
  each_tensor(second, [](const std::string&, Tensor& w) { w.mutable_ptr()[0] = 5; });
  EXPECT_EQ(first.as<Plain>()->w.data()[0], 1);
  EXPECT_EQ(second.as<Plain>()->w.data()[0], 5);
}

}  // namespace
}  // namespace qkv::tests
