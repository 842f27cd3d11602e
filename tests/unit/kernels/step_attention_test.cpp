// One query per row over scattered keys: correct against double, the same bits alone and among others, on every kernel
// target.
#include "qkv/kernels/step_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "qkv/kernels/target.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/tensor.h"

namespace qkv::kernels {
namespace {

class StepAttentionTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { force_target(GetParam()); }
  void TearDown() override { force_target(""); }
};

// Rows with different numbers of keys, in slots that are shared, repeated and out of order.
struct Problem {
  StepAttention sizes;
  int64_t rows, stride, slot_count;
  Tensor q, k, v;
  std::vector<int32_t> slots, counts;

  Problem(int64_t heads, int64_t key_heads, int64_t width, int64_t rows, int64_t stride)
      : sizes{heads, key_heads, width, 0.37f},
        rows(rows),
        stride(stride),
        slot_count(2 * stride + 3),
        q(normal({rows, heads * width}, Rng(1))),
        k(normal({slot_count, key_heads * width}, Rng(2))),
        v(normal({slot_count, key_heads * width}, Rng(3))) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t j = 0; j < stride; ++j) slots.push_back(static_cast<int32_t>((7 * r + 5 * j) % slot_count));
      counts.push_back(static_cast<int32_t>(stride - r % stride));
    }
  }
  StepKeys keys() const { return {k.ptr(), v.ptr(), slots.data(), stride, counts.data()}; }
  std::vector<float> result(int64_t begin, int64_t end) const {
    std::vector<float> out(static_cast<size_t>(q.numel()), -7);
    step_attention(sizes, q.ptr(), keys(), out.data(), begin, end);
    return out;
  }
  double wanted(int64_t r, int64_t h, int64_t c) const {
    const int64_t D = sizes.width, key = h / (sizes.heads / sizes.key_heads) * D, row = sizes.key_heads * D;
    double sum = 0, mean = 0;
    for (int64_t j = 0; j < counts[static_cast<size_t>(r)]; ++j) {
      const int64_t at = slots[static_cast<size_t>(r * stride + j)] * row + key;
      double score = 0;
      for (int64_t i = 0; i < D; ++i)
        score += static_cast<double>(q.ptr()[(r * sizes.heads + h) * D + i]) * k.ptr()[at + i];
      const double e = std::exp(static_cast<double>(sizes.scale) * score);
      sum += e;
      mean += e * v.ptr()[at + c];
    }
    return mean / sum;
  }
};

TEST_P(StepAttentionTest, IsTheWeightedMeanOfTheValues) {
  for (const int64_t stride : {1, 2, 4, 5, 8, 9, 31})
    for (const int64_t width : {1, 3, 8, 16, 20, 32, 56, 64, 67})
      for (const auto& [heads, key_heads] : {std::pair{1, 1}, {4, 4}, {9, 9}, {6, 2}, {4, 1}}) {
        const Problem p(heads, key_heads, width, 5, stride);
        const std::vector<float> out = p.result(0, p.rows);
        for (int64_t r = 0; r < p.rows; ++r)
          for (int64_t h = 0; h < heads; ++h)
            for (int64_t c = 0; c < width; ++c)
              ASSERT_NEAR(out[static_cast<size_t>((r * heads + h) * width + c)], p.wanted(r, h, c), 3e-6)
                  << stride << " keys, width " << width << ", heads " << heads << " of " << key_heads << ", row " << r;
      }
}

TEST_P(StepAttentionTest, ARowHasTheSameBitsAloneAndAmongOthers) {
  const Problem p(4, 2, 33, 9, 13);
  const std::vector<float> all = p.result(0, 9);
  for (int64_t r = 0; r < 9; ++r) {
    const std::vector<float> one = p.result(r, r + 1);
    for (int64_t i = 0; i < std::ssize(one); ++i)
      ASSERT_EQ(one[static_cast<size_t>(i)], i / (4 * 33) == r ? all[static_cast<size_t>(i)] : -7) << "row " << r;
  }
}

TEST_P(StepAttentionTest, AHeadHasTheSameBitsAloneAndBesideOthers) {
  for (const int64_t stride : {1, 2, 3, 8, 17})
    for (const int64_t width : {4, 8, 16, 32, 56, 64})
      for (const int64_t heads : {4, 5, 8}) {
        const Problem p(heads, heads, width, 3, stride);
        const std::vector<float> all = p.result(0, p.rows);
        for (int64_t h = 0; h < heads; ++h) {
          Problem one(1, 1, width, 3, stride);
          const auto head_of = [&](const Tensor& x) { return slice(x, 1, h * width, (h + 1) * width); };
          one.q = head_of(p.q);
          one.k = head_of(p.k);
          one.v = head_of(p.v);
          const std::vector<float> alone = one.result(0, one.rows);
          for (int64_t r = 0; r < p.rows; ++r)
            for (int64_t c = 0; c < width; ++c)
              ASSERT_EQ(all[static_cast<size_t>((r * heads + h) * width + c)],
                        alone[static_cast<size_t>(r * width + c)])
                  << stride << " keys, width " << width << ", head " << h << " of " << heads << ", row " << r;
        }
      }
}

// One head of four at a time has NaN or infinite scores; the others keep their bits.
TEST_P(StepAttentionTest, AHeadWithoutNumbersLeavesTheOthersAlone) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t keys : {1, 2, 5, 9}) {
    const Problem whole(4, 4, 8, 1, keys);
    const std::vector<float> wanted = whole.result(0, 1);
    for (int64_t h = 0; h < 4; ++h)
      for (const float odd : {kNaN, -kInfinity, kInfinity})
        for (int64_t j = 0; j < keys; ++j) {
          Problem p = whole;
          p.q = whole.q.copied();
          p.k = whole.k.copied();
          for (int64_t c = 0; c < 8; ++c) p.q.mutable_ptr()[h * 8 + c] = std::abs(p.q.ptr()[h * 8 + c]);
          p.k.mutable_ptr()[p.slots[static_cast<size_t>(j)] * 32 + h * 8] = odd;
          const std::vector<float> out = p.result(0, 1);
          for (int64_t i = 0; i < 32; ++i) {
            SCOPED_TRACE(testing::Message() << odd << " at key " << j << " of " << keys);
            const float got = out[static_cast<size_t>(i)];
            if (i / 8 != h)
              ASSERT_EQ(got, wanted[static_cast<size_t>(i)]);
            else if (odd != -kInfinity)
              ASSERT_TRUE(std::isnan(got));
            else if (keys == 1)
              ASSERT_EQ(got, 0);
            else
              ASSERT_NEAR(got, p.wanted(0, h, i % 8), 3e-6);
          }
        }
  }
}

TEST_P(StepAttentionTest, NoKeysGiveZeroAndNaNStays) {
  Problem p(2, 2, 8, 3, 5);
  p.counts[1] = 0;
  p.q.mutable_ptr()[2 * 16 + 3] = std::numeric_limits<float>::quiet_NaN();  // row 2, head 0
  const std::vector<float> out = p.result(0, 3);
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_TRUE(std::isfinite(out[i]));
    EXPECT_EQ(out[16 + i], 0);
    EXPECT_EQ(std::isnan(out[32 + i]), i < 8);
  }
}

TEST_P(StepAttentionTest, HugeScoresPickTheirKey) {
  Problem p(1, 1, 8, 1, 5);
  p.sizes.scale = 1e30f;
  double most = -std::numeric_limits<double>::infinity();
  int32_t best = 0;
  for (const int32_t slot : p.slots) {
    double score = 0;
    for (int64_t i = 0; i < 8; ++i) score += static_cast<double>(p.q.ptr()[i]) * p.k.ptr()[slot * 8 + i];
    if (score > most) {
      most = score;
      best = slot;
    }
  }
  const std::vector<float> out = p.result(0, 1);
  for (int64_t c = 0; c < 8; ++c) EXPECT_EQ(out[static_cast<size_t>(c)], p.v.ptr()[best * 8 + c]);
}

INSTANTIATE_TEST_SUITE_P(Targets, StepAttentionTest, testing::ValuesIn(available_targets()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace qkv::kernels
