// Op-table rows: recurrent layers, and the decoder that attends at every step.
#include <cmath>

#include "qkv/ops/attention_decoder.h"
#include "qkv/ops/recurrent.h"
#include "qkv/ops/shape.h"
#include "unit/ops/op_table.h"

namespace qkv::tests {
namespace {

const std::string kHuge =
    "a huge state times a closed gate is inf * 0 in float; NaN and infinities have their own tests in recurrent_test";

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The weights of a layer, from four consecutive arrays.
struct PlainCell {
  CellKind kind;
  const Array &input, &recurrent, &bias_input, &bias_recurrent;

  PlainCell(CellKind k, const Arrays& a, size_t first)
      : kind(k), input(a[first]), recurrent(a[first + 1]), bias_input(a[first + 2]), bias_recurrent(a[first + 3]) {}
  int64_t width() const { return recurrent.shape[1]; }

  double product(const Array& w, int64_t row, const std::vector<double>& x) const {
    double sum = 0;
    for (size_t k = 0; k < x.size(); ++k)
      sum += w[row * static_cast<int64_t>(x.size()) + static_cast<int64_t>(k)] * x[k];
    return sum;
  }

  // h, c <- one step on x
  void step(const std::vector<double>& x, std::vector<double>& h, std::vector<double>& c) const {
    const int64_t H = width();
    const std::vector<double> before = h;
    const auto in = [&](int64_t gate, int64_t j) { return product(input, gate * H + j, x) + bias_input[gate * H + j]; };
    const auto rec = [&](int64_t gate, int64_t j, const std::vector<double>& state) {
      return product(recurrent, gate * H + j, state) + bias_recurrent[gate * H + j];
    };
    std::vector<double> reset = before;
    if (kind == CellKind::gru_before)
      for (int64_t j = 0; j < H; ++j) reset[static_cast<size_t>(j)] *= sigmoid(in(0, j) + rec(0, j, before));
    for (int64_t j = 0; j < H; ++j) {
      double& hj = h[static_cast<size_t>(j)];
      if (kind == CellKind::lstm) {
        double& cj = c[static_cast<size_t>(j)];
        cj = sigmoid(in(1, j) + rec(1, j, before)) * cj +
             sigmoid(in(0, j) + rec(0, j, before)) * std::tanh(in(2, j) + rec(2, j, before));
        hj = sigmoid(in(3, j) + rec(3, j, before)) * std::tanh(cj);
        continue;
      }
      const double r = sigmoid(in(0, j) + rec(0, j, before)), z = sigmoid(in(1, j) + rec(1, j, before));
      const double n =
          kind == CellKind::gru ? std::tanh(in(2, j) + r * rec(2, j, before)) : std::tanh(in(2, j) + rec(2, j, reset));
      hj = (1 - z) * n + z * hj;
    }
  }
};

std::vector<double> row_of(const Array& x, int64_t row, int64_t width) {
  return {x.v.begin() + row * width, x.v.begin() + (row + 1) * width};
}

// Lengths of a batch: whole, shorter, none, ...
Ids lengths(int64_t batch, int64_t steps) {
  Ids lens = Ids::empty({batch});
  for (int64_t b = 0; b < batch; ++b)
    lens.mutable_ptr()[b] = static_cast<int32_t>(b % 3 == 0 ? steps : b % 3 == 1 ? steps / 2 : 0);
  return lens;
}

// y, h and c side by side, (B, (T + 2) H), so that all of them are checked.
Tensor side_by_side(const RecurrentResult& r) {
  const int64_t B = r.y.size(0);
  const Tensor y = reshape(r.y, {B, r.y.size(1) * r.y.size(2)});
  return r.state.c.defined() ? concat({y, r.state.h, r.state.c}, 1) : concat({y, r.state.h}, 1);
}

Array plain_recurrent(CellKind kind, const Arrays& a, bool with_lengths, Direction direction) {
  const bool lstm = kind == CellKind::lstm;
  const PlainCell cell(kind, a, 1);
  const int64_t B = a[0].shape[0], T = a[0].shape[1], D = a[0].shape[2], H = cell.width(),
                width = T * H + (lstm ? 2 : 1) * H;
  const Ids lens = lengths(B, T);
  Array out(Shape{B, width});
  for (int64_t b = 0; b < B; ++b) {
    std::vector<double> h = row_of(a[5], b, H), c = lstm ? row_of(a[6], b, H) : h;
    const int64_t n = with_lengths ? lens.ptr()[b] : T;
    for (int64_t s = 0; s < n; ++s) {
      const int64_t t = direction == Direction::forward ? s : n - 1 - s;
      cell.step(row_of(a[0], b * T + t, D), h, c);
      for (int64_t j = 0; j < H; ++j) out[b * width + t * H + j] = h[static_cast<size_t>(j)];
    }
    for (int64_t j = 0; j < H; ++j) {
      out[b * width + T * H + j] = h[static_cast<size_t>(j)];
      if (lstm) out[b * width + (T + 1) * H + j] = c[static_cast<size_t>(j)];
    }
  }
  return out;
}

std::vector<Shape> shapes_of(CellKind kind, int64_t B, int64_t T, int64_t D, int64_t H) {
  const int64_t rows = cell_gates(kind) * H;
  std::vector<Shape> shapes{{B, T, D}, {rows, D}, {rows, H}, {rows}, {rows}, {B, H}};
  if (kind == CellKind::lstm) shapes.push_back({B, H});
  return shapes;
}

OpCase recurrent_row(CellKind kind, const std::string& label, bool with_lengths, Direction direction) {
  return {.op = "recurrent",
          .label = label,
          .shapes = {shapes_of(kind, 3, 4, 3, 2), shapes_of(kind, 4, 3, 5, 9), shapes_of(kind, 2, 3, 17, 8),
                     shapes_of(kind, 1, 1, 1, 1), shapes_of(kind, 1, 5, 2, 3), shapes_of(kind, 5, 1, 2, 3),
                     shapes_of(kind, 2, 0, 2, 3), shapes_of(kind, 0, 2, 2, 3)},
          .call =
              [=](const Tensors& x) {
                const CellState first{x[5], kind == CellKind::lstm ? x[6] : Tensor()};
                const Ids lens = with_lengths ? lengths(x[0].size(0), x[0].size(1)) : Ids();
                return side_by_side(recurrent(kind, x[0], {x[1], x[2], x[3], x[4]}, first, lens, direction));
              },
          .reference = [=](const Arrays& a) { return plain_recurrent(kind, a, with_lengths, direction); },
          .ranges = {{-2, 2}, {-1, 1}, {-1, 1}, {-1, 1}, {-1, 1}, {-1, 1}, {-1, 1}},
          .special = Special::none,
          .exception = kHuge};
}

// additive: w_v . tanh(W_q h + key). projected: 0.7 W_q h . key. dot: 0.7 h . key.
enum class Score { additive, projected, dot };
constexpr float kScale = 0.7f;

// Inputs: keys, values, W_q, w_v, embedded, then four weights, h and, for LSTM, c of every layer. W_q and w_v are left
// out where the score has none.
struct DecoderShape {
  CellKind kind;
  size_t layers;
  bool dropout;
  Score score = Score::additive;
  size_t fixed() const { return score == Score::additive ? 5 : score == Score::projected ? 4 : 3; }
  size_t per_layer() const { return kind == CellKind::lstm ? 6 : 5; }
};

Tensor some_factors(const Shape& shape, uint64_t seed) {
  Tensor factors = uniform(shape, Rng(seed));
  for (int64_t i = 0; i < factors.numel(); ++i) factors.mutable_ptr()[i] = factors.ptr()[i] < 0.3f ? 0.f : 1.25f;
  return factors;
}

Tensor decode(const DecoderShape& d, const Tensors& x) {
  const Tensor& embedded = x[d.fixed() - 1];
  const int64_t B = x[0].size(0), S = x[0].size(1), T = embedded.size(1), H = x[d.fixed() + 1].size(1);
  Few<CellWeights> layers;
  Few<CellState> first;
  Few<Tensor> factors;
  for (size_t l = 0; l < d.layers; ++l) {
    const size_t at = d.fixed() + l * d.per_layer();
    layers.push_back({x[at], x[at + 1], x[at + 2], x[at + 3]});
    first.push_back({x[at + 4], d.kind == CellKind::lstm ? x[at + 5] : Tensor()});
    if (l > 0 && d.dropout) factors.push_back(some_factors({B, T, H}, l));
  }
  return attention_decoder({.kind = d.kind,
                            .keys = x[0],
                            .values = x[1],
                            .source_lens = lengths(B, S),
                            .W_q = d.score == Score::dot ? Tensor() : x[2],
                            .w_v = d.score == Score::additive ? x[3] : Tensor(),
                            .scale = d.score == Score::additive ? 1 : kScale,
                            .inputs = embedded,
                            .target_lens = lengths(B, T),
                            .layers = layers,
                            .first = first,
                            .weight_factors = d.dropout ? some_factors({B, T, S}, 100) : Tensor(),
                            .factors = factors})
      .y;
}

// The score of key j of row b for the state h.
double plain_score(const DecoderShape& d, const Arrays& a, const std::vector<double>& h, int64_t b, int64_t j) {
  const int64_t S = a[0].shape[1], A = a[0].shape[2], H = std::ssize(h);
  double score = 0;
  for (int64_t k = 0; k < A; ++k) {
    const double key = a[0][(b * S + j) * A + k];
    double q = d.score == Score::dot ? h[static_cast<size_t>(k)] : 0;
    for (int64_t m = 0; m < H && d.score != Score::dot; ++m) q += a[2][k * H + m] * h[static_cast<size_t>(m)];
    score += d.score == Score::additive ? a[3][k] * std::tanh(q + key) : double{kScale} * q * key;
  }
  return score;
}

Array plain_decode(const DecoderShape& d, const Arrays& a) {
  const Array& embedded = a[d.fixed() - 1];
  const int64_t B = a[0].shape[0], S = a[0].shape[1], Dv = a[1].shape[2], T = embedded.shape[1], E = embedded.shape[2],
                H = a[d.fixed() + 1].shape[1];
  const Ids source = lengths(B, S), target = lengths(B, T);
  const Tensor weight_factors = some_factors({B, T, S}, 100);
  Few<Tensor> factors;
  for (size_t l = 0; l < d.layers; ++l) factors.push_back(some_factors({B, T, H}, l));
  Array y(Shape{B, T, H});
  for (int64_t b = 0; b < B; ++b) {
    std::vector<std::vector<double>> h, c;
    for (size_t l = 0; l < d.layers; ++l) {
      const size_t at = d.fixed() + l * d.per_layer();
      h.push_back(row_of(a[at + 4], b, H));
      c.push_back(d.kind == CellKind::lstm ? row_of(a[at + 5], b, H) : h.back());
    }
    for (int64_t t = 0; t < target.ptr()[b]; ++t) {
      std::vector<double> p;
      double sum = 0;
      for (int64_t j = 0; j < source.ptr()[b]; ++j) {
        p.push_back(std::exp(plain_score(d, a, h.back(), b, j)));
        sum += p.back();
      }
      std::vector<double> x(static_cast<size_t>(Dv));
      for (size_t j = 0; j < p.size(); ++j) {
        const int64_t at = static_cast<int64_t>(j);
        const double share = p[j] / sum * (d.dropout ? double{weight_factors.ptr()[(b * T + t) * S + at]} : 1);
        for (int64_t m = 0; m < Dv; ++m) x[static_cast<size_t>(m)] += share * a[1][(b * S + at) * Dv + m];
      }
      const std::vector<double> e = row_of(embedded, b * T + t, E);
      x.insert(x.end(), e.begin(), e.end());
      for (size_t l = 0; l < d.layers; ++l) {
        if (l > 0 && d.dropout)
          for (int64_t j = 0; j < H; ++j) x[static_cast<size_t>(j)] *= double{factors[l].ptr()[(b * T + t) * H + j]};
        PlainCell(d.kind, a, d.fixed() + l * d.per_layer()).step(x, h[l], c[l]);
        x = h[l];
      }
      for (int64_t j = 0; j < H; ++j) y[(b * T + t) * H + j] = x[static_cast<size_t>(j)];
    }
  }
  return y;
}

OpCase decoder_row(const std::string& label, const DecoderShape& d) {
  const auto shapes = [=](int64_t B, int64_t S, int64_t T, int64_t A, int64_t Dv, int64_t E, int64_t H) {
    std::vector<Shape> list{{B, S, A}, {B, S, Dv}, {A, H}, {A}, {B, T, E}};
    if (d.score != Score::additive) list.erase(list.begin() + 3);
    if (d.score == Score::dot) {
      list[0] = {B, S, H};
      list.erase(list.begin() + 2);
    }
    const int64_t rows = cell_gates(d.kind) * H;
    for (size_t l = 0; l < d.layers; ++l) {
      for (const Shape& s : {Shape{rows, l == 0 ? Dv + E : H}, Shape{rows, H}, Shape{rows}, Shape{rows}, Shape{B, H}})
        list.push_back(s);
      if (d.kind == CellKind::lstm) list.push_back({B, H});
    }
    return list;
  };
  OpCase row{.op = "attention_decoder",
             .label = label,
             .shapes = {shapes(3, 4, 3, 2, 3, 2, 3), shapes(2, 9, 2, 9, 8, 3, 5), shapes(1, 1, 1, 1, 1, 1, 1),
                        shapes(4, 5, 4, 3, 2, 1, 2), shapes(0, 2, 2, 2, 2, 2, 2), shapes(2, 2, 0, 2, 2, 2, 2),
                        shapes(2, 0, 2, 2, 2, 2, 2)},
             .call = [=](const Tensors& x) { return decode(d, x); },
             .reference = [=](const Arrays& a) { return plain_decode(d, a); },
             .special = Special::none,
             .exception = kHuge};
  row.ranges.assign(d.fixed() + d.layers * d.per_layer(), {-1.f, 1.f});
  return row;
}

}  // namespace

std::vector<OpCase> recurrent_rows() {
  return {recurrent_row(CellKind::gru, "gru", false, Direction::forward),
          recurrent_row(CellKind::gru, "gru, lengths", true, Direction::forward),
          recurrent_row(CellKind::gru, "gru, lengths, backward", true, Direction::backward),
          recurrent_row(CellKind::gru_before, "gru, reset before the product", true, Direction::forward),
          recurrent_row(CellKind::lstm, "lstm", false, Direction::forward),
          recurrent_row(CellKind::lstm, "lstm, lengths, backward", true, Direction::backward),
          decoder_row("gru", {CellKind::gru, 1, false}),
          decoder_row("gru, two layers, dropout", {CellKind::gru, 2, true}),
          decoder_row("gru, reset before the product", {CellKind::gru_before, 1, true}),
          decoder_row("lstm, two layers", {CellKind::lstm, 2, false}),
          decoder_row("gru, dot product", {CellKind::gru, 1, false, Score::dot}),
          decoder_row("lstm, two layers, dropout, projected dot product", {CellKind::lstm, 2, true, Score::projected})};
}

}  // namespace qkv::tests
