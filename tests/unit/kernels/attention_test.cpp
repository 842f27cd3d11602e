// Fused attention against its plain definition: values, log-sum-exp, weights and every gradient, for every kernel
// target.
#include <gtest/gtest.h>

#include "qkv/kernels/target.h"
#include "unit/kernels/attention_reference.h"

namespace qkv::kernels {
namespace {

using reference::Layout;
using reference::Plain;
using reference::Problem;

template <class Got>
void expect_near(const char* what, const std::vector<Got>& got, const std::vector<double>& want, double tolerance,
                 double absolute = 5e-6) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double most = 0;
  for (const double x : want) most = std::isfinite(x) ? std::max(most, std::fabs(x)) : most;
  for (size_t i = 0; i < want.size(); ++i) {
    const double allowed = tolerance * (std::fabs(want[i]) + most) + absolute;
    const bool equal =
        want[i] == -INFINITY ? got[i] == -INFINITY : std::fabs(static_cast<double>(got[i]) - want[i]) <= allowed;
    ASSERT_TRUE(equal) << what << "[" << i << "] = " << got[i] << ", expected " << want[i];
  }
}

void expect_plain(Problem& p, double tolerance = 1e-5) {
  const Plain want = plain(p);
  p.forward();
  EXPECT_EQ(p.empty, want.empty);
  expect_near("out", p.out, want.out, tolerance);
  expect_near("lse", p.lse, want.lse, tolerance);
  const AttentionSizes& z = p.sizes;
  for (int64_t row = 0; row < z.batch * z.heads * z.queries; row += 1 + row / 2) {
    const std::vector<float> weights =
        p.weights(row / (z.heads * z.queries), row / z.queries % z.heads, row % z.queries);
    const auto from = want.weights.begin() + row * z.keys;
    expect_near("weights", weights, std::vector<double>(from, from + z.keys), 1e-6, 0);
    for (int64_t j = 0; j < z.keys; ++j) {
      ASSERT_TRUE(from[j] != 0 || weights[static_cast<size_t>(j)] == 0) << "weight of hidden key " << j;
    }
  }
  p.backward();
  expect_near("dq", p.dq, want.dq, tolerance);
  expect_near("dk", p.dk, want.dk, tolerance);
  expect_near("dv", p.dv, want.dv, tolerance);
  expect_near("dbias", p.dbias, want.dbias, tolerance);
  expect_near("dkey_bias", p.dkey_bias, want.dkey_bias, tolerance);
  expect_near("drelative", p.drelative, want.drelative, tolerance);
  EXPECT_NEAR(p.dscale, want.dscale, 1e-4 * (std::fabs(want.dscale) + 1));
}

void causal(Problem& p, int64_t offset = 0) {
  p.end.resize(static_cast<size_t>(p.sizes.queries));
  for (int64_t i = 0; i < p.sizes.queries; ++i) {
    p.end[static_cast<size_t>(i)] = static_cast<int32_t>(std::clamp<int64_t>(i + offset + 1, 0, p.sizes.keys));
  }
}

void window(Problem& p, int32_t left, int32_t right) {
  const auto keys = static_cast<int32_t>(p.sizes.keys);
  for (int32_t i = 0; i < p.sizes.queries; ++i) {
    p.begin.push_back(std::min(std::max(i - left, 0), keys));
    p.end.push_back(std::min(i + right + 1, keys));
  }
}

// Lengths per batch row, some of them 0.
void lengths(Problem& p, uint64_t seed) {
  const Rng rng(seed);
  for (int64_t b = 0; b < p.sizes.batch; ++b) {
    const auto length = static_cast<int32_t>(
        b % 3 == 1 ? 0 : rng.below(static_cast<uint64_t>(p.sizes.keys) + 1, static_cast<uint64_t>(b)));
    for (int64_t i = 0; i < p.sizes.queries; ++i) p.end.push_back(length);
  }
  p.mask.interval_batch = p.sizes.queries;
}

class AttentionKernel : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { force_target(GetParam()); }
  void TearDown() override { force_target(""); }
};

TEST_P(AttentionKernel, EqualsThePlainDefinitionOverRandomShapes) {
  const Rng rng(11);
  for (uint64_t t = 0; t < 40; ++t) {
    const auto pick = [&](uint64_t n, uint64_t salt) { return static_cast<int64_t>(rng.below(n, 16 * t + salt)); };
    const int64_t key_heads = 1 + pick(2, 0), width = 1 + pick(20, 1), value_width = 1 + pick(20, 2);
    Problem p(
        {1 + pick(3, 3), key_heads * (1 + pick(3, 4)), key_heads, 1 + pick(60, 5), 1 + pick(90, 6), width, value_width},
        100 + t);
    p.layout = pick(2, 7) ? Layout::rows_first : Layout::heads_first;
    SCOPED_TRACE(testing::Message() << p.sizes.queries << " x " << p.sizes.keys << ", widths " << width << " "
                                    << value_width);
    expect_plain(p);
  }
}

TEST_P(AttentionKernel, EqualsThePlainDefinitionOverManyTilesAndBlocks) {
  for (const auto& [queries, keys] :
       {std::pair<int64_t, int64_t>{200, 700}, {97, 145}, {96, 144}, {1, 1300}, {300, 5}, {193, 289}}) {
    SCOPED_TRACE(testing::Message() << queries << " x " << keys);
    Problem p({1, 2, 1, queries, keys, 8, 16}, 7);
    p.scale = 1.5f;
    expect_plain(p, 2e-5);
  }
}

TEST_P(AttentionKernel, SeesTheKeysOfItsIntervalsOnly) {
  for (int64_t offset : {-3, 0, 5}) {
    Problem p({2, 2, 1, 130, 150, 9, 7}, 21);
    causal(p, offset);
    expect_plain(p, 2e-5);
  }
  for (const auto& [left, right] : {std::pair{0, 0}, {3, 2}, {40, 0}, {0, 200}}) {
    Problem p({1, 3, 3, 170, 320, 16, 8}, 22);
    window(p, left, right);
    expect_plain(p, 2e-5);
  }
  Problem p({5, 2, 2, 9, 40, 4, 4}, 23);
  lengths(p, 5);
  expect_plain(p);
}

TEST_P(AttentionKernel, TakesKeepMasksAndBiasesSharedOverBatchAndHeads) {
  for (int shared = 0; shared < 4; ++shared) {
    Problem p({2, 4, 2, 30, 37, 6, 10}, 31);
    const AttentionSizes& z = p.sizes;
    const int64_t plane = z.queries * z.keys;
    p.mask.bias_head = shared & 1 ? plane : 0;
    p.mask.bias_batch = shared & 2 ? (shared & 1 ? z.heads : 1) * plane : 0;
    p.bias = reference::normals((shared & 1 ? z.heads : 1) * (shared & 2 ? z.batch : 1) * plane, 32);
    for (size_t i = 0; i < p.bias.size(); i += 7) p.bias[i] = -INFINITY;
    for (int64_t j = 0; j < z.keys; ++j) p.bias[static_cast<size_t>(3 * z.keys + j)] = -INFINITY;
    p.key_bias = reference::normals(z.batch * z.key_heads * z.keys, 33);
    p.mask.keep_head = p.mask.bias_head;
    p.mask.keep_batch = p.mask.bias_batch;
    for (size_t i = 0; i < p.bias.size(); ++i) p.keep.push_back(i % 5 != 0);
    causal(p, 4);
    expect_plain(p, 2e-5);
    EXPECT_GT(p.empty, 0);
  }
}

// A random relative bias: one per head if bit 0 of `shared` is set, one per batch row if bit 1 is.
void relative(Problem& p, int shared, uint64_t seed) {
  const AttentionSizes& z = p.sizes;
  const int64_t count = z.queries + z.keys - 1;
  p.mask.relative_head = shared & 1 ? count : 0;
  p.mask.relative_batch = shared & 2 ? (shared & 1 ? z.heads : 1) * count : 0;
  p.relative = reference::normals((shared & 1 ? z.heads : 1) * (shared & 2 ? z.batch : 1) * count, seed);
}

TEST_P(AttentionKernel, TakesARelativeBiasSharedOverBatchAndHeads) {
  for (int shared = 0; shared < 4; ++shared)
    for (const auto& [queries, keys] :
         {std::pair<int64_t, int64_t>{30, 37}, {37, 30}, {1, 1}, {1, 150}, {25, 1}, {200, 300}}) {
      SCOPED_TRACE(testing::Message() << queries << " x " << keys << ", shared " << shared);
      Problem p({2, 4, 2, queries, keys, 6, 10}, 41);
      relative(p, shared, 42);
      expect_plain(p, 2e-5);
    }
}

TEST_P(AttentionKernel, TakesARelativeBiasBesideEverythingElse) {
  for (const ScoreForm form : {ScoreForm::dot, ScoreForm::gaussian}) {
    Problem p({2, 4, 2, 120, 170, 6, 10}, 43);
    const AttentionSizes& z = p.sizes;
    p.form = form;
    relative(p, 1, 44);
    for (size_t t = 0; t < p.relative.size(); t += 11) p.relative[t] = -INFINITY;
    p.bias = reference::normals(z.queries * z.keys, 45);
    for (int64_t j = 0; j < z.keys; ++j) p.bias[static_cast<size_t>(3 * z.keys + j)] = -INFINITY;
    p.key_bias = reference::normals(z.batch * z.key_heads * z.keys, 46);
    for (int64_t n = 0; n < z.queries * z.keys; ++n) p.keep.push_back(n % 5 != 0);
    p.dropout = {0.2f, {1, 2}, 3, 4};
    window(p, 60, 9);
    expect_plain(p, 2e-5);
    EXPECT_GT(p.empty, 0);
  }
}

TEST_P(AttentionKernel, ARelativeBiasHasTheBitsOfTheDenseOne) {
  Problem p({2, 2, 1, 130, 310, 16, 8}, 47);
  const AttentionSizes& z = p.sizes;
  relative(p, 1, 48);
  p.relative[77] = -INFINITY;
  Problem dense = p;
  dense.relative.clear();
  dense.mask.bias_head = z.queries * z.keys;
  for (int64_t h = 0; h < z.heads; ++h)
    for (int64_t i = 0; i < z.queries; ++i)
      for (int64_t j = 0; j < z.keys; ++j) {
        dense.bias.push_back(p.relative[static_cast<size_t>(h * p.mask.relative_head + j - i + z.queries - 1)]);
      }
  for (Problem* x : {&p, &dense}) {
    x->forward();
    x->backward();
  }
  EXPECT_EQ(p.out, dense.out);
  EXPECT_EQ(p.lse, dense.lse);
  EXPECT_EQ(p.dq, dense.dq);
  EXPECT_EQ(p.dk, dense.dk);
  EXPECT_EQ(p.dv, dense.dv);
  EXPECT_EQ(p.weights(1, 1, 99), dense.weights(1, 1, 99));
}

TEST_P(AttentionKernel, DropsTheWeightsThatPhiloxSays) {
  for (const float rate : {0.1f, 0.5f, 0.97f}) {
    Problem p({2, 3, 3, 50, 301, 8, 5}, 41);
    p.dropout = {rate, {123, 456}, 9, 1000};
    window(p, 30, 401);
    expect_plain(p, 3e-5);
  }
}

TEST_P(AttentionKernel, ScoresByDistance) {
  for (const ScoreForm form :
       {ScoreForm::gaussian, ScoreForm::boxcar, ScoreForm::triangular, ScoreForm::epanechnikov}) {
    for (const int64_t width : {1, 2, 3, 11}) {
      SCOPED_TRACE(testing::Message() << "form " << static_cast<int>(form) << ", width " << width);
      Problem p({2, 2, 1, 40, 170, width, 3}, 51);
      p.form = form;
      p.scale = form == ScoreForm::gaussian ? 0.9f : 0.37f;
      p.dropout.rate = width == 2 ? 0.2f : 0.f;
      p.key_bias = reference::normals(2 * 170, 52);
      causal(p, 50);
      expect_plain(p, 1e-4);
    }
  }
}

TEST_P(AttentionKernel, ATriangularKernelHasNoSlopeWhereQueryAndKeyMeet) {
  Problem p({1, 1, 1, 1, 3, 1, 1}, 61);
  p.form = ScoreForm::triangular;
  p.q = {0.f};
  p.k = {0.f, 1.f, -1.f};
  p.v = {1.f, 2.f, 4.f};
  p.dout = {1.f};
  p.forward();
  EXPECT_FLOAT_EQ(p.out[0], (1.f + 0.5f * 2.f + 0.5f * 4.f) / 2.f);
  p.backward();
  for (const float x : p.dk) EXPECT_TRUE(std::isfinite(x));
  EXPECT_EQ(p.dk[0], 0.f);
}

TEST_P(AttentionKernel, KeepsLargeAndSmallScoresApart) {
  Problem p({1, 1, 1, 20, 600, 8, 8}, 71);
  p.scale = 30;  // scores in the hundreds, with maxima growing from tile to tile
  for (size_t j = 0; j < p.k.size(); ++j) p.k[j] *= 1 + static_cast<float>(j) / 500;
  const Plain want = plain(p);
  p.forward();
  expect_near("out", p.out, want.out, 5e-4);
  expect_near("lse", p.lse, want.lse, 1e-6);
}

TEST_P(AttentionKernel, OneRowOfManyKeysHasThePlainWeights) {
  Problem p({1, 1, 1, 1, 32768, 64, 64}, 81);
  p.scale = 0.125f;
  p.forward();
  const std::vector<float> got = p.weights(0, 0, 0);
  std::vector<double> want(got.size());
  double sum = 0;
  for (size_t j = 0; j < want.size(); ++j) {
    double dot = 0;
    for (size_t c = 0; c < 64; ++c) dot += static_cast<double>(p.q[c]) * static_cast<double>(p.k[j * 64 + c]);
    sum += want[j] = std::exp(0.125 * dot);
  }
  for (size_t j = 0; j < want.size(); ++j)
    ASSERT_NEAR(got[j], want[j] / sum, 5e-6 * want[j] / sum) << j;  // for float scores around 4
}

INSTANTIATE_TEST_SUITE_P(Targets, AttentionKernel, testing::ValuesIn(available_targets()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace qkv::kernels
