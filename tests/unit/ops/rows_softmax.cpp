// Op-table rows: softmax and log-softmax.
#include <algorithm>
#include <cmath>

#include "qkv/ops/softmax.h"
#include "unit/ops/op_table.h"

namespace qkv::tests {
namespace {

const std::vector<std::vector<Shape>> kRows = {{{3, 5}},  {{0}},      {{0, 4}},       {{4, 0}},   {{1}},
                                               {{5, 1}},  {{2, 3}},   {{7}},          {{8}},      {{9}},
                                               {{2, 33}}, {{2, 201}}, {{2, 2, 3, 4}}, {{300, 71}}};

// x - max - log sum e^(x - max), row by row.
Array plain_log_softmax(const Array& x) {
  Array y = x;
  const int64_t width = x.shape[-1];
  for (int64_t begin = 0; begin < x.numel(); begin += width) {
    double most = x[begin], sum = 0;
    for (int64_t i = begin; i < begin + width; ++i) most = std::max(most, x[i]);
    for (int64_t i = begin; i < begin + width; ++i) sum += std::exp(x[i] - most);
    for (int64_t i = begin; i < begin + width; ++i) y[i] = x[i] - most - std::log(sum);
  }
  return y;
}

Array plain_softmax(const Array& x) {
  Array y = plain_log_softmax(x);
  for (double& v : y.v) v = std::exp(v);
  return y;
}

}  // namespace

std::vector<OpCase> softmax_rows() {
  return {{.op = "softmax",
           .label = "last axis",
           .shapes = kRows,
           .call = [](const Tensors& x) { return softmax(x[0]); },
           .reference = [](const Arrays& x) { return plain_softmax(x[0]); }},
          {.op = "softmax",
           .label = "far apart",
           .shapes = {{{6, 20}}},
           .call = [](const Tensors& x) { return softmax(x[0]); },
           .reference = [](const Arrays& x) { return plain_softmax(x[0]); },
           .ranges = {{-10, 10}}},
          {.op = "log_softmax",
           .label = "last axis",
           .shapes = kRows,
           .call = [](const Tensors& x) { return log_softmax(x[0]); },
           .reference = [](const Arrays& x) { return plain_log_softmax(x[0]); }},
          {.op = "log_softmax",
           .label = "far apart",
           .shapes = {{{6, 20}}},
           .call = [](const Tensors& x) { return log_softmax(x[0]); },
           .reference = [](const Arrays& x) { return plain_log_softmax(x[0]); },
           .ranges = {{-10, 10}}}};
}

}  // namespace qkv::tests
