// Multi-head attention: heads by strides against a loop over heads, shared key heads, any scorer, any mask, the book's
// demo.
#include "qkv/attention/multi_head.h"

#include <gtest/gtest.h>

#include <cmath>

#include "qkv/attention/positions.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/matmul.h"
#include "qkv/ops/reduce.h"
#include "qkv/tensor/probe.h"
#include "qkv/tensor/tape.h"
#include "unit/attention/cases.h"
#include "unit/ops/expect_error.h"

namespace qkv::tests {
namespace {

constexpr int64_t kBatch = 2, kQueries = 5, kKeys = 7, kWidth = 12;

struct Inputs {
  Tensor queries = parameter(normal({kBatch, kQueries, kWidth}, Rng(1)));
  Tensor keys = parameter(normal({kBatch, kKeys, 10}, Rng(2)));
  Tensor values = parameter(normal({kBatch, kKeys, 9}, Rng(3)));
};

MultiHeadOptions options(ScorerKind scorer, int64_t heads, int64_t key_heads = 0) {
  return {.width = kWidth,
          .heads = heads,
          .key_heads = key_heads,
          .key_width = 10,
          .value_width = 9,
          .scorer = scorer,
          .bias = Linear::Bias::yes};
}

// The definition: each head separately, with its own slices of the projections, and the results side by side.
Tensor loop_over_heads(const MultiHead& m, const Inputs& in, const Mask& mask, const qkv::Run& run) {
  const Tensor q = m.to_q(in.queries), k = m.to_k(in.keys), v = m.to_v(in.values);
  const int64_t d = q.size(2) / m.heads;
  std::vector<Tensor> outputs;
  for (int64_t h = 0; h < m.heads; ++h) {
    const int64_t kh = h / (m.heads / m.key_heads);
    outputs.push_back(attend(m.scorer, slice(q, 2, h * d, (h + 1) * d), slice(k, 2, kh * d, (kh + 1) * d),
                             slice(v, 2, kh * d, (kh + 1) * d), mask, run, {.path = AttendPath::composed})
                          .output);
  }
  return m.to_out(concat(outputs, 2));
}

TEST(MultiHead, IsALoopOverHeadsWithAnyScorerAndMask) {
  const Inputs in;
  const Ids lens({2}, {3, 7}), rows({2, 5}, {1, 2, 3, 4, 5, 0, 7, 7, 7, 2});
  Ids some = Ids::empty({kQueries, kKeys});
  for (int64_t i = 0; i < some.numel(); ++i) some.mutable_ptr()[i] = i % 3 == 1;
  const std::vector<std::pair<const char*, Mask>> masks{
      {"none", Mask::none()},
      {"lengths", Mask::valid_lens(lens)},
      {"lengths per query", Mask::valid_lens(rows)},
      {"causal", Mask::causal(2)},
      {"window", Mask::window(1, 1)},
      {"prefix", Mask::prefix(lens)},
      {"keep", Mask::keep(some)},
      {"drop", Mask::drop(some)},
      {"bias", Mask::bias(normal({kQueries, kKeys}, Rng(8)))},
      {"lengths, causal and bias",
       Mask::valid_lens(lens) & Mask::causal(1) & Mask::bias(normal({kQueries, kKeys}, Rng(9)))}};
  for (const ScorerKind scorer : {ScorerKind::constant, ScorerKind::additive, ScorerKind::dot, ScorerKind::scaled_dot,
                                  ScorerKind::bilinear, ScorerKind::cosine, ScorerKind::gaussian})
    for (const auto& [heads, key_heads] : {std::pair<int64_t, int64_t>{1, 1}, {3, 3}, {4, 2}, {6, 1}})
      for (const auto& [name, mask] : masks) {
        const MultiHead m(options(scorer, heads, key_heads), Rng(4));
        const std::string what = std::string(name) + ", scorer " + std::to_string(static_cast<int>(scorer)) +
                                 ", heads " + std::to_string(heads) + "/" + std::to_string(key_heads);
        const Tensor dy = normal({kBatch, kQueries, kWidth}, Rng(5));
        const auto with_gradients = [&](Tape& tape, const Tensor& y) {
          tape.backward(sum(mul(y, dy)));
          std::vector<NamedTensor> gradients{
              {"queries", tape.grad(in.queries)}, {"keys", tape.grad(in.keys)}, {"values", tape.grad(in.values)}};
          for (const auto& p : parameters(m)) gradients.push_back({p.name, tape.grad(p.tensor)});
          return gradients;
        };
        Tensor plain, fused;
        std::vector<NamedTensor> plain_gradients, fused_gradients;
        {
          Tape tape;
          plain = loop_over_heads(m, in, mask, {});
          plain_gradients = with_gradients(tape, plain);
        }
        {
          Tape tape;
          fused = m(in.queries, in.keys, in.values, mask, {});
          fused_gradients = with_gradients(tape, fused);
        }
        ASSERT_EQ(fused.shape(), Shape({kBatch, kQueries, kWidth})) << what;
        expect_near(fused, Array(plain), 1e-5, what);
        for (size_t g = 0; g < plain_gradients.size(); ++g) {
          const auto& [name_of, wanted] = plain_gradients[g];
          if (!wanted.defined()) continue;
          // A key bias adds the same to all scores of a row and leaves the softmax as it is: its gradient is 0 up to
          // rounding.
          const bool zero = name_of == "to_k.bias" && scorer != ScorerKind::cosine && scorer != ScorerKind::gaussian &&
                            scorer != ScorerKind::additive;
          if (zero) {
            EXPECT_LT(max(abs(fused_gradients[g].tensor)).item(), 1e-5f) << what;
            continue;
          }
          if (wanted.numel() == 1) {  // a sum over all weights that nearly cancels: compared by the size of its terms
            EXPECT_NEAR(fused_gradients[g].tensor.item(), wanted.item(), 2e-6 + 1e-5 * std::abs(wanted.item()))
                << what << ", gradient of " << name_of;
            continue;
          }
          expect_near(fused_gradients[g].tensor, Array(wanted), 2e-5, what + ", gradient of " + name_of);
        }
      }
}

struct Seen : Probe {
  Tensor matrix;
  void attention(std::string_view, const Weights& weights) override { matrix = weights.matrix(); }
};

TEST(MultiHead, TheBooksDemo) {
  const MultiHead m({.width = 100, .heads = 5, .dropout = 0.5f}, Rng(1));
  EXPECT_EQ(count_parameters(m), 4 * 100 * 100);
  const Tensor x = ones({2, 4, 100}), y = ones({2, 6, 100});
  Seen seen;
  EXPECT_EQ(m(x, y, y, Mask::valid_lens(Ids({2}, {3, 2})), {.probe = &seen}).shape(), Shape({2, 4, 100}));
  ASSERT_EQ(seen.matrix.shape(), Shape({2, 5, 4, 6}));
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t h = 0; h < 5; ++h)
      for (int64_t i = 0; i < 4; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < 6; ++j) {
          const float w = seen.matrix.at({b, h, i, j});
          sum += w;
          if (j >= (b == 0 ? 3 : 2)) {
            EXPECT_EQ(w, 0.f);
          }
        }
        EXPECT_NEAR(sum, 1, 1e-6);
      }
}

TEST(MultiHead, EmptySequencesAndOneTokenWork) {
  const MultiHead m({.width = 8, .heads = 2}, Rng(1));
  EXPECT_EQ(m(zeros({2, 0, 8}), zeros({2, 3, 8}), zeros({2, 3, 8}), Mask::none(), {}).shape(), Shape({2, 0, 8}));
  const Tensor nothing = m(ones({2, 3, 8}), zeros({2, 0, 8}), zeros({2, 0, 8}), Mask::none(), {});
  for (const float v : nothing.data()) EXPECT_EQ(v, 0.f);
  // With a single key the output is its value, for any query.
  const Tensor v = normal({1, 1, 8}, Rng(2));
  expect_near(m(normal({1, 1, 8}, Rng(3)), v, v, Mask::none(), {}), Array(m.to_out(m.to_v(v))), 1e-6, "one key");
}

TEST(MultiHead, DropoutDrawsTheSameDecisionsForHeadsInsideAndOutside) {
  const Tensor q = normal({2, 5, 3, 4}, Rng(1)), k = normal({2, 7, 3, 4}, Rng(2)), v = normal({2, 7, 3, 4}, Rng(3));
  const qkv::Run run{.training = true, .rng = Rng(9)};
  const auto outer = [](const Tensor& x) { return permute(x, {0, 2, 1, 3}); };
  const Tensor inner =
      attend(ScaledDot{}, q, k, v, Mask::causal(2), run, {.dropout = 0.4f, .axis = HeadAxis::inner}).output;
  const Tensor plain =
      attend(ScaledDot{}, outer(q), outer(k), outer(v), Mask::causal(2), run, {.dropout = 0.4f}).output;
  expect_same(inner, outer(plain), "dropout");
}

TEST(MultiHead, ErrorsSayWhatDoesNotFit) {
  expect_error([] { MultiHead({.width = 10, .heads = 3}, Rng(1)); },
               "[multi_head] a width of 10 is not divisible by 3 heads");
  expect_error([] { MultiHead({.width = 12, .heads = 4, .key_heads = 3}, Rng(1)); },
               "[multi_head] 4 heads are not a multiple of 3 key heads");
  const Tensor x = zeros({2, 3, 4, 5}), y = zeros({2, 3, 3, 5});
  expect_error(
      [&] { attend(ScaledDot{}, x, y, y, Mask::none(), {}, {.axis = HeadAxis::inner}); },
      "[attend] the number of query heads is not a multiple of the number of key heads: (2, 3, 4, 5) and (2, 3, 3, 5)");
  expect_error(
      [&] {
        attend(ScaledDot{}, zeros({2, 3, 5}), zeros({2, 3, 5}), zeros({2, 3, 5}), Mask::none(), {},
               {.axis = HeadAxis::inner});
      },
      "[attend] expected queries (B, L, H, D), got (2, 3, 5)");
}

TEST(Positions, AreTheBooksFormulaAtAnyOffset) {
  const Tensor p = sinusoidal_positions(60, 32), later = sinusoidal_positions(20, 32, 40);
  for (int64_t i = 0; i < 60; ++i)
    for (int64_t j = 0; j < 16; ++j) {
      const double angle = static_cast<double>(i) / std::pow(10000.0, 2.0 * static_cast<double>(j) / 32);
      EXPECT_NEAR(p.at({i, 2 * j}), std::sin(angle), 1e-7);
      EXPECT_NEAR(p.at({i, 2 * j + 1}), std::cos(angle), 1e-7);
      if (i >= 40) {
        EXPECT_EQ(later.at({i - 40, 2 * j}), p.at({i, 2 * j}));
      }
    }
  EXPECT_EQ(sinusoidal_positions(3, 5).shape(), Shape({3, 5}));  // an odd width ends with a sine
  EXPECT_NEAR(sinusoidal_positions(1, 4, 1'000'000'000).at({0, 0}), std::sin(1e9), 1e-6);
}

TEST(Positions, OneMatrixADistanceShiftsThemAll) {
  const Tensor p = sinusoidal_positions(60, 32);
  for (const int64_t distance : {1, 5, 30})
    for (int64_t j = 0; j < 16; ++j) {
      const Tensor shift = position_shift(distance, j, 32);
      for (int64_t i = 0; i + distance < 60; ++i) {
        const Tensor pair({2, 1}, {p.at({i, 2 * j}), p.at({i, 2 * j + 1})}), moved = matmul(shift, pair);
        EXPECT_NEAR(moved.ptr()[0], p.at({i + distance, 2 * j}), 1e-6);
        EXPECT_NEAR(moved.ptr()[1], p.at({i + distance, 2 * j + 1}), 1e-6);
      }
    }
}

}  // namespace
}  // namespace qkv::tests
