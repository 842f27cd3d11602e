// Positions inside attention: learned biases by distance, linear biases, rotations; and how much memory they take.
#include "qkv/attention/relative_positions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/core/parallel.h"
#include "qkv/io/safetensors.h"
#include "qkv/ops/diagonals.h"
#include "qkv/ops/rotary.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/pool.h"
#include "qkv/tensor/tape.h"
#include "support/files.h"
#include "support/threads.h"
#include "unit/attention/cases.h"

namespace qkv::tests {
namespace {

using qkv_test::error_of;

double product(const Tensor& a, int64_t i, const Tensor& b, int64_t j) {
  const int64_t width = a.size(3);
  double sum = 0;
  for (int64_t c = 0; c < width; ++c) sum += double{a.ptr()[i * width + c]} * b.ptr()[j * width + c];
  return sum;
}

}  // namespace

TEST(RelativeBias, StartsAtZeroAndCountsFarKeysAsTheFarthest) {
  const RelativeBias bias(2, 3);
  EXPECT_EQ(bias.table.shape(), (Shape{2, 7}));
  for (float x : bias.table.data()) EXPECT_EQ(x, 0);
  for (int64_t n = 0; n < 14; ++n) detail::writable(bias.table)[n] = static_cast<float>(n);
  // Distances -4 .. 5 for 5 queries and 6 keys.
  expect_same(bias(5, 6), Tensor({2, 10}, {0, 0, 1, 2, 3, 4, 5, 6, 6, 6, 7, 7, 8, 9, 10, 11, 12, 13, 13, 13}),
              "from 0");
  // One query at position 5: distances -5 .. 0.
  expect_same(bias(1, 6, 5), Tensor({2, 6}, {0, 0, 0, 1, 2, 3, 7, 7, 7, 8, 9, 10}), "from 5");
}

TEST(RelativeBias, AQueryOfACachedStepSeesItsRowOfTheWhole) {
  RelativeBias bias(2, 4);
  for (float* x = bias.table.mutable_ptr(); x != bias.table.mutable_ptr() + bias.table.numel(); ++x) {
    *x = Rng(3).normal(static_cast<uint64_t>(x - bias.table.mutable_ptr()));
  }
  const Tensor q = normal({1, 2, 9, 4}, Rng(1)), k = normal({1, 2, 9, 4}, Rng(2)), v = normal({1, 2, 9, 3}, Rng(4));
  const Alibi alibi{2};
  for (const auto& at : {std::function<Tensor(int64_t, int64_t, int64_t)>(bias),
                         std::function<Tensor(int64_t, int64_t, int64_t)>(alibi)}) {
    const Tensor all = attend(ScaledDot{}, q, k, v, Mask::relative(at(9, 9, 0)) & Mask::causal()).output;
    for (int64_t i = 0; i < 9; ++i) {
      const auto some = [](const Tensor& x, int64_t first, int64_t count) { return slice(x, 2, first, first + count); };
      const Tensor one =
          attend(ScaledDot{}, some(q, i, 1), some(k, 0, i + 1), some(v, 0, i + 1), Mask::relative(at(1, i + 1, i)))
              .output;
      expect_near(one, Array(some(all, i, 1)), 1e-6, text("step ", i));
    }
  }
}

TEST(RelativeBias, LearnsThroughAttention) {
  const RelativeBias bias(2, 2);
  const Tensor q = normal({2, 2, 4, 3}, Rng(1)), k = normal({2, 2, 6, 3}, Rng(2)), v = normal({2, 2, 6, 3}, Rng(3));
  const Tensor dense = parameter(zeros({1, 2, 4, 6})), dy = normal({2, 2, 4, 3}, Rng(4));
  Tape tape;
  tape.backward(attend(ScaledDot{}, q, k, v, Mask::relative(bias(4, 6)) & Mask::bias(dense)).output, dy);
  const Tensor by_pair = tape.grad(dense);
  Array expected(Shape{2, 5});
  for (int64_t h = 0; h < 2; ++h)
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t j = 0; j < 6; ++j)
        expected[h * 5 + std::min<int64_t>(std::max<int64_t>(j - i, -2), 2) + 2] += by_pair.at({0, h, i, j});
  expect_near(tape.grad(bias.table), expected, 1e-5, "sums of the pairs");
}

TEST(Alibi, SlopesArePowersOfTwoAndForOtherHeadsThoseBetween) {
  expect_same(Alibi{8}.slopes(), Tensor({8}, {0.5f, 0.25f, 0.125f, 0.0625f, 0x1p-5f, 0x1p-6f, 0x1p-7f, 0x1p-8f}), "8");
  expect_same(Alibi{1}.slopes(), Tensor({1}, {0x1p-8f}), "1");
  // The slopes for 4 heads, then the first and third slope for 8.
  expect_same(Alibi{6}.slopes(), Tensor({6}, {0.25f, 0x1p-4f, 0x1p-6f, 0x1p-8f, 0.5f, 0.125f}), "6");
  expect_same(Alibi{2}(2, 3), Tensor({2, 4}, {-0x1p-4f, 0, -0x1p-4f, -0x1p-3f, -0x1p-8f, 0, -0x1p-8f, -0x1p-7f}),
              "distances -1 to 2");
  expect_same(Alibi{1}(1, 3, 2), Tensor({1, 3}, {-0x1p-7f, -0x1p-8f, 0}), "distances -2 to 0");
}

TEST(Rotary, AProductDependsOnTheDistanceAlone) {
  const Tensor one_q = normal({1, 1, 1, 32}, Rng(1)), one_k = normal({1, 1, 1, 32}, Rng(2));
  const Tensor q = rotate(repeat_interleave(one_q, 40, 2), HeadAxis::outer),
               k = rotate(repeat_interleave(one_k, 40, 2), HeadAxis::outer);
  for (int64_t i = 0; i < 40; ++i)
    for (int64_t j = 0; j < 40; ++j) {
      const int64_t back = std::min(i, j);
      EXPECT_NEAR(product(q, i, k, j), product(q, i - back, k, j - back), 1e-5) << i << " " << j;
    }
  EXPECT_GT(std::abs(product(q, 3, k, 0) - product(q, 0, k, 0)), 0.1);
  // Far along the sequence too: the angles are computed in double.
  const Tensor far_q = rotate(one_q, HeadAxis::outer, 1000003), far_k = rotate(one_k, HeadAxis::outer, 1000000);
  EXPECT_NEAR(product(far_q, 0, far_k, 0), product(q, 3, k, 0), 1e-5);
}

TEST(Rotary, BothLayoutsAndAnOffsetGiveTheSameBits) {
  const Tensor x = normal({2, 3, 7, 10}, Rng(5)), inner = permute(x, {0, 2, 1, 3});
  const Tensor y = rotate(x, HeadAxis::outer, 4);
  expect_same(permute(rotate(inner, HeadAxis::inner, 4), {0, 2, 1, 3}), y, "layouts");
  expect_same(rotate(slice(x, 2, 5, 7), HeadAxis::outer, 9), slice(y, 2, 5, 7), "offset");
}

TEST(Rotary, Errors) {
  EXPECT_EQ(error_of([] {
              rotate(zeros({2, 3, 4}), HeadAxis::inner);
            }),
            "[rotate] expected (B, L, H, D), got (2, 3, 4)");
  EXPECT_EQ(error_of([] {
              rotate(zeros({1, 2, 3, 5}), HeadAxis::outer);
            }),
            "[rotate] pairs need an even width, got (1, 2, 3, 5)");
  EXPECT_EQ(error_of([] {
              rotate(zeros({1, 2, 3, 4}), HeadAxis::outer, 0, {.base = -1});
            }),
            "[rotate] the base must be positive, got -1");
  EXPECT_EQ(error_of([] {
              clipped_diagonals(zeros({2, 4}), 3, 3);
            }),
            "[clipped_diagonals] expected a table (H, 2 m + 1), got (2, 4)");
  EXPECT_EQ(error_of([] {
              dense_of_diagonals(zeros({2, 4}), 3, 3);
            }),
            "[dense_of_diagonals] expected 5 diagonals for the weights (3, 3), got (2, 4)");
  EXPECT_EQ(error_of([] { RelativeBias(0, 3); }),
            "[relative_bias] expected at least one head and a distance of at least 0, got 0 and 3");
  EXPECT_EQ(error_of([] { Alibi{0}(2, 2); }), "[alibi] expected at least one head, got 0");
}

TEST(RelativePositions, TheNumberOfThreadsChangesNoBit) {
  const qkv_test::ThreadsScope threads_scope;
  std::vector<Tensors> results;
  for (int count : {1, 2, 8}) {
    set_threads(count);
    const RelativeBias bias(2, 20);
    const Tensor q = parameter(normal({1, 700, 2, 16}, Rng(1))), k = parameter(normal({1, 700, 2, 16}, Rng(2)));
    const Tensor v = normal({1, 700, 2, 8}, Rng(3));
    Tape tape;
    const Tensor y = attend(ScaledDot{}, rotate(q, HeadAxis::inner), rotate(k, HeadAxis::inner), v,
                            Mask::causal() & Mask::relative(bias(700, 700)) & Mask::relative(Alibi{2}(700, 700)), {},
                            {.axis = HeadAxis::inner})
                         .output;
    tape.backward(y, normal(y.shape(), Rng(4)));
    results.push_back({y, tape.grad(q), tape.grad(k), tape.grad(bias.table)});
  }
  for (size_t n = 0; n < results[0].size(); ++n)
    for (size_t c : {1u, 2u}) expect_same(results[c][n], results[0][n], text("result ", n));
}

TEST(RelativePositions, ALongSequenceTakesMemoryInProportion) {
  const int64_t n = 8192, width = 8;
  Pool pool;
  {
    const PoolScope scope(pool);
    const RelativeBias bias(1, 64);
    const Tensor q = parameter(normal({1, 1, n, width}, Rng(1))), k = parameter(normal({1, 1, n, width}, Rng(2)));
    const Tensor v = parameter(normal({1, 1, n, width}, Rng(3)));
    Tape tape;
    const Mask mask =
        Mask::causal() & Mask::window(1023, 0) & Mask::relative(bias(n, n)) & Mask::relative(Alibi{1}(n, n));
    tape.backward(attend(ScaledDot{}, q, k, v, mask).output, ones({1, 1, n, width}));
    EXPECT_EQ(tape.grad(bias.table).numel(), 129);
  }
  EXPECT_GT(pool.bytes(), 10 * n * width);
  EXPECT_LT(pool.bytes(),
            40 * n * width * static_cast<int64_t>(sizeof(float)));  // a matrix would be 1024 n width floats
}

TEST(RelativePositions, AgreeWithPyTorch) {
  const SafetensorsFile file(QKV_SOURCE_DIR "/tests/golden/positions.safetensors");
  for (const std::string name : {"relative", "alibi", "rotary", "rotary_halves"})
    for (AttendPath path : {AttendPath::fused, AttendPath::composed}) {
      const auto leaf = [&](const char* part) { return parameter(file.tensor(name + "." + part)); };
      const auto golden = [&](const char* part) { return Array(file.tensor(name + "." + part)); };
      const Tensor q = leaf("q"), k = leaf("k"), v = leaf("v");
      const int64_t queries = q.size(2), keys = k.size(2);
      RelativeBias bias;
      if (name == "relative") bias.table = leaf("table");
      Tape tape;
      Mask mask;
      if (name == "relative") mask = Mask::relative(bias(queries, keys));
      if (name == "alibi") mask = Mask::causal() & Mask::relative(Alibi{q.size(1)}(queries, keys));
      const bool turn = name.starts_with("rotary");
      const Rotation rotation{.pairs = name == "rotary" ? RotaryPairs::neighbours : RotaryPairs::halves};
      const Tensor y = attend(ScaledDot{}, turn ? rotate(q, HeadAxis::outer, 6, rotation) : q,
                              turn ? rotate(k, HeadAxis::outer, 0, rotation) : k, v, mask, {}, {.path = path})
                           .output;
      tape.backward(y, file.tensor(name + ".dy"));
      expect_near(y, golden("output"), 1e-5, name);
      expect_near(tape.grad(q), golden("dq"), 1e-5, name + ", dq");
      expect_near(tape.grad(k), golden("dk"), 1e-5, name + ", dk");
      expect_near(tape.grad(v), golden("dv"), 1e-5, name + ", dv");
      if (name == "relative") expect_near(tape.grad(bias.table), golden("dtable"), 1e-5, name + ", dtable");
    }
}

}  // namespace qkv::tests
