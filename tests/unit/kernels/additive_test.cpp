// Additive attention against its plain definition in double, and its laws.
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

// A Problem whose q and k are the projections, with w and its gradient.
struct Additive : Problem {
  std::vector<float> w, dw;
  Additive(int64_t batch, int64_t queries, int64_t keys, int64_t width, int64_t value_width, uint64_t seed)
      : Problem({batch, 1, 1, queries, keys, width, value_width}, seed), w(reference::normals(width, seed + 9)) {}

  void run() {
    out.assign(dout.size(), -7.f);
    lse.assign(static_cast<size_t>(sizes.batch * sizes.queries), -7.f);
    empty = additive_forward(call(), {q.data(), q_strides()}, {k.data(), k_strides()}, w.data(),
                             {v.data(), v_strides()}, {out.data(), out_strides()}, lse.data());
    dq.assign(q.size(), -7.f);
    dk.assign(k.size(), -7.f);
    dv.assign(v.size(), -7.f);
    dw.assign(w.size(), -7.f);
    dbias.assign(bias.size(), -7.f);
    drelative.assign(relative.size(), -7.f);
    AdditiveGradients to;
    to.dpq = {dq.data(), q_strides()};
    to.dpk = {dk.data(), k_strides()};
    to.dv = {dv.data(), v_strides()};
    to.dw = dw.data();
    to.dbias = bias.empty() ? nullptr : dbias.data();
    to.drelative = relative.empty() ? nullptr : drelative.data();
    additive_backward(call(), {q.data(), q_strides()}, {k.data(), k_strides()}, w.data(), {v.data(), v_strides()},
                      {out.data(), out_strides()}, lse.data(), {dout.data(), out_strides()}, to);
  }
  std::vector<float> row(int64_t b, int64_t i) const {
    std::vector<float> y(static_cast<size_t>(sizes.keys), -7.f);
    additive_weights(call(), {q.data(), q_strides()}, {k.data(), k_strides()}, w.data(), lse.data(), b, i, y.data());
    return y;
  }
};

struct PlainAdditive {
  std::vector<double> out, lse, weights, dq, dk, dv, dw, dbias, drelative;
};

PlainAdditive plain_additive(const Additive& p) {
  const AttentionSizes& z = p.sizes;
  const AttentionCall call = p.call();
  const AttentionMask& m = call.mask;
  PlainAdditive y;
  y.out.resize(p.dout.size());
  y.lse.assign(static_cast<size_t>(z.batch * z.queries), -INFINITY);
  y.dbias.resize(p.bias.size());
  y.weights.resize(y.lse.size() * static_cast<size_t>(z.keys));
  y.dq.resize(p.q.size());
  y.dk.resize(p.k.size());
  y.dv.resize(p.v.size());
  y.dw.resize(p.w.size());
  y.drelative.resize(p.relative.size());
  const auto diagonal = [&](int64_t b, int64_t i, int64_t j) {
    return static_cast<size_t>(b * m.relative_batch + j - i + z.queries - 1);
  };
  for (int64_t b = 0; b < z.batch; ++b) {
    for (int64_t i = 0; i < z.queries; ++i) {
      std::vector<double> s(static_cast<size_t>(z.keys), -INFINITY), drop(s.size(), 1), dp(s.size());
      double sum = 0, mean = 0;
      for (int64_t j = 0; j < z.keys; ++j) {
        if (m.begin && j < m.begin[b * m.interval_batch + i]) continue;
        if (m.end && j >= m.end[b * m.interval_batch + i]) continue;
        if (m.keep && !m.keep[b * m.keep_batch + i * z.keys + j]) continue;
        double& score = s[static_cast<size_t>(j)] =
            m.bias ? static_cast<double>(m.bias[b * m.bias_batch + i * z.keys + j]) : 0;
        if (m.relative) score += p.relative[diagonal(b, i, j)];
        for (int64_t c = 0; c < z.width; ++c) {
          const double e = double{p.q[at(p.q_strides(), b, 0, i, c)]} + double{p.k[at(p.k_strides(), b, 0, j, c)]};
          score += static_cast<double>(p.w[static_cast<size_t>(c)]) * std::tanh(e);
        }
        sum += std::exp(score);
        if (p.dropout.rate > 0) {
          const bool stays = reference::kept(p.dropout, static_cast<uint32_t>(b), i, j);
          drop[static_cast<size_t>(j)] = stays ? 1 / (1 - static_cast<double>(p.dropout.rate)) : 0;
        }
      }
      if (sum == 0) continue;
      const auto row = static_cast<size_t>(b * z.queries + i);
      y.lse[row] = std::log(sum);
      for (int64_t j = 0; j < z.keys; ++j) {
        const auto J = static_cast<size_t>(j);
        const double weight = y.weights[row * s.size() + J] = std::exp(s[J]) / sum;
        for (int64_t c = 0; c < z.value_width; ++c) {
          const double g = p.dout[at(p.out_strides(), b, 0, i, c)], value = p.v[at(p.v_strides(), b, 0, j, c)];
          y.out[at(p.out_strides(), b, 0, i, c)] += weight * drop[J] * value;
          y.dv[at(p.v_strides(), b, 0, j, c)] += weight * drop[J] * g;
          dp[J] += drop[J] * g * value;
        }
        mean += weight * dp[J];
      }
      for (int64_t j = 0; j < z.keys; ++j) {
        const auto J = static_cast<size_t>(j);
        const double ds = y.weights[row * s.size() + J] * (dp[J] - mean);
        if (m.bias) y.dbias[static_cast<size_t>(b * m.bias_batch + i * z.keys + j)] += ds;
        if (m.relative) y.drelative[diagonal(b, i, j)] += ds;
        for (int64_t c = 0; c < z.width; ++c) {
          const double e = double{p.q[at(p.q_strides(), b, 0, i, c)]} + double{p.k[at(p.k_strides(), b, 0, j, c)]};
          const double t = std::tanh(e), flow = ds * static_cast<double>(p.w[static_cast<size_t>(c)]) * (1 - t * t);
          y.dq[at(p.q_strides(), b, 0, i, c)] += flow;
          y.dk[at(p.k_strides(), b, 0, j, c)] += flow;
          y.dw[static_cast<size_t>(c)] += ds * t;
        }
      }
    }
  }
  return y;
}

void expect_near(const char* what, const std::vector<float>& got, const std::vector<double>& want,
                 double tolerance = 1e-5) {
  ASSERT_EQ(got.size(), want.size());
  double most = 0;
  for (const double x : want) most = std::isfinite(x) ? std::max(most, std::fabs(x)) : most;
  for (size_t i = 0; i < want.size(); ++i) {
    const double allowed = tolerance * (std::fabs(want[i]) + most) + 1e-7;
    const bool equal = want[i] == -INFINITY ? got[i] == -INFINITY : std::fabs(double{got[i]} - want[i]) <= allowed;
    ASSERT_TRUE(equal) << what << "[" << i << "] = " << got[i] << ", expected " << want[i];
  }
}

void expect_plain(Additive& p) {
  const PlainAdditive want = plain_additive(p);
  p.run();
  expect_near("out", p.out, want.out);
  expect_near("lse", p.lse, want.lse);
  expect_near("dpq", p.dq, want.dq);
  expect_near("dpk", p.dk, want.dk);
  expect_near("dv", p.dv, want.dv);
  expect_near("dw", p.dw, want.dw);
  expect_near("dbias", p.dbias, want.dbias);
  expect_near("drelative", p.drelative, want.drelative);
  for (int64_t row = 0; row < p.sizes.batch * p.sizes.queries; row += 2) {
    const auto from = want.weights.begin() + row * p.sizes.keys;
    expect_near("weights", p.row(row / p.sizes.queries, row % p.sizes.queries),
                std::vector<double>(from, from + p.sizes.keys), 1e-6);
  }
}

class AdditiveKernel : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { force_target(GetParam()); }
  void TearDown() override { force_target(""); }

 private:
  qkv_test::ThreadsScope threads_scope_;
};

TEST_P(AdditiveKernel, EqualsThePlainDefinition) {
  for (const auto& [queries, keys, width, value_width] :
       {std::array<int64_t, 4>{1, 10, 32, 32}, {7, 1, 1, 1}, {5, 33, 13, 9}, {20, 70, 8, 24}, {3, 200, 40, 3}}) {
    SCOPED_TRACE(testing::Message() << queries << " x " << keys << ", widths " << width << " " << value_width);
    Additive p(3, queries, keys, width, value_width, 5);
    expect_plain(p);
  }
}

TEST_P(AdditiveKernel, TakesMasksBiasAndDropout) {
  for (const bool shared : {false, true}) {
    Additive p(4, 6, 25, 10, 7, 15);
    p.mask.interval_batch = 6;
    for (const int32_t length : {25, 0, 3, 17}) p.end.insert(p.end.end(), 6, length);
    p.mask.keep_batch = 0;
    for (int64_t i = 0; i < 6 * 25; ++i) p.keep.push_back(i % 4 != 1);
    p.mask.bias_batch = shared ? 0 : 6 * 25;
    p.bias = reference::normals(shared ? 6 * 25 : 4 * 6 * 25, 16);
    p.bias[2] = -INFINITY;
    p.mask.relative_batch = shared ? 0 : 30;
    p.relative = reference::normals(shared ? 30 : 4 * 30, 17);
    p.relative[4] = -INFINITY;
    p.dropout = {0.25f, {8, 9}, 3, 77};
    expect_plain(p);
    EXPECT_EQ(p.empty, 6);
  }
}

TEST_P(AdditiveKernel, HiddenKeysPaddingAndThreadsChangeNoBit) {
  Additive p(5, 40, 60, 19, 11, 25);
  p.mask.interval_batch = 40;
  for (const int32_t length : {60, 20, 35, 1, 59}) p.end.insert(p.end.end(), 40, length);
  p.relative = reference::normals(99, 26);
  set_threads(1);
  p.run();
  for (const int count : {1, 2, 8}) {
    set_threads(count);
    Additive q = p;
    if (count == 8) {
      for (size_t j = 20; j < 60; ++j) {
        q.k[(60 + j) * 19 + 2] = NAN;
        q.v[(60 + j) * 11 + 3] = INFINITY;
      }
    }
    q.run();
    const std::pair<std::vector<float>*, std::vector<float>*> pairs[] = {{&q.out, &p.out},
                                                                         {&q.lse, &p.lse},
                                                                         {&q.dq, &p.dq},
                                                                         {&q.dk, &p.dk},
                                                                         {&q.dv, &p.dv},
                                                                         {&q.dw, &p.dw},
                                                                         {&q.drelative, &p.drelative}};
    for (const auto& [now, before] : pairs) {
      EXPECT_EQ(std::memcmp(now->data(), before->data(), now->size() * sizeof(float)), 0) << count;
    }
  }
  p.v[5 * 11] = NAN;  // visible to every row of the first batch row
  p.run();
  for (int64_t i = 0; i < 40; ++i) EXPECT_TRUE(std::isnan(p.out[static_cast<size_t>(i * 11)]));
  EXPECT_TRUE(std::isfinite(p.out[40 * 11]));
}

INSTANTIATE_TEST_SUITE_P(Targets, AdditiveKernel, testing::ValuesIn(available_targets()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace qkv::kernels
