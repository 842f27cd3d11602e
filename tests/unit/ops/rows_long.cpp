// Op-table rows: attention over lists of keys, and attention as a running sum.
#include <cmath>

#include "qkv/ops/running_attention.h"
#include "qkv/ops/sparse_attention.h"
#include "unit/ops/op_table.h"

namespace qkv::tests {
namespace {

OpCase running_row(int64_t offset, std::vector<std::vector<Shape>> shapes) {
  return {.op = "running_attention",
          .label = "offset " + std::to_string(offset),
          .shapes = std::move(shapes),
          .call = [=](const Tensors& x) { return running_attention(x[0], x[1], x[2], offset); },
          .reference =
              [=](const Arrays& x) {
                const int64_t heads = x[0].shape[0] * x[0].shape[1], n = x[0].shape[2], m = x[1].shape[2],
                              F = x[0].shape[3], D = x[2].shape[3];
                Array y(Shape{x[0].shape[0], x[0].shape[1], n, D});
                for (int64_t h = 0; h < heads; ++h)
                  for (int64_t i = 0; i < n; ++i)
                    for (int64_t j = 0; j < m && j <= i + offset; ++j) {
                      double dot = 0;
                      for (int64_t f = 0; f < F; ++f) dot += x[0][(h * n + i) * F + f] * x[1][(h * m + j) * F + f];
                      for (int64_t c = 0; c < D; ++c) y[(h * n + i) * D + c] += dot * x[2][(h * m + j) * D + c];
                    }
                return y;
              },
          .special = Special::none,
          .exception =
              "the sum over features comes before the product with the query: NaN and infinities are tested "
              "in long_attention_test"};
}

// Query i sees key 0 and keys i, i + 2, ...; query 2 sees none.
std::vector<KeyRun> keys_of(int64_t i, int64_t keys) {
  if (i == 2) return {};
  const auto n = static_cast<int32_t>(keys), at = static_cast<int32_t>(i);
  return {{0, std::min(n, 1), 1}, {std::max(at, 1), n, 2}};
}

bool sees(int64_t i, int64_t j) {
  return i != 2 && (j == 0 || (j >= std::max<int64_t>(i, 1) && (j - std::max<int64_t>(i, 1)) % 2 == 0));
}

OpCase sparse_row() {
  return {.op = "sparse_attention",
          .label = "gaps",
          .shapes = {{{2, 4, 2, 3}, {2, 5, 2, 3}, {2, 5, 2, 3}},
                     {{1, 4, 4, 8}, {1, 11, 4, 8}, {1, 11, 4, 8}},
                     {{1, 3, 4, 9}, {1, 6, 2, 9}, {1, 6, 2, 9}},
                     {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}},
                     {{0, 3, 1, 2}, {0, 3, 1, 2}, {0, 3, 1, 2}},
                     {{1, 0, 1, 2}, {1, 2, 1, 2}, {1, 2, 1, 2}},
                     {{1, 2, 1, 2}, {1, 0, 1, 2}, {1, 0, 1, 2}}},
          .call =
              [](const Tensors& x) {
                KeyRuns runs{.queries = x[0].size(1)};
                for (int64_t i = 0; i < runs.queries; ++i) runs.add(keys_of(i, x[1].size(1)));
                return sparse_attention(x[0], x[1], x[2], std::make_shared<const KeyRuns>(std::move(runs)), 0.5f);
              },
          .reference =
              [](const Arrays& x) {
                const int64_t B = x[0].shape[0], n = x[0].shape[1], H = x[0].shape[2], D = x[0].shape[3],
                              m = x[1].shape[1], Hk = x[1].shape[2];
                Array y(x[0].shape);
                for (int64_t row = 0; row < B * n * H; ++row) {
                  const int64_t b = row / H / n, i = row / H % n, h = row % H / (H / Hk);
                  const auto key = [&](int64_t j) { return ((b * m + j) * Hk + h) * D; };
                  std::vector<double> weights;
                  double sum = 0;
                  for (int64_t j = 0; j < m; ++j) {
                    double dot = 0;
                    for (int64_t c = 0; c < D; ++c) dot += x[0][row * D + c] * x[1][key(j) + c];
                    weights.push_back(sees(i, j) ? std::exp(dot / 2) : 0);
                    sum += weights.back();
                  }
                  for (int64_t j = 0; j < m; ++j)
                    for (int64_t c = 0; c < D && sees(i, j); ++c)
                      y[row * D + c] += weights[static_cast<size_t>(j)] / sum * x[2][key(j) + c];
                }
                return y;
              },
          .special = Special::none,
          .exception = "scores of huge inputs leave the range of float; NaN is tested in long_attention_test"};
}

}  // namespace

std::vector<OpCase> long_rows() {
  return {running_row(0, {{{2, 2, 4, 3}, {2, 2, 4, 3}, {2, 2, 4, 5}},
                          {{1, 1, 9, 17}, {1, 1, 9, 17}, {1, 1, 9, 41}},
                          {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}},
                          {{1, 2, 5, 2}, {1, 2, 3, 2}, {1, 2, 3, 2}},
                          {{1, 1, 0, 2}, {1, 1, 2, 2}, {1, 1, 2, 2}},
                          {{1, 1, 2, 2}, {1, 1, 0, 2}, {1, 1, 0, 2}},
                          {{0, 1, 2, 2}, {0, 1, 2, 2}, {0, 1, 2, 2}}}),
          running_row(2, {{{1, 2, 3, 4}, {1, 2, 6, 4}, {1, 2, 6, 8}}, {{1, 1, 4, 3}, {1, 1, 4, 3}, {1, 1, 4, 2}}}),
          sparse_row()};
}

}  // namespace qkv::tests
