// Op-table rows: dropout, layer norm, the fused residual and RMS norm.
#include <cmath>
#include <limits>

#include "qkv/ops/dropout.h"
#include "qkv/ops/norm.h"
#include "unit/ops/op_table.h"

namespace qkv::tests {
namespace {

const Run kTraining{.training = true, .rng = Rng(11).at("layer").at_step(3)};

// x where word i of the stream is at least rate 2^32, over 1 - rate; else 0. Values too large for float are infinite.
Array plain_dropout(const Array& x, double rate, const Rng& rng) {
  Array y = x;
  for (int64_t i = 0; i < x.numel(); ++i) {
    y[i] = rng.word(static_cast<uint64_t>(i)) >= rate * 0x1p32 ? x[i] / (1 - rate) : 0;
    if (std::abs(y[i]) > std::numeric_limits<float>::max())
      y[i] = std::copysign(std::numeric_limits<double>::infinity(), y[i]);
  }
  return y;
}

Array plain_layer_norm(const Array& x, const Array& gamma, const Array& beta, double eps) {
  Array y = x;
  const int64_t width = x.shape[-1];
  for (int64_t begin = 0; begin < x.numel(); begin += width) {
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < width; ++i) mean += x[begin + i] / static_cast<double>(width);
    for (int64_t i = 0; i < width; ++i)
      variance += (x[begin + i] - mean) * (x[begin + i] - mean) / static_cast<double>(width);
    for (int64_t i = 0; i < width; ++i)
      y[begin + i] = (x[begin + i] - mean) / std::sqrt(variance + eps) * gamma[i] + beta[i];
  }
  return y;
}

Array plain_rms_norm(const Array& x, const Array& gamma, double eps) {
  Array y = x;
  const int64_t width = x.shape[-1];
  for (int64_t begin = 0; begin < x.numel(); begin += width) {
    double mean = 0;
    for (int64_t i = 0; i < width; ++i) mean += x[begin + i] * x[begin + i] / static_cast<double>(width);
    for (int64_t i = 0; i < width; ++i) y[begin + i] = x[begin + i] / std::sqrt(mean + eps) * gamma[i];
  }
  return y;
}

Array sum(const Array& a, const Array& b) {
  Array y = a;
  for (int64_t i = 0; i < y.numel(); ++i) y[i] += b[i];
  return y;
}

std::vector<std::vector<Shape>> norm_shapes(bool residual) {
  std::vector<std::vector<Shape>> sets;
  for (Shape x : std::vector<Shape>{{3, 5},
                                    {0, 4},
                                    {4, 0},
                                    {3, 1},
                                    {2, 3},
                                    {7},
                                    {2, 8},
                                    {2, 9},
                                    {2, 33},
                                    {1, 201},
                                    {2, 2, 2, 4},
                                    {1, 1},
                                    {300, 71}}) {
    const Shape d{x[-1]};
    if (residual)
      sets.push_back({x, x, d, d});
    else
      sets.push_back({x, d, d});
  }
  return sets;
}

std::vector<std::vector<Shape>> rms_shapes() {
  std::vector<std::vector<Shape>> sets = {{{150, 3}, {3}}};  // three groups of the parameter's gradient
  for (const auto& shapes : norm_shapes(false))  // one element is its own mean: its gradient is a difference of equals
    if (shapes[0][-1] != 1) sets.push_back({shapes[0], shapes[1]});
  return sets;
}

// 150 rows are three groups of the parameter gradients.
OpCase many_rows(OpCase row) {
  const Shape x{150, 3}, d{3};
  row.shapes = row.shapes[0].size() == 4 ? std::vector<std::vector<Shape>>{{x, x, d, d}}
                                         : std::vector<std::vector<Shape>>{{x, d, d}};
  row.label += ", many rows";
  row.special = Special::none;
  row.exception =
      "some of 450 normalised values are near 0, and a huge gamma shows their rounding; special values are tested "
      "with few rows";
  return row;
}

OpCase residual(std::string label, float rate, const Run& run, std::function<Array(const Array&)> branch) {
  return {
      .op = "residual_layer_norm",
      .label = label,
      .shapes = norm_shapes(true),
      .call = [=](const Tensors& x) { return residual_layer_norm(x[0], x[1], x[2], x[3], rate, run); },
      .reference = [=](const Arrays& x) { return plain_layer_norm(sum(x[0], branch(x[1])), x[2], x[3], kNormEps); }};
}

}  // namespace

std::vector<OpCase> norm_rows() {
  std::vector<OpCase> rows = {
      {.op = "dropout",
       .label = "in training",
       .shapes = {{{3, 5}}, {{0}}, {{1}}, {{}}, {{7}}, {{8}}, {{9}}, {{2, 3, 11}}, {{201}}, {{20001}}},
       .call = [](const Tensors& x) { return dropout(x[0], 0.3f, kTraining); },
       .reference = [](const Arrays& x) { return plain_dropout(x[0], 0.3f, kTraining.rng); }},
      {.op = "layer_norm",
       .label = "plain",
       .shapes = norm_shapes(false),
       .call = [](const Tensors& x) { return layer_norm(x[0], x[1], x[2]); },
       .reference = [](const Arrays& x) { return plain_layer_norm(x[0], x[1], x[2], kNormEps); }},
      {.op = "layer_norm",
       .label = "large eps",
       .shapes = {{{4, 6}, {6}, {6}}},
       .call = [](const Tensors& x) { return layer_norm(x[0], x[1], x[2], 0.5f); },
       .reference = [](const Arrays& x) { return plain_layer_norm(x[0], x[1], x[2], 0.5); }},
      {.op = "rms_norm",
       .label = "plain",
       .shapes = rms_shapes(),
       .call = [](const Tensors& x) { return rms_norm(x[0], x[1]); },
       .reference = [](const Arrays& x) { return plain_rms_norm(x[0], x[1], kNormEps); }},
      {.op = "rms_norm",
       .label = "large eps",
       .shapes = {{{4, 6}, {6}}, {{3, 1}, {1}}, {{1, 1}, {1}}},
       .call = [](const Tensors& x) { return rms_norm(x[0], x[1], 0.5f); },
       .reference = [](const Arrays& x) { return plain_rms_norm(x[0], x[1], 0.5); }},
      residual("with dropout", 0.25f, kTraining, [](const Array& y) { return plain_dropout(y, 0.25, kTraining.rng); }),
      residual("inference", 0.25f, Run{}, [](const Array& y) { return y; })};
  rows.push_back(many_rows(rows[1]));
  rows.push_back(many_rows(rows[5]));
  return rows;
}

}  // namespace qkv::tests
