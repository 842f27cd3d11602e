// attend: the book's demos, shapes, special values, dropout, probes and errors.
#include "qkv/attention/attend.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <limits>

#include "qkv/attention/scorers.h"
#include "qkv/core/parallel.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/matmul.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/probe.h"
#include "qkv/tensor/tape.h"
#include "support/files.h"
#include "unit/attention/cases.h"

namespace qkv::tests {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

using qkv_test::error_of;

// The values of the book's demos: 0 .. 39 as (10, 4), twice.
Tensor demo_values() { return tile(reshape(arange(0, 40), {1, 10, 4}), {2, 1, 1}); }
const Tensor kDemoOutput({2, 1, 4}, {2, 3, 4, 5, 10, 11, 12, 13});

struct PlainDot {  // has only its scores
  Tensor scores(const Tensor& q, const Tensor& k) const { return matmul(q, k, Transpose::no, Transpose::yes); }
};
static_assert(Scorer<PlainDot> && !LoweringScorer<PlainDot> && LoweringScorer<Dot> && LoweringScorer<Additive>);

}  // namespace

TEST(Attend, TheBooksDemosGiveTheAverageOfTheValidValues) {
  const Mask lengths = Mask::valid_lens(Ids({2}, {2, 6}));
  const Additive additive = Additive::random(20, 2, 8, Rng(1));
  const Attended by_sum =
      attend(additive, normal({2, 1, 20}, Rng(2)), ones({2, 10, 2}), demo_values(), lengths, {}, {.dropout = 0.1f});
  expect_near(by_sum.output, Array(kDemoOutput), 1e-6, "additive");
  const Attended by_dot =
      attend(ScaledDot{}, normal({2, 1, 2}, Rng(3)), ones({2, 10, 2}), demo_values(), lengths, {}, {.dropout = 0.5f});
  expect_near(by_dot.output, Array(kDemoOutput), 1e-6, "scaled dot");
  for (const Attended& a : {by_sum, by_dot}) {
    EXPECT_EQ(a.weights.shape(), (Shape{2, 1, 1, 10}));
    for (int64_t j = 0; j < 10; ++j) {
      EXPECT_FLOAT_EQ(a.weights.row(0, 0, 0).at({j}), j < 2 ? 0.5f : 0);
      EXPECT_FLOAT_EQ(a.weights.row(1, 0, 0).at({j}), j < 6 ? 1.f / 6 : 0);
    }
  }
}

TEST(Attend, TheNotesExampleInOneDimension) {
  const Attended a =
      attend(Gaussian{}, Tensor({1, 1}, {57}), Tensor({3, 1}, {51, 56, 58}), Tensor({3, 1}, {40, 43, 48}));
  EXPECT_NEAR(a.weights.row(0, 0, 0).at({0}), 1.25550e-8, 1e-12);
  EXPECT_FLOAT_EQ(a.weights.row(0, 0, 0).at({1}), 0.5f);
  EXPECT_FLOAT_EQ(a.output.item(), 45.5f);
}

TEST(Attend, TheNotesExampleInTwoDimensions) {
  const Tensor keys({3, 2}, {51, 70, 56, 82, 56, 82}), values({3, 2}, {40, 155, 43, 159, 48, 162}),
      queries({2, 2}, {57, 83, 55, 76});
  expect_near(Dot{}.scores(reshape(queries, {1, 1, 2, 2}), reshape(keys, {1, 1, 3, 2})),
              Array(Tensor({1, 1, 2, 3}, {8717, 9998, 9998, 8125, 9312, 9312})), 0, "QK^T");
  for (const Tensor& out :
       {attend(Dot{}, queries, keys, values).output, attend(ScaledDot{}, queries, keys, values).output})
    expect_same(out, Tensor({2, 2}, {45.5f, 160.5f, 45.5f, 160.5f}), "saturated");
  const Attended gaussian = attend(Gaussian{}, queries, keys, values);
  EXPECT_NEAR(gaussian.weights.row(0, 0, 1).at({0}), 2.7647e-4, 1e-8);
  EXPECT_NEAR(gaussian.weights.row(0, 0, 1).at({1}), .499862, 1e-6);
  EXPECT_NEAR(gaussian.output.at({1, 0}), 45.49848, 1e-5);
  EXPECT_NEAR(gaussian.output.at({1, 1}), 160.49848, 2e-5);
  // Standardised by the keys' mean and deviation.
  const Tensor mean({2}, {163 / 3.f, 78}), deviation({2}, {std::sqrt(50 / 9.f), std::sqrt(32.f)});
  const Attended standard = attend(ScaledDot{}, (queries - mean) / deviation, (keys - mean) / deviation, values);
  expect_near(standard.output, Array(Tensor({2, 2}, {45.36936f, 160.36936f, 43.53482f, 158.53482f})), 1e-6,
              "standardised");
  expect_near(standard.weights.matrix(),
              Array(Tensor({1, 1, 2, 3}, {.02375f, .48812f, .48812f, .35730f, .32135f, .32135f})), 1e-5, "");
}

TEST(Attend, TakesTwoThreeAndFourAxes) {
  const Tensor q = normal({6, 3}, Rng(1)), k = normal({8, 3}, Rng(2)), v = normal({8, 5}, Rng(3));
  const Tensor flat = attend(Dot{}, q, k, v).output;
  EXPECT_EQ(flat.shape(), (Shape{6, 5}));
  const Tensor batch = attend(Dot{}, q.viewed({1, 6, 3}), k.viewed({1, 8, 3}), v.viewed({1, 8, 5})).output;
  EXPECT_EQ(batch.shape(), (Shape{1, 6, 5}));
  expect_same(batch.viewed({6, 5}), flat, "three axes");
  const Tensor heads = attend(Dot{}, q.viewed({1, 1, 6, 3}), k.viewed({1, 1, 8, 3}), v.viewed({1, 1, 8, 5})).output;
  expect_same(heads.viewed({6, 5}), flat, "four axes");
}

TEST(Attend, NoKeysAndNoQueriesAreFine) {
  for (AttendPath path : {AttendPath::fused, AttendPath::composed}) {
    const Tensor q = parameter(ones({2, 3}));
    Tape tape;
    const Attended none = attend(Dot{}, q, zeros({0, 3}), zeros({0, 4}), {}, {}, {.path = path});
    expect_same(none.output, zeros({2, 4}), "no keys");
    EXPECT_EQ(none.weights.empty_rows(), 2);
    EXPECT_EQ(none.weights.matrix().shape(), (Shape{1, 1, 2, 0}));
    EXPECT_EQ(attend(Dot{}, zeros({0, 3}), ones({5, 3}), ones({5, 4}), {}, {}, {.path = path}).output.shape(),
              (Shape{0, 4}));
  }
}

TEST(Attend, ARowThatSeesNothingGivesZerosAndNoGradientAndIsCounted) {
  for (AttendPath path : {AttendPath::fused, AttendPath::composed}) {
    const Tensor q = parameter(normal({2, 3, 4}, Rng(1))), k = parameter(normal({2, 5, 4}, Rng(2)));
    const Tensor v = parameter(normal({2, 5, 2}, Rng(3)));
    Tape tape;
    const Attended a = attend(ScaledDot{}, q, k, v, Mask::valid_lens(Ids({2}, {0, 5})), {}, {.path = path});
    EXPECT_EQ(a.weights.empty_rows(), 3);
    tape.backward(a.output, ones(a.output.shape()));
    for (const Tensor& t : {a.output, a.weights.matrix(), tape.grad(q), tape.grad(k), tape.grad(v)})
      expect_same(t.part(0, {t.numel() / 2}), zeros({t.numel() / 2}), "batch row 0");
    EXPECT_EQ(a.weights.entropy().at({0, 0, 0}), 0);
  }
}

TEST(Attend, NanInAMaskedKeyOrValueReachesNothing) {
  for (const ScorerCase& scorer : scorer_cases())
    for (AttendPath path : {AttendPath::fused, AttendPath::composed})
      for (float bad : {kNan, kInf, -kInf}) {
        const AttendSizes sizes{.batch = 1, .heads = 2, .key_heads = 1, .queries = 9, .keys = 12, .value_width = 5};
        const QueryKeyValue x = random_inputs(scorer, sizes);
        const auto run_with = [&](float last) {
          Tensor k = x.k.copied(), v = x.v.copied();
          std::fill_n(k.mutable_ptr() + 11 * scorer.key_width, scorer.key_width, last);
          std::fill_n(detail::writable(v) + 11 * 5, 5, last);
          const Tensor q = parameter(x.q), kp = parameter(k), vp = parameter(v);
          Tape tape;
          const Attended a =
              scorer.attend(scorer.parameters, q, kp, vp, Mask::valid_lens(Ids({1}, {11})), {}, {.path = path});
          tape.backward(a.output, ones(a.output.shape()));
          return Tensors{a.output, a.weights.matrix(), tape.grad(q), tape.grad(vp)};
        };
        const Tensors with = run_with(bad), without = run_with(0);
        for (size_t n = 0; n < with.size(); ++n)
          expect_near(with[n], Array(without[n]), 2e-6,
                      text(scorer.name, path == AttendPath::fused ? ", fused " : ", composed ", n));
      }
}

TEST(Attend, NanInAKeyOrValueBeyondARelativeBiasReachesNothing) {
  for (const ScorerCase& scorer : scorer_cases())
    for (AttendPath path : {AttendPath::fused, AttendPath::composed})
      for (float bad : {kNan, kInf, -kInf}) {
        const AttendSizes sizes{.batch = 1, .heads = 2, .key_heads = 1, .queries = 9, .keys = 12, .value_width = 5};
        const QueryKeyValue x = random_inputs(scorer, sizes);
        Tensor diagonals = parameter(normal({2, 20}, Rng(4)));
        for (int64_t t = 11; t < 20; ++t)
          detail::writable(diagonals)[t] = diagonals.mutable_ptr()[20 + t] = -kInf;  // key > query + 2
        const auto run_with = [&](float last) {
          Tensor k = x.k.copied(), v = x.v.copied();
          std::fill_n(k.mutable_ptr() + 11 * scorer.key_width, scorer.key_width, last);
          std::fill_n(detail::writable(v) + 11 * 5, 5, last);
          const Tensor q = parameter(x.q), kp = parameter(k), vp = parameter(v);
          Tape tape;
          const Attended a = scorer.attend(scorer.parameters, q, kp, vp, Mask::relative(diagonals), {}, {.path = path});
          tape.backward(a.output, normal(a.output.shape(), Rng(6)));
          return Tensors{a.output, a.weights.matrix(), tape.grad(q), tape.grad(vp), tape.grad(diagonals)};
        };
        const Tensors with = run_with(bad), without = run_with(0);
        for (size_t n = 0; n < with.size(); ++n) {
          const std::string name = text(scorer.name, path == AttendPath::fused ? ", fused " : ", composed ", n);
          if (n != 2 || scorer.by_query)
            expect_near(with[n], Array(without[n]), 2e-6, name);
          else
            for (float dq : with[n].data()) EXPECT_NEAR(dq, 0, 1e-6) << name;  // 0 up to rounding
        }
        for (int64_t t = 11; t < 20; ++t) EXPECT_EQ(with[4].ptr()[t], 0) << scorer.name;
      }
}

TEST(Attend, NanInAVisibleValueReachesExactlyTheRowsThatSeeIt) {
  for (const ScorerCase& scorer : scorer_cases())
    for (AttendPath path : {AttendPath::fused, AttendPath::composed}) {
      const AttendSizes sizes{.batch = 1, .heads = 1, .key_heads = 1, .queries = 12, .keys = 12, .value_width = 5};
      const QueryKeyValue x = random_inputs(scorer, sizes);
      detail::writable(x.v)[7 * 5 + 2] = kNan;
      const Attended a = scorer.attend(scorer.parameters, x.q, x.k, x.v, Mask::causal(), {}, {.path = path});
      for (int64_t i = 0; i < 12; ++i)
        for (int64_t c = 0; c < 5; ++c) {
          const bool is_nan = std::isnan(a.output.at({0, 0, i, c})), hidden = i < 7 || c != 2;
          if (hidden) {
            ASSERT_FALSE(is_nan) << scorer.name << " " << i << " " << c;
          } else if (a.weights.row(0, 0, i).at({7}) > 0) {  // a kernel of bounded support may not reach it
            ASSERT_TRUE(is_nan) << scorer.name << " " << i << " " << c;
          }
        }
    }
}

TEST(Attend, DropoutActsInTrainingOnlyAndNotOnTheWeightsThatAreShown) {
  const Tensor q = normal({2, 4, 40, 8}, Rng(1)), k = normal({2, 4, 50, 8}, Rng(2)), v = ones({2, 4, 50, 3});
  const AttendOptions options{.dropout = 0.5f};
  const Attended plain = attend(ScaledDot{}, q, k, v);
  expect_same(attend(ScaledDot{}, q, k, v, {}, {}, options).output, plain.output, "inference");
  const auto training = [&](const Rng& rng) {
    return attend(ScaledDot{}, q, k, v, {}, qkv::Run{.training = true, .rng = rng}, options);
  };
  const Attended once = training(Rng(7));
  expect_same(once.output, training(Rng(7)).output, "the same stream");
  expect_same(once.weights.matrix(), plain.weights.matrix(), "weights before dropout");
  const Tensor next_step = training(Rng(7).at_step(1)).output;
  int64_t changed = 0;
  for (int64_t i = 0; i < next_step.numel(); ++i) changed += next_step.ptr()[i] != once.output.ptr()[i];
  EXPECT_GT(changed, next_step.numel() * 9 / 10);
  double average = 0;
  for (float x : once.output.data()) average += x / static_cast<double>(once.output.numel());
  EXPECT_NEAR(average, 1, 0.05);  // kept weights are scaled up
}

TEST(Attend, AProbeSeesPathAndWeightsAndChangesNoBit) {
  struct Recorder : Probe {
    void attention(std::string_view path, const Weights& weights) override {
      paths.emplace_back(path);
      EXPECT_EQ(Tape::current(), nullptr);
      sums.push_back(weights.column_mass().at({0, 0, 0}));
    }
    std::vector<std::string> paths;
    std::vector<float> sums;
  } recorder;
  const Tensor q = parameter(normal({5, 4}, Rng(1))), k = normal({6, 4}, Rng(2)), v = normal({6, 3}, Rng(3));
  Tensors outputs, gradients;
  for (Probe* probe : {static_cast<Probe*>(nullptr), static_cast<Probe*>(&recorder)}) {
    const qkv::Run run{.training = true, .rng = Rng(4), .probe = probe};
    Tape tape;
    const Tensor first = attend(ScaledDot{}, q, k, v, {}, run.at("encoder").at(0).at("self"), {.dropout = 0.2f}).output;
    const Tensor second = attend(PlainDot{}, q, k, v, {}, run.at("cross"), {.dropout = 0.2f}).output;
    outputs.push_back(first + second);
    tape.backward(outputs.back(), ones({5, 3}));
    gradients.push_back(tape.grad(q));
  }
  EXPECT_EQ(recorder.paths, (std::vector<std::string>{"encoder.0.self", "cross"}));
  EXPECT_GT(recorder.sums[0], 0);
  expect_same(outputs[0], outputs[1], "output");
  expect_same(gradients[0], gradients[1], "gradient");
}

TEST(Attend, AScorerThatKnowsOnlyItsScoresRunsComposedAndSaysSo) {
  const Tensor q = normal({1, 4, 5, 3}, Rng(1)), k = normal({1, 2, 6, 3}, Rng(2)), v = normal({1, 2, 6, 2}, Rng(3));
  const Attended mine = attend(PlainDot{}, q, k, v, Mask::causal()), ours = attend(Dot{}, q, k, v, Mask::causal());
  EXPECT_EQ(mine.weights.path(), AttendPath::composed);
  EXPECT_EQ(ours.weights.path(), AttendPath::fused);
  expect_near(mine.output, Array(ours.output), 1e-6, "output");
  struct Wrong {
    Tensor scores(const Tensor& q, const Tensor&) const { return q; }
  };
  EXPECT_EQ(error_of([&] { attend(Wrong{}, q, k, v); }),
            "[attend] the scorer gave scores (1, 4, 5, 3), expected (B, H, Lq, Lk) (1, 4, 5, 6)");
}

TEST(Attend, ALongDecodeMayProjectTheKeysOnce) {
  const Additive additive = Additive::random(4, 3, 5, Rng(1));
  const Tensor q = normal({2, 1, 4}, Rng(2)), k = normal({2, 6, 3}, Rng(3)), v = normal({2, 6, 3}, Rng(4));
  expect_same(attend(additive.on_projected(), q, additive.project(k), v).output, attend(additive, q, k, v).output,
              "projected");
}

TEST(Attend, SaliencesLimitIsTheLargest) {
  const Tensor k({4, 1}, {0.1f, 0.9f, -3, 0.5f}), v({4, 1}, {1, 2, 3, 4});
  EXPECT_FLOAT_EQ(attend(Salience{ones({1}), 1e-3f}, zeros({1, 1}), k, v).output.item(), 2);
  EXPECT_FLOAT_EQ(attend(Salience{zeros({1})}, zeros({1, 1}), k, v).output.item(), 2.5f);
}

// The peak memory of this process so far.
int64_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

TEST(Attend, ThirtyTwoThousandTokensTakeLittleMemoryAndShowTheirWeights) {
  constexpr int64_t n = 32768, d = 64;
  const Tensor q = parameter(normal({1, 1, n, d}, Rng(1))), k = parameter(normal({1, 1, n, d}, Rng(2))),
               v = parameter(normal({1, 1, n, d}, Rng(3))), dy = normal({1, 1, n, d}, Rng(4));
  [[maybe_unused]] const int64_t before = peak_bytes();
  Tape tape;
  // Memory does not depend on the window; time does.
  const Attended seen = attend(ScaledDot{}, q, k, v, Mask::window(2000, 0));
  const Tensor row = seen.weights.row(0, 0, n - 1);
  tape.backward(seen.output, dy);
  const Tensor dq = tape.grad(q);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need memory of their own
  EXPECT_LT(peak_bytes() - before, int64_t{100} << 20);
#endif

  std::vector<double> scores(n), plain(n);
  double most = -1e30, sum = 0;
  for (int64_t j = n - 2001; j < n; ++j) {
    for (int64_t c = 0; c < d; ++c)
      scores[static_cast<size_t>(j)] += double{q.ptr()[(n - 1) * d + c]} * k.ptr()[j * d + c] / 8;
    most = std::max(most, scores[static_cast<size_t>(j)]);
  }
  for (int64_t j = n - 2001; j < n; ++j)
    sum += plain[static_cast<size_t>(j)] = std::exp(scores[static_cast<size_t>(j)] - most);
  for (int64_t j = 0; j < n; ++j) ASSERT_NEAR(row.ptr()[j], plain[static_cast<size_t>(j)] / sum, 1e-6) << j;
}

TEST(Attend, ErrorsNameBothShapes) {
  const auto failing = [](const Shape& q, const Shape& k, const Shape& v) {
    return error_of([&] { attend(ScaledDot{}, zeros(q), zeros(k), zeros(v)); });
  };
  EXPECT_EQ(failing({3}, {3}, {3}), "[attend] expected queries (L, D), (B, L, D) or (B, H, L, D), got (3,)");
  EXPECT_EQ(failing({2, 3}, {1, 2, 3}, {2, 3}),
            "[attend] queries, keys and values have different numbers of axes: (2, 3), (1, 2, 3), (2, 3)");
  EXPECT_EQ(failing({2, 3}, {4, 3}, {5, 3}), "[attend] the numbers of keys and values differ: (4, 3) and (5, 3)");
  EXPECT_EQ(failing({2, 2, 3}, {3, 4, 3}, {3, 4, 3}), "[attend] batch sizes differ: (2, 2, 3), (3, 4, 3), (3, 4, 3)");
  EXPECT_EQ(failing({1, 4, 2, 3}, {1, 2, 4, 3}, {1, 4, 4, 3}),
            "[attend] keys and values have different heads: (1, 2, 4, 3) and (1, 4, 4, 3)");
  EXPECT_EQ(
      failing({1, 3, 2, 3}, {1, 2, 4, 3}, {1, 2, 4, 3}),
      "[attend] the number of query heads is not a multiple of the number of key heads: (1, 3, 2, 3) and (1, 2, 4, 3)");
  EXPECT_EQ(failing({2, 3}, {4, 5}, {4, 3}), "[attention] query and key widths differ: (1, 1, 2, 3) x (1, 1, 4, 5)");
  EXPECT_EQ(
      error_of([] {
        attend(Dot{}, zeros({2, 3}), zeros({4, 3}), zeros({4, 3}), {}, qkv::Run{.training = true}, {.dropout = 1});
      }),
      "[attend] the dropout rate must be in [0, 1), got 1");
  EXPECT_EQ(error_of([] {
              attend(Bilinear{zeros({2, 2})}, zeros({2, 3}), zeros({4, 2}), zeros({4, 3}));
            }),
            "[bilinear] W must be (query width, key width): (2, 2) for queries (1, 1, 2, 3) and keys (1, 1, 4, 2)");
  EXPECT_EQ(error_of([] {
              attend(Gaussian{zeros({2})}, zeros({2, 3}), zeros({4, 3}), zeros({4, 3}));
            }),
            "[gaussian] expected one width or one per dimension, got (2,) for queries (1, 1, 2, 3)");
  EXPECT_EQ(error_of([] {
              attend(Cosine{zeros({1})}, zeros({2, 3}), zeros({4, 3}), zeros({4, 3}));
            }),
            "[cosine] the temperature must be one positive number, got 0");
}

}  // namespace qkv::tests
