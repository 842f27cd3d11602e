// Op-table rows: matmul with transposes and shared operands, linear with activations.
#include <cmath>

#include "qkv/ops/feed_forward.h"
#include "qkv/ops/matmul.h"
#include "unit/ops/op_table.h"

namespace qkv::tests {
namespace {

// op(a) op(b) over the last two axes; an operand with fewer leading elements is shared.
Array product(const Array& a, const Array& b, bool ta, bool tb) {
  const int64_t M = ta ? a.shape[-1] : a.shape[-2], K = ta ? a.shape[-2] : a.shape[-1],
                N = tb ? b.shape[-2] : b.shape[-1];
  const int64_t batch_a = a.shape.product(0, a.shape.rank() - 2), batch_b = b.shape.product(0, b.shape.rank() - 2);
  const Shape& lead = a.shape.rank() >= b.shape.rank() && (batch_a != 1 || batch_b == 1) ? a.shape : b.shape;
  Shape shape = lead;
  shape.set(-2, M);
  shape.set(-1, N);
  Array y(shape);
  for (int64_t s = 0; s < shape.product(0, shape.rank() - 2); ++s)
    for (int64_t i = 0; i < M; ++i)
      for (int64_t j = 0; j < N; ++j) {
        double sum = 0;
        const int64_t at_a = batch_a == 1 ? 0 : s * M * K, at_b = batch_b == 1 ? 0 : s * K * N;
        for (int64_t k = 0; k < K; ++k)
          sum += a[at_a + (ta ? k * M + i : i * K + k)] * b[at_b + (tb ? j * K + k : k * N + j)];
        y[(s * M + i) * N + j] = sum;
      }
  return y;
}

Shape swapped(Shape s, bool swap) {
  if (!swap) return s;
  const int64_t last = s[-1];
  s.set(-1, s[-2]);
  s.set(-2, last);
  return s;
}

OpCase matmul_row(bool ta, bool tb) {
  OpCase row;
  row.op = "matmul";
  row.label = std::string(ta ? "a transposed" : "a plain") + (tb ? ", b transposed" : ", b plain");
  const std::vector<std::pair<Shape, Shape>> plain = {
      {{3, 4}, {4, 5}},    {{1, 1}, {1, 1}},      {{7, 9}, {9, 17}},      {{0, 3}, {3, 2}},
      {{2, 0}, {0, 3}},    {{2, 3}, {3, 0}},      {{3, 2, 5}, {3, 5, 4}}, {{2, 3, 2, 5}, {2, 3, 5, 4}},
      {{3, 2, 5}, {5, 4}}, {{2, 5}, {3, 5, 4}},   {{1, 2, 5}, {3, 5, 4}}, {{2, 2, 3, 2}, {2, 1}},
      {{0, 2, 3}, {3, 4}}, {{0, 2, 3}, {0, 3, 4}}};
  for (const auto& [a, b] : plain) row.shapes.push_back({swapped(a, ta), swapped(b, tb)});
  row.call = [ta, tb](const Tensors& x) {
    return matmul(x[0], x[1], ta ? Transpose::yes : Transpose::no, tb ? Transpose::yes : Transpose::no);
  };
  row.reference = [ta, tb](const Arrays& x) { return product(x[0], x[1], ta, tb); };
  return row;
}

OpCase linear_row(const char* label, Activation activation, double (*f)(double)) {
  OpCase row;
  row.op = "linear";
  row.label = label;
  row.shapes = {{{4, 3}, {5, 3}, {5}}, {{2, 3, 4}, {9, 4}, {9}}, {{3}, {2, 3}, {2}},
                {{1, 1}, {1, 1}, {1}}, {{0, 3}, {2, 3}, {2}},    {{2, 0}, {3, 0}, {3}}};
  row.call = [activation](const Tensors& x) { return linear(x[0], x[1], x[2], activation); };
  row.reference = [f](const Arrays& x) {
    Shape shape = x[0].shape;
    const int64_t N = x[1].shape[0], K = x[1].shape[1];
    shape.set(-1, N);
    Array y(shape);
    for (int64_t i = 0; i < y.numel(); ++i) {
      double z = x[2][i % N];
      for (int64_t k = 0; k < K; ++k) z += x[0][i / N * K + k] * x[1][i % N * K + k];
      y[i] = f(z);
    }
    return y;
  };
  return row;
}

// Rows of x through two layers; biases may be absent.
Array two_layers(const Arrays& x, bool biases, double (*f)(double)) {
  const Array &w1 = x[1], &w2 = biases ? x[3] : x[2];
  const int64_t K = w1.shape[1], H = w1.shape[0], N = w2.shape[0], M = x[0].shape.product(0, x[0].shape.rank() - 1);
  Shape shape = x[0].shape;
  shape.set(-1, N);
  Array y(shape);
  for (int64_t i = 0; i < M; ++i) {
    std::vector<double> h;
    for (int64_t j = 0; j < H; ++j) {
      double z = biases ? x[2][j] : 0;
      for (int64_t k = 0; k < K; ++k) z += x[0][i * K + k] * w1[j * K + k];
      h.push_back(f(z));
    }
    for (int64_t n = 0; n < N; ++n) {
      y[i * N + n] = biases ? x[4][n] : 0;
      for (int64_t j = 0; j < H; ++j) y[i * N + n] += h[static_cast<size_t>(j)] * w2[n * H + j];
    }
  }
  return y;
}

OpCase feed_forward_row(const char* label, Activation activation, double (*f)(double)) {
  OpCase row;
  row.op = "feed_forward";
  row.label = label;
  row.shapes = {{{4, 3}, {5, 3}, {5}, {2, 5}, {2}},
                {{2, 3, 4}, {9, 4}, {9}, {3, 9}, {3}},
                {{1, 1}, {1, 1}, {1}, {1, 1}, {1}},
                {{0, 3}, {2, 3}, {2}, {3, 2}, {3}},
                {{3}, {2, 3}, {2}, {4, 2}, {4}}};
  row.call = [activation](const Tensors& x) { return feed_forward(x[0], x[1], x[2], x[3], x[4], activation); };
  row.reference = [f](const Arrays& x) { return two_layers(x, true, f); };
  row.special = Special::none;
  row.exception =
      "huge values overflow between the layers in float but not in double; the op has the bits of two linear ops, "
      "whose rows test them";
  return row;
}

}  // namespace

std::vector<OpCase> matmul_rows() {
  std::vector<OpCase> rows;
  for (bool ta : {false, true})
    for (bool tb : {false, true}) rows.push_back(matmul_row(ta, tb));
  rows.push_back(linear_row("no activation", Activation::none, [](double z) { return z; }));
  rows.push_back(linear_row("relu", Activation::relu, [](double z) { return z < 0 ? 0 : z; }));
  rows.push_back(
      linear_row("gelu", Activation::gelu, [](double z) { return z * 0.5 * std::erfc(-z / std::sqrt(2.0)); }));
  rows.back().special = Special::none;
  rows.back().exception =
      "an inner sum that overflows to -inf is NaN by the formula, -inf times 0; the row of gelu tests special values";
  rows.push_back(linear_row("gelu_tanh", Activation::gelu_tanh, gelu_by_tanh));
  rows.back().special = Special::none;
  rows.back().exception =
      "an inner sum that overflows to -inf is NaN by the formula, -inf times 0; the row of gelu_tanh tests special "
      "values";
  rows.push_back(linear_row("silu", Activation::silu, [](double z) { return z / (1 + std::exp(-z)); }));
  rows.back().special = Special::none;
  rows.back().exception =
      "an inner sum that overflows to -inf is NaN by the formula, -inf times 0; the row of silu tests special values";
  rows.push_back(linear_row("tanh", Activation::tanh, [](double z) { return std::tanh(z); }));
  rows.push_back(linear_row("sigmoid", Activation::sigmoid, [](double z) { return 1 / (1 + std::exp(-z)); }));
  OpCase bare = linear_row("no bias", Activation::none, [](double z) { return z; });
  bare.shapes = {{{4, 3}, {5, 3}}, {{2, 3, 4}, {9, 4}}};
  bare.call = [](const Tensors& x) { return linear(x[0], x[1]); };
  bare.reference = [](const Arrays& x) {
    Array rows = x[0];
    rows.shape = {x[0].numel() / x[0].shape[-1], x[0].shape[-1]};
    Array y = product(rows, x[1], false, true);
    y.shape = x[0].shape;
    y.shape.set(-1, x[1].shape[0]);
    return y;
  };
  rows.push_back(bare);
  rows.push_back(feed_forward_row("relu", Activation::relu, [](double z) { return z < 0 ? 0 : z; }));
  rows.push_back(
      feed_forward_row("gelu", Activation::gelu, [](double z) { return z * 0.5 * std::erfc(-z / std::sqrt(2.0)); }));
  rows.push_back(feed_forward_row("gelu_tanh", Activation::gelu_tanh, gelu_by_tanh));
  rows.push_back(feed_forward_row("silu", Activation::silu, [](double z) { return z / (1 + std::exp(-z)); }));
  OpCase plain = feed_forward_row("no biases", Activation::tanh, [](double z) { return std::tanh(z); });
  plain.shapes = {{{4, 3}, {5, 3}, {2, 5}}};
  plain.call = [](const Tensors& x) { return feed_forward(x[0], x[1], {}, x[2], {}, Activation::tanh); };
  plain.reference = [](const Arrays& x) { return two_layers(x, false, [](double z) { return std::tanh(z); }); };
  rows.push_back(plain);
  return rows;
}

}  // namespace qkv::tests
