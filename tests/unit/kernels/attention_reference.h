// Attention by its plain definition in double, and a problem to run both on.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "qkv/core/rng.h"
#include "qkv/kernels/attention.h"

namespace qkv::kernels::reference {

enum class Layout { heads_first, rows_first };  // (B, H, L, D) or (B, L, H, D)

inline HeadStrides strides(Layout layout, int64_t heads, int64_t rows, int64_t width) {
  if (layout == Layout::heads_first) return {heads * rows * width, rows * width, width};
  return {rows * heads * width, width, heads * width};
}

inline std::vector<float> normals(int64_t n, uint64_t seed) {
  std::vector<float> x(static_cast<size_t>(n));
  const Rng rng(seed);
  for (int64_t i = 0; i < n; ++i) x[static_cast<size_t>(i)] = rng.normal(static_cast<uint64_t>(i));
  return x;
}

/// Inputs, masks and results of one call; the call's pointers are set by call().
struct Problem {
  AttentionSizes sizes{};
  ScoreForm form = ScoreForm::dot;
  float scale = 0.5f;
  Layout layout = Layout::heads_first;
  AttentionMask mask;
  AttentionDropout dropout;
  std::vector<int32_t> begin, end;
  std::vector<uint8_t> keep;
  std::vector<float> bias, key_bias, relative;

  std::vector<float> q, k, v, dout;
  std::vector<float> out, lse;
  std::vector<float> dq, dk, dv, dbias, dkey_bias, drelative;
  double dscale = 0;
  int64_t empty = 0;

  explicit Problem(AttentionSizes z, uint64_t seed = 1) : sizes(z) {
    q = normals(z.batch * z.heads * z.queries * z.width, seed);
    k = normals(z.batch * z.key_heads * z.keys * z.width, seed + 1);
    v = normals(z.batch * z.key_heads * z.keys * z.value_width, seed + 2);
    dout = normals(z.batch * z.heads * z.queries * z.value_width, seed + 3);
  }

  AttentionCall call() const {
    AttentionCall c{sizes, form, scale, mask, dropout};
    c.mask.begin = begin.empty() ? nullptr : begin.data();
    c.mask.end = end.empty() ? nullptr : end.data();
    c.mask.keep = keep.empty() ? nullptr : keep.data();
    c.mask.bias = bias.empty() ? nullptr : bias.data();
    c.mask.key_bias = key_bias.empty() ? nullptr : key_bias.data();
    c.mask.relative = relative.empty() ? nullptr : relative.data();
    return c;
  }
  HeadStrides q_strides() const { return strides(layout, sizes.heads, sizes.queries, sizes.width); }
  HeadStrides k_strides() const { return strides(layout, sizes.key_heads, sizes.keys, sizes.width); }
  HeadStrides v_strides() const { return strides(layout, sizes.key_heads, sizes.keys, sizes.value_width); }
  HeadStrides out_strides() const { return strides(layout, sizes.heads, sizes.queries, sizes.value_width); }

  void forward() {
    out.assign(dout.size(), -7.f);
    lse.assign(static_cast<size_t>(sizes.batch * sizes.heads * sizes.queries), -7.f);
    empty = attention_forward(call(), {q.data(), q_strides()}, {k.data(), k_strides()}, {v.data(), v_strides()},
                              {out.data(), out_strides()}, lse.data());
  }
  void backward() {
    dq.assign(q.size(), -7.f);
    dk.assign(k.size(), -7.f);
    dv.assign(v.size(), -7.f);
    dbias.assign(bias.size(), -7.f);
    dkey_bias.assign(key_bias.size(), -7.f);
    drelative.assign(relative.size(), -7.f);
    AttentionGradients to;
    to.dq = {dq.data(), q_strides()};
    to.dk = {dk.data(), k_strides()};
    to.dv = {dv.data(), v_strides()};
    to.dbias = bias.empty() ? nullptr : dbias.data();
    to.dkey_bias = key_bias.empty() ? nullptr : dkey_bias.data();
    to.drelative = relative.empty() ? nullptr : drelative.data();
    to.dscale = &dscale;
    attention_backward(call(), {q.data(), q_strides()}, {k.data(), k_strides()}, {v.data(), v_strides()},
                       {out.data(), out_strides()}, lse.data(), {dout.data(), out_strides()}, to);
  }
  std::vector<float> weights(int64_t b, int64_t h, int64_t i) const {
    std::vector<float> w(static_cast<size_t>(sizes.keys), -7.f);
    attention_weights(call(), {q.data(), q_strides()}, {k.data(), k_strides()}, lse.data(), b, h, i, w.data());
    return w;
  }
};

inline size_t at(HeadStrides s, int64_t b, int64_t h, int64_t i, int64_t c) {
  return static_cast<size_t>(b * s.batch + h * s.head + i * s.row + c);
}

/// The score of a query and a key (width numbers each), in natural units, before bias and mask.
inline double score(ScoreForm form, double scale, const std::vector<double>& q, const std::vector<double>& k) {
  double dot = 0, r2 = 0;
  for (size_t c = 0; c < q.size(); ++c) {
    dot += q[c] * k[c];
    r2 += (q[c] - k[c]) * (q[c] - k[c]);
  }
  const double u = scale * std::sqrt(r2);
  switch (form) {
    case ScoreForm::dot:
      return scale * dot;
    case ScoreForm::gaussian:
      return -scale * scale / 2 * r2;
    case ScoreForm::boxcar:
      return u > 1 ? -INFINITY : 0;
    case ScoreForm::triangular:
      return u >= 1 ? -INFINITY : std::log(1 - u);
    case ScoreForm::epanechnikov:
      return u >= 1 ? -INFINITY : std::log(1 - u * u);
  }
  return 0;
}

/// Results in double, laid out like the problem's arrays.
struct Plain {
  std::vector<double> out, lse, weights, dq, dk, dv, dbias, dkey_bias,
      drelative;  // weights (B, H, Lq, Lk), before dropout
  double dscale = 0;
  int64_t empty = 0;
};

inline bool kept(const AttentionDropout& dropout, uint32_t row, int64_t i, int64_t j) {
  const auto words = philox(
      {dropout.step, dropout.first_row + row, static_cast<uint32_t>(i), static_cast<uint32_t>(j / 4)}, dropout.key);
  return static_cast<double>(words[static_cast<size_t>(j % 4)]) >= static_cast<double>(dropout.rate) * 4294967296.0;
}

/// Everything from the definition. Derivatives of the score are central differences: no formula of the kernel is used.
inline Plain plain(const Problem& p) {
  const AttentionSizes& z = p.sizes;
  const AttentionCall call = p.call();
  const AttentionMask& m = call.mask;
  Plain y;
  y.out.resize(p.dout.size());
  y.lse.resize(static_cast<size_t>(z.batch * z.heads * z.queries));
  y.weights.resize(y.lse.size() * static_cast<size_t>(z.keys));
  y.dq.resize(p.q.size());
  y.dk.resize(p.k.size());
  y.dv.resize(p.v.size());
  y.dbias.resize(p.bias.size());
  y.dkey_bias.resize(p.key_bias.size());
  y.drelative.resize(p.relative.size());
  const double factor = p.dropout.rate > 0 ? 1 / (1 - static_cast<double>(p.dropout.rate)) : 1;
  for (int64_t b = 0; b < z.batch; ++b)
    for (int64_t h = 0; h < z.heads; ++h)
      for (int64_t i = 0; i < z.queries; ++i) {
        const int64_t hk = h / (z.heads / z.key_heads), row = b * z.heads + h;
        std::vector<double> q(static_cast<size_t>(z.width)), s(static_cast<size_t>(z.keys), -INFINITY), w(s.size()),
            drop(s.size(), 1);
        std::vector<std::vector<double>> k(s.size(), q);
        for (int64_t c = 0; c < z.width; ++c) q[static_cast<size_t>(c)] = p.q[at(p.q_strides(), b, h, i, c)];
        double top = -INFINITY, sum = 0;
        const auto bias_at = static_cast<size_t>(b * m.bias_batch + h * m.bias_head + i * z.keys);
        const auto key_bias_at = static_cast<size_t>((b * z.key_heads + hk) * z.keys);
        const auto relative_at = static_cast<size_t>(b * m.relative_batch + h * m.relative_head + z.queries - 1 - i);
        for (int64_t j = 0; j < z.keys; ++j) {
          const auto J = static_cast<size_t>(j);
          for (int64_t c = 0; c < z.width; ++c) k[J][static_cast<size_t>(c)] = p.k[at(p.k_strides(), b, hk, j, c)];
          if (m.begin && j < m.begin[b * m.interval_batch + i]) continue;
          if (m.end && j >= m.end[b * m.interval_batch + i]) continue;
          if (m.keep && !m.keep[b * m.keep_batch + h * m.keep_head + i * z.keys + j]) continue;
          if (m.bias && p.bias[bias_at + J] == -INFINITY) continue;
          if (m.relative && p.relative[relative_at + J] == -INFINITY) continue;
          s[J] = score(p.form, p.scale, q, k[J]);
          if (m.relative) s[J] += p.relative[relative_at + J];
          if (m.bias) s[J] += p.bias[bias_at + J];
          if (m.key_bias) s[J] += p.key_bias[key_bias_at + J];
          top = std::isnan(s[J]) ? top : std::max(top, s[J]);
          if (p.dropout.rate > 0) drop[J] = kept(p.dropout, static_cast<uint32_t>(row), i, j) ? factor : 0;
        }
        bool any = false;
        for (size_t J = 0; J < s.size(); ++J) any |= s[J] != -INFINITY;
        const auto R = static_cast<size_t>(row * z.queries + i);
        y.lse[R] = -INFINITY;
        if (!any) {
          ++y.empty;
          continue;
        }
        for (size_t J = 0; J < s.size(); ++J) sum += w[J] = s[J] == -INFINITY ? 0 : std::exp(s[J] - top);
        y.lse[R] = top + std::log(sum);
        double mean = 0;  // weighted mean of dP
        std::vector<double> dp(s.size());
        for (size_t J = 0; J < s.size(); ++J) {
          w[J] /= sum;
          y.weights[R * s.size() + J] = w[J];
          if (s[J] == -INFINITY) continue;
          for (int64_t c = 0; c < z.value_width; ++c) {
            const double v = p.v[at(p.v_strides(), b, hk, static_cast<int64_t>(J), c)],
                         g = p.dout[at(p.out_strides(), b, h, i, c)];
            y.out[at(p.out_strides(), b, h, i, c)] += w[J] * drop[J] * v;
            y.dv[at(p.v_strides(), b, hk, static_cast<int64_t>(J), c)] += w[J] * drop[J] * g;
            dp[J] += drop[J] * g * v;
          }
          mean += w[J] * dp[J];
        }
        for (size_t J = 0; J < s.size(); ++J) {
          if (s[J] == -INFINITY) continue;
          const double ds = w[J] * (dp[J] - mean), step = 1e-6;
          if (m.bias) y.dbias[bias_at + J] += ds;
          if (m.key_bias) y.dkey_bias[key_bias_at + J] += ds;
          if (m.relative) y.drelative[relative_at + J] += ds;
          const auto slope = [&](double& x) {
            const double before = x;
            x = before + step;
            const double up = score(p.form, p.scale, q, k[J]);
            x = before - step;
            const double down = score(p.form, p.scale, q, k[J]);
            x = before;
            return (up - down) / (2 * step);
          };
          for (size_t c = 0; c < q.size(); ++c) {
            y.dq[at(p.q_strides(), b, h, i, static_cast<int64_t>(c))] += ds * slope(q[c]);
            y.dk[at(p.k_strides(), b, hk, static_cast<int64_t>(J), static_cast<int64_t>(c))] += ds * slope(k[J][c]);
          }
          const double up = score(p.form, p.scale + step, q, k[J]), down = score(p.form, p.scale - step, q, k[J]);
          y.dscale += ds * (up - down) / (2 * step);
        }
      }
  return y;
}

}  // namespace qkv::kernels::reference
