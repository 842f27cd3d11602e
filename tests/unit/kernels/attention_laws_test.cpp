// Laws of attention, bit for bit: neither what is hidden from a row nor how the work is cut changes the row.
#include <gtest/gtest.h>

#include <cstring>

#include "qkv/core/parallel.h"
#include "qkv/kernels/target.h"
#include "support/threads.h"
#include "unit/kernels/attention_reference.h"

namespace qkv::kernels {
namespace {

using reference::at;
using reference::Problem;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

bool same_bits(const float* a, const float* b, int64_t n) {
  return std::memcmp(a, b, static_cast<size_t>(n) * sizeof(float)) == 0;
}
bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && same_bits(a.data(), b.data(), static_cast<int64_t>(a.size()));
}

class AttentionLaw : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { force_target(GetParam()); }
  void TearDown() override { force_target(""); }

 private:
  qkv_test::ThreadsScope threads_scope_;
};

// One batch row of `big`, alone and with fewer queries and keys.
Problem part_of(const Problem& big, int64_t b, int64_t queries, int64_t keys) {
  AttentionSizes z = big.sizes;
  z.batch = 1;
  z.queries = queries;
  z.keys = keys;
  Problem p(z);
  p.scale = big.scale;
  p.dropout = big.dropout;
  p.dropout.first_row = big.dropout.first_row + static_cast<uint32_t>(b * z.heads);
  for (int64_t h = 0; h < z.heads; ++h) {
    for (int64_t i = 0; i < queries; ++i) {
      for (int64_t c = 0; c < z.width; ++c) p.q[at(p.q_strides(), 0, h, i, c)] = big.q[at(big.q_strides(), b, h, i, c)];
      for (int64_t c = 0; c < z.value_width; ++c)
        p.dout[at(p.out_strides(), 0, h, i, c)] = big.dout[at(big.out_strides(), b, h, i, c)];
    }
  }
  for (int64_t h = 0; h < z.key_heads; ++h) {
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t c = 0; c < z.width; ++c) p.k[at(p.k_strides(), 0, h, j, c)] = big.k[at(big.k_strides(), b, h, j, c)];
      for (int64_t c = 0; c < z.value_width; ++c)
        p.v[at(p.v_strides(), 0, h, j, c)] = big.v[at(big.v_strides(), b, h, j, c)];
    }
  }
  return p;
}

TEST_P(AttentionLaw, PaddingAndBatchMatesChangeNothing) {
  for (const float rate : {0.f, 0.3f}) {
    Problem big({3, 2, 1, 130, 700, 12, 20}, 3);
    big.dropout = {rate, {5, 6}, 7, 20};
    const int32_t lengths[] = {700, 333, 41};
    big.mask.interval_batch = 130;
    for (const int32_t length : lengths) big.end.insert(big.end.end(), 130, length);
    big.forward();
    big.backward();
    for (int64_t b = 0; b < 3; ++b) {
      Problem alone = part_of(big, b, 130, lengths[b]);
      alone.forward();
      alone.backward();
      for (int64_t h = 0; h < 2; ++h) {
        EXPECT_TRUE(same_bits(&alone.out[at(alone.out_strides(), 0, h, 0, 0)],
                              &big.out[at(big.out_strides(), b, h, 0, 0)], 130 * 20));
        EXPECT_TRUE(same_bits(&alone.dq[at(alone.q_strides(), 0, h, 0, 0)], &big.dq[at(big.q_strides(), b, h, 0, 0)],
                              130 * 12));
        EXPECT_TRUE(
            same_bits(&alone.lse[static_cast<size_t>(h * 130)], &big.lse[static_cast<size_t>((b * 2 + h) * 130)], 130));
      }
      EXPECT_TRUE(same_bits(&alone.dk[0], &big.dk[at(big.k_strides(), b, 0, 0, 0)], lengths[b] * 12));
      EXPECT_TRUE(same_bits(&alone.dv[0], &big.dv[at(big.v_strides(), b, 0, 0, 0)], lengths[b] * 20));
      for (int64_t j = lengths[b]; j < 700; ++j) ASSERT_EQ(big.dk[at(big.k_strides(), b, 0, j, 0)], 0.f);
    }
  }
}

TEST_P(AttentionLaw, TheNumberOfQueriesChangesNoRow) {
  Problem all({1, 2, 2, 2100, 310, 16, 24}, 5);
  all.forward();
  for (const int64_t queries : {1, 2, 7, 8, 9, 23, 24, 25, 96, 97, 130, 2047, 2048}) {
    Problem some = part_of(all, 0, queries, 310);
    some.forward();
    for (int64_t h = 0; h < 2; ++h) {
      const float *row = &some.out[at(some.out_strides(), 0, h, 0, 0)],
                  *want = &all.out[at(all.out_strides(), 0, h, 0, 0)];
      EXPECT_TRUE(same_bits(row, want, queries * 24)) << queries;
    }
  }
}

TEST_P(AttentionLaw, RowsWhoseScoresRiseFromTileToTileChangeNoOtherRow) {
  Problem all({1, 1, 1, 24, 700, 16, 16}, 6);
  all.scale = 1;
  for (int64_t j = 0; j < 700; ++j) all.k[at(all.k_strides(), 0, 0, j, 0)] = static_cast<float>(j) / 10;
  for (int64_t i = 0; i < 24; ++i) all.q[at(all.q_strides(), 0, 0, i, 0)] = i % 3 ? 0.f : 4.f;
  all.forward();
  for (int64_t i = 0; i < 24; ++i) {
    Problem one = part_of(all, 0, 1, 700);
    for (int64_t c = 0; c < 16; ++c) one.q[at(one.q_strides(), 0, 0, 0, c)] = all.q[at(all.q_strides(), 0, 0, i, c)];
    one.forward();
    EXPECT_TRUE(same_bits(one.out.data(), &all.out[at(all.out_strides(), 0, 0, i, 0)], 16)) << i;
    EXPECT_EQ(one.lse[0], all.lse[static_cast<size_t>(i)]);
    EXPECT_EQ(one.lse[0] > 200, i % 3 == 0) << "scores of row " << i << " rise or not: " << one.lse[0];
  }
}

TEST_P(AttentionLaw, OneScoreFarAboveAllBeforeItHasItsWeight) {
  for (const float above : {15.f, 60.f, 88.f, 89.f, 90.f, 100.f, 150.f, 200.f, 270.f, 300.f, 500.f, 1e4f, 1e6f}) {
    Problem p({1, 1, 1, 2, 400, 16, 16}, 9);  // to the second row all keys look the same
    p.scale = 1;
    std::fill(p.q.begin(), p.q.end(), 0.f);
    std::fill(p.k.begin(), p.k.end(), 0.f);
    p.q[at(p.q_strides(), 0, 0, 0, 0)] = 1;
    p.k[at(p.k_strides(), 0, 0, 333, 0)] = above;
    p.forward();
    const double others = std::exp(-static_cast<double>(above)), most = *std::max_element(p.v.begin(), p.v.end());
    for (int64_t c = 0; c < 16; ++c) {
      double sum = 0;
      for (int64_t j = 0; j < 400; ++j) sum += (j == 333 ? 1 : others) * p.v[at(p.v_strides(), 0, 0, j, c)];
      EXPECT_NEAR(p.out[at(p.out_strides(), 0, 0, 0, c)], sum / (1 + 399 * others), 1e-6 * most) << above;
    }
    EXPECT_NEAR(p.lse[0], above + std::log1p(399 * others), 1e-6 * above) << above;
    Problem alone = part_of(p, 0, 1, 400);
    alone.forward();
    EXPECT_TRUE(same_bits(alone.out.data(), &p.out[at(p.out_strides(), 0, 0, 0, 0)], 16)) << above;
  }
}

TEST_P(AttentionLaw, ALaterTokenCannotChangeAnEarlierOutput) {
  Problem p({1, 2, 2, 400, 400, 16, 16}, 8);
  for (int32_t i = 0; i < 400; ++i) p.end.push_back(i + 1);
  p.forward();
  const std::vector<float> out = p.out;
  for (const int64_t token : {399, 200, 30}) {
    for (int64_t h = 0; h < 2; ++h) {
      for (int64_t c = 0; c < 16; ++c) {
        p.k[at(p.k_strides(), 0, h, token, c)] = 1e4f;
        p.v[at(p.v_strides(), 0, h, token, c)] = -3e6f;
      }
    }
    p.forward();
    for (int64_t h = 0; h < 2; ++h) {
      const size_t row = at(p.out_strides(), 0, h, 0, 0);
      EXPECT_TRUE(same_bits(&p.out[row], &out[row], token * 16)) << token;
      EXPECT_FALSE(
          same_bits(&p.out[row + static_cast<size_t>(token) * 16], &out[row + static_cast<size_t>(token) * 16], 16))
          << token;
    }
  }
}

TEST_P(AttentionLaw, OneThreadEqualsTwoEqualsEight) {
  for (const auto& sizes : {AttentionSizes{1, 1, 1, 900, 1100, 32, 32}, AttentionSizes{3, 4, 2, 150, 170, 12, 8}}) {
    std::vector<std::vector<float>> first;
    double dscale = 0;
    for (const int count : {1, 2, 8}) {
      set_threads(count);
      Problem p(sizes, 9);
      p.dropout = {0.1f, {1, 2}, 3, 4};
      p.key_bias = reference::normals(sizes.batch * sizes.key_heads * sizes.keys, 10);
      p.mask.relative_head = sizes.queries + sizes.keys - 1;
      p.relative = reference::normals(sizes.heads * p.mask.relative_head, 11);
      for (int64_t i = 0; i < sizes.queries; ++i) p.end.push_back(static_cast<int32_t>(std::min(i + 20, sizes.keys)));
      p.forward();
      p.backward();
      const std::vector<std::vector<float>> now = {p.out, p.lse, p.dq, p.dk, p.dv, p.dkey_bias, p.drelative};
      if (count == 1) {
        first = now;
        dscale = p.dscale;
      }
      for (size_t i = 0; i < now.size(); ++i)
        EXPECT_TRUE(same_bits(now[i], first[i])) << "array " << i << ", threads " << count;
      EXPECT_EQ(p.dscale, dscale);
    }
  }
}

// How a key is hidden from the first half of the rows: [begin, end), a keep byte, an infinite bias. An infinite
// diagonal also hides other keys.
enum class Hide { interval, keep, bias, relative };

void hide(Problem& p, Hide how, int64_t key) {
  const AttentionSizes& z = p.sizes;
  if (how == Hide::relative) {
    p.relative = reference::normals(z.queries + z.keys - 1, 17);
    for (int64_t i = 0; i < z.queries / 2; ++i) p.relative[static_cast<size_t>(key - i + z.queries - 1)] = -INFINITY;
    return;
  }
  for (int64_t i = 0; i < z.queries; ++i) {
    if (how == Hide::interval) p.end.push_back(static_cast<int32_t>(i < z.queries / 2 ? key : z.keys));
    for (int64_t j = 0; j < z.keys && how != Hide::interval; ++j) {
      const bool hidden = j == key && i < z.queries / 2;
      if (how == Hide::keep)
        p.keep.push_back(!hidden);
      else
        p.bias.push_back(hidden ? -INFINITY : 0.25f * static_cast<float>(j % 3));
    }
  }
}

TEST_P(AttentionLaw, AHiddenKeyNeverReachesARowWhateverItHolds) {
  for (const auto& [how, form] : {std::pair{Hide::interval, ScoreForm::dot},
                                  {Hide::keep, ScoreForm::dot},
                                  {Hide::bias, ScoreForm::dot},
                                  {Hide::relative, ScoreForm::dot},
                                  {Hide::relative, ScoreForm::gaussian},
                                  {Hide::interval, ScoreForm::gaussian},
                                  {Hide::keep, ScoreForm::triangular},
                                  {Hide::bias, ScoreForm::epanechnikov}}) {
    for (const float bad : {kNaN, INFINITY, -INFINITY}) {
      for (const bool in_keys : {false, true}) {
        SCOPED_TRACE(testing::Message() << "form " << static_cast<int>(form) << " hidden by " << static_cast<int>(how)
                                        << ", value " << bad << (in_keys ? " in k" : " in v"));
        Problem p({1, 1, 1, 60, 200, 8, 12}, 12);
        p.form = form;
        p.scale = 0.3f;
        hide(p, how, 150);
        p.forward();
        p.backward();
        Problem q = p;
        (in_keys ? q.k[150 * 8 + 3] : q.v[150 * 12 + 3]) = bad;
        q.forward();
        q.backward();
        EXPECT_TRUE(same_bits(&q.out[0], &p.out[0], 30 * 12));
        EXPECT_TRUE(same_bits(&q.lse[0], &p.lse[0], 30));
        EXPECT_TRUE(same_bits(&q.dq[0], &p.dq[0], 30 * 8));
        if (how == Hide::relative) {  // the last 30 diagonals are crossed by the first 30 rows only
          EXPECT_TRUE(same_bits(&q.drelative[229], &p.drelative[229], 30));
        }
        EXPECT_EQ(q.weights(0, 0, 0), p.weights(0, 0, 0));
        for (int64_t i = 30; i < 60; ++i) {
          if (in_keys && !std::isnan(bad)) break;         // an infinite key may get weight 0 or 1
          if (form != ScoreForm::dot && !in_keys) break;  // a far key may get weight 0
          ASSERT_FALSE(std::isfinite(q.out[static_cast<size_t>(i * 12 + 3)]))
              << "a visible value must propagate, row " << i;
        }
      }
    }
  }
}

TEST_P(AttentionLaw, ANaNQueryGivesNoGradientToKeysItCannotSee) {
  Problem p({1, 1, 1, 30, 40, 8, 8}, 13);
  for (int32_t i = 0; i < 30; ++i) p.end.push_back(i < 29 ? 40 : 20);
  p.q[29 * 8] = kNaN;
  p.forward();
  p.backward();
  for (int64_t c = 0; c < 8; ++c) EXPECT_TRUE(std::isnan(p.out[static_cast<size_t>(29 * 8 + c)]));
  for (size_t x = 0; x < 20 * 8; ++x) EXPECT_TRUE(std::isnan(p.dk[x]));
  for (size_t x = 20 * 8; x < 40 * 8; ++x) EXPECT_TRUE(std::isfinite(p.dk[x]) && std::isfinite(p.dv[x]));
  for (size_t x = 0; x < 29 * 8; ++x) EXPECT_TRUE(std::isfinite(p.out[x]));
}

TEST_P(AttentionLaw, InfiniteAndNaNBiasPropagate) {
  for (const float bad : {kNaN, INFINITY}) {
    Problem p({1, 1, 1, 5, 9, 4, 4}, 14);
    p.bias.assign(45, 0.f);
    p.bias[2 * 9 + 4] = bad;
    p.forward();
    for (size_t i = 0; i < 5; ++i) {
      for (size_t c = 0; c < 4; ++c) EXPECT_EQ(std::isnan(p.out[i * 4 + c]), i == 2);
    }
  }
}

TEST_P(AttentionLaw, ARowThatSeesNothingGivesZeros) {
  Problem p({1, 2, 1, 4, 6, 3, 5}, 15);
  p.end = {6, 0, 3, 0};
  p.v[0] = kNaN;
  p.forward();
  EXPECT_EQ(p.empty, 4);
  p.backward();
  for (int64_t h = 0; h < 2; ++h) {
    for (const int64_t i : {1, 3}) {
      EXPECT_EQ(p.lse[static_cast<size_t>(h * 4 + i)], -INFINITY);
      for (int64_t c = 0; c < 5; ++c) EXPECT_EQ(p.out[at(p.out_strides(), 0, h, i, c)], 0.f);
      for (int64_t c = 0; c < 3; ++c) EXPECT_EQ(p.dq[at(p.q_strides(), 0, h, i, c)], 0.f);
      EXPECT_EQ(p.weights(0, h, i), std::vector<float>(6, 0.f));
    }
  }
}

TEST_P(AttentionLaw, AWindowOfNoKeysAtAllIsNoError) {
  Problem p({2, 1, 1, 3, 0, 4, 4}, 16);
  p.forward();
  EXPECT_EQ(p.empty, 6);
  p.backward();
  for (const float x : p.out) EXPECT_EQ(x, 0.f);
  for (const float x : p.dq) EXPECT_EQ(x, 0.f);
}

INSTANTIATE_TEST_SUITE_P(Targets, AttentionLaw, testing::ValuesIn(available_targets()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace qkv::kernels
