// Op-table rows: fused attention, and the plain steps it replaces.
#include <algorithm>
#include <cmath>
#include <limits>

#include "qkv/attention/mask.h"
#include "qkv/ops/attention_composed.h"
#include "qkv/ops/shape.h"
#include "unit/attention/cases.h"
#include "unit/ops/op_table.h"

namespace qkv::tests {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const std::string kHuge =
    "scores of huge inputs leave the range of float; NaN and infinities have their own tests in attend_test";

double squared(const double* q, const double* k, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += (q[i] - k[i]) * (q[i] - k[i]);
  return sum;
}

double dot(const double* q, const double* k, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += q[i] * k[i];
  return sum;
}

double score_of(ScoreForm form, double scale, const double* q, const double* k, int64_t n) {
  const double u2 = scale * scale * squared(q, k, n);
  switch (form) {
    case ScoreForm::dot:
      return scale * dot(q, k, n);
    case ScoreForm::gaussian:
      return -u2 / 2;
    case ScoreForm::boxcar:
      return u2 <= 1 ? 0 : -kInfinity;
    case ScoreForm::triangular:
      return u2 < 1 ? std::log(1 - std::sqrt(u2)) : -kInfinity;
    case ScoreForm::epanechnikov:
      return u2 < 1 ? std::log(1 - u2) : -kInfinity;
  }
  return 0;
}

const auto kSeesAll = [](auto...) { return true; };
const auto kSeesCausal = [](int64_t, int64_t, int64_t i, int64_t j) { return j <= i + 1; };

// q, k, v and a scale factor.
OpCase pair_row(const std::string& label, ScoreForm form, std::pair<float, float> factor, double value_tolerance = 1e-6,
                double gradient_tolerance = 1e-5) {
  return {.op = "attention",
          .label = label,
          .shapes = {{{2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 3}, {1}},
                     {{1, 4, 3, 1}, {1, 2, 4, 1}, {1, 2, 4, 1}, {}},
                     {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}, {1}},
                     {{1, 1, 9, 17}, {1, 1, 7, 17}, {1, 1, 7, 9}, {1}},
                     {{0, 2, 3, 4}, {0, 1, 2, 4}, {0, 1, 2, 2}, {1}},
                     {{1, 1, 0, 2}, {1, 1, 2, 2}, {1, 1, 2, 2}, {1}},
                     {{1, 1, 2, 2}, {1, 1, 0, 2}, {1, 1, 0, 2}, {1}}},
          .call =
              [=](const Tensors& x) {
                return attention({.q = x[0], .k = x[1], .form = form, .factor = x[3]}, x[2], {}).output;
              },
          .reference =
              [=](const Arrays& x) {
                const int64_t width = x[0].shape[3];
                const auto score = [&](const Arrays&, const double* q, const double* k) {
                  return score_of(form, x[3][0], q, k, width);
                };
                return plain_attention(score, {}, x[0], x[1], x[2], kSeesAll, nullptr).output;
              },
          .ranges = {{-1, 1}, {-1, 1}, {-2, 2}, factor},
          .value_tolerance = value_tolerance,
          .gradient_tolerance = gradient_tolerance,
          .special = Special::none,
          .exception = kHuge,
          .step = 1e-5};
}

// q, k, v, a score bias and a key bias, causal.
OpCase biased_row() {
  return {.op = "attention",
          .label = "biases, causal",
          .shapes = {{{2, 2, 4, 3}, {2, 1, 5, 3}, {2, 1, 5, 2}, {1, 2, 4, 5}, {2, 1, 5}},
                     {{1, 1, 9, 8}, {1, 1, 11, 8}, {1, 1, 11, 5}, {1, 1, 9, 11}, {1, 1, 11}}},
          .call =
              [](const Tensors& x) {
                const Mask mask = Mask::causal(1) & Mask::bias(x[3]);
                const AttentionPlan plan = mask.plan("row", {x[0].size(0), x[0].size(1), x[0].size(2), x[1].size(2)});
                return attention({.q = x[0], .k = x[1], .scale = 0.5f, .key_bias = x[4]}, x[2], plan).output;
              },
          .reference =
              [](const Arrays& x) {
                const int64_t width = x[0].shape[3], Lq = x[0].shape[2], Lk = x[1].shape[2], H = x[0].shape[1],
                              Hk = x[1].shape[1];
                const auto score = [&](const Arrays&, const double* q, const double* k) {
                  return dot(q, k, width) / 2;
                };
                return plain_attention(score, {}, x[0], x[1], x[2], kSeesCausal,
                                       [&](int64_t b, int64_t h, int64_t i, int64_t j) {
                                         return x[3][(h * Lq + i) * Lk + j] + x[4][(b * Hk + h / (H / Hk)) * Lk + j];
                                       })
                    .output;
              },
          .special = Special::none,
          .exception = kHuge,
          .step = 1e-5};
}

// q, k, v, a relative bias and a dense one, causal.
OpCase relative_row() {
  return {.op = "attention",
          .label = "relative bias, causal",
          .shapes = {{{2, 2, 4, 3}, {2, 1, 5, 3}, {2, 1, 5, 2}, {2, 8}, {4, 5}},
                     {{1, 1, 9, 8}, {1, 1, 11, 8}, {1, 1, 11, 5}, {1, 19}, {9, 11}},
                     {{1, 2, 1, 1}, {1, 2, 1, 1}, {1, 2, 1, 1}, {2, 1}, {1, 1}},
                     {{1, 2, 25, 2}, {1, 2, 3, 2}, {1, 2, 3, 2}, {1, 27}, {25, 3}},
                     {{1, 1, 0, 2}, {1, 1, 2, 2}, {1, 1, 2, 2}, {1, 1}, {0, 2}},
                     {{1, 1, 2, 2}, {1, 1, 0, 2}, {1, 1, 0, 2}, {1, 1}, {2, 0}}},
          .call =
              [](const Tensors& x) {
                const Mask mask = Mask::causal(1) & Mask::relative(x[3]) & Mask::bias(x[4]);
                const AttentionPlan plan = mask.plan("row", {x[0].size(0), x[0].size(1), x[0].size(2), x[1].size(2)});
                return attention({.q = x[0], .k = x[1], .scale = 0.5f}, x[2], plan).output;
              },
          .reference =
              [](const Arrays& x) {
                const int64_t width = x[0].shape[3], Lq = x[0].shape[2], Lk = x[1].shape[2], heads = x[3].shape[0],
                              count = x[3].shape[1];
                const auto score = [&](const Arrays&, const double* q, const double* k) {
                  return dot(q, k, width) / 2;
                };
                return plain_attention(score, {}, x[0], x[1], x[2], kSeesCausal,
                                       [&](int64_t, int64_t h, int64_t i, int64_t j) {
                                         return x[3][(heads == 1 ? 0 : h) * count + j - i + Lq - 1] + x[4][i * Lk + j];
                                       })
                    .output;
              },
          .special = Special::none,
          .exception = kHuge,
          .step = 1e-5};
}

OpCase additive_row() {
  return {.op = "additive_attention",
          .label = "heads and one head, biased",
          .shapes = {{{2, 1, 3, 4}, {2, 1, 5, 4}, {2, 1, 5, 3}, {4}, {1, 1, 3, 5}},
                     {{1, 4, 2, 5}, {1, 2, 3, 5}, {1, 2, 3, 2}, {5}, {1, 4, 2, 3}},
                     {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}, {1}, {1, 1, 1, 1}},
                     {{1, 1, 3, 33}, {1, 1, 9, 33}, {1, 1, 9, 17}, {33}, {1, 1, 3, 9}},
                     {{1, 1, 2, 2}, {1, 1, 0, 2}, {1, 1, 0, 2}, {2}, {1, 1, 2, 0}}},
          .call =
              [](const Tensors& x) {
                const AttentionPlan plan =
                    Mask::bias(x[4]).plan("row", {x[0].size(0), x[0].size(1), x[0].size(2), x[1].size(2)});
                return attention({x[0], x[1], x[3]}, x[2], plan).output;
              },
          .reference =
              [](const Arrays& x) {
                const int64_t width = x[0].shape[3], Lq = x[0].shape[2], Lk = x[1].shape[2];
                const auto score = [&](const Arrays&, const double* q, const double* k) {
                  double sum = 0;
                  for (int64_t c = 0; c < width; ++c) sum += x[3][c] * std::tanh(q[c] + k[c]);
                  return sum;
                };
                return plain_attention(
                           score, {}, x[0], x[1], x[2], kSeesAll,
                           [&](int64_t, int64_t h, int64_t i, int64_t j) { return x[4][(h * Lq + i) * Lk + j]; })
                    .output;
              },
          .special = Special::none,
          .exception = kHuge,
          .step = 1e-5};
}

OpCase masked_softmax_row() {
  return {.op = "masked_softmax",
          .label = "causal",
          .shapes = {{{2, 2, 3, 5}}, {{1, 1, 1, 1}}, {{1, 1, 9, 17}}, {{0, 1, 2, 3}}, {{1, 1, 0, 3}}, {{1, 1, 3, 0}}},
          .call =
              [](const Tensors& x) {
                const Shape s = x[0].shape();
                return masked_softmax(x[0], Mask::causal(1).plan("row", {s[0], s[1], s[2], s[3]})).weights;
              },
          .reference =
              [](const Arrays& x) {
                const Shape s = x[0].shape;
                Array y(s);
                for (int64_t r = 0; r < s[0] * s[1] * s[2]; ++r) {
                  const int64_t seen = std::min(s[3], r % s[2] + 2);
                  double most = -kInfinity, sum = 0;
                  for (int64_t j = 0; j < seen; ++j)
                    if (std::isnan(x[0][r * s[3] + j]) || x[0][r * s[3] + j] > most) most = x[0][r * s[3] + j];
                  if (most == -kInfinity) continue;
                  for (int64_t j = 0; j < seen; ++j) sum += y[r * s[3] + j] = std::exp(x[0][r * s[3] + j] - most);
                  for (int64_t j = 0; j < seen; ++j) y[r * s[3] + j] /= sum;
                }
                return y;
              }};
}

// Adds a hidden key whose value is NaN; without it the sum would be a matrix product.
OpCase pool_row() {
  return {
      .op = "pool_values",
      .label = "NaN in a hidden value",
      .shapes = {{{2, 2, 3, 5}, {2, 2, 5, 4}},
                 {{1, 1, 1, 1}, {1, 1, 1, 1}},
                 {{1, 2, 9, 17}, {1, 2, 17, 9}},
                 {{1, 1, 2, 0}, {1, 1, 0, 3}}},
      .call =
          [](const Tensors& x) {
            const Shape w = x[0].shape(), v = x[1].shape();
            const Tensor weights = concat({x[0], ones({w[0], w[1], w[2], 1})}, 3);
            const Tensor values =
                concat({x[1], full({v[0], v[1], 1, v[3]}, std::numeric_limits<float>::quiet_NaN())}, 2);
            Ids lengths = Ids::empty({w[0]});
            std::fill_n(lengths.mutable_ptr(), w[0], static_cast<int32_t>(w[3]));
            return pool_values(weights, values, Mask::valid_lens(lengths).plan("row", {w[0], w[1], w[2], w[3] + 1}));
          },
      .reference =
          [](const Arrays& x) {
            const Shape w = x[0].shape, v = x[1].shape;
            Array y(Shape{w[0], w[1], w[2], v[3]});
            for (int64_t r = 0; r < w[0] * w[1] * w[2]; ++r)
              for (int64_t j = 0; j < w[3]; ++j)
                for (int64_t c = 0; c < v[3]; ++c)
                  y[r * v[3] + c] += x[0][r * w[3] + j] * x[1][(r / w[2] * w[3] + j) * v[3] + c];
            return y;
          }};
}

}  // namespace

std::vector<OpCase> attention_rows() {
  return {pair_row("dot", ScoreForm::dot, {0.3f, 1}),
          pair_row("gaussian", ScoreForm::gaussian, {0.3f, 1}),
          pair_row("boxcar", ScoreForm::boxcar, {0.2f, 0.4f}),
          pair_row("triangular", ScoreForm::triangular, {0.05f, 0.1f}),
          pair_row("epanechnikov", ScoreForm::epanechnikov, {0.05f, 0.1f}),
          biased_row(),
          relative_row(),
          additive_row(),
          masked_softmax_row(),
          pool_row()};
}

}  // namespace qkv::tests
