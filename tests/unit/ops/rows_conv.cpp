// Op-table rows: convolution and batch norm.
#include <cmath>

#include "qkv/ops/batch_norm.h"
#include "qkv/ops/conv.h"
#include "unit/ops/op_table.h"

namespace qkv::tests {
namespace {

// The definition, one product at a time.
Array convolved(const Arrays& a, const Conv1dOptions& o) {
  const Array &x = a[0], &w = a[1];
  const int64_t channels = x.shape[1], length = x.shape[2], taps = w.shape[2];
  const int64_t out = (length + 2 * o.padding - o.dilation * (taps - 1) - 1) / o.stride + 1;
  Array y(Shape{x.shape[0], w.shape[0], out});
  for (int64_t b = 0; b < x.shape[0]; ++b)
    for (int64_t c = 0; c < w.shape[0]; ++c)
      for (int64_t l = 0; l < out; ++l) {
        double sum = a.size() > 2 ? a[2][c] : 0;
        for (int64_t i = 0; i < channels; ++i)
          for (int64_t k = 0; k < taps; ++k) {
            const int64_t from = l * o.stride + k * o.dilation - o.padding;
            if (from >= 0 && from < length)
              sum += w[(c * channels + i) * taps + k] * x[(b * channels + i) * length + from];
          }
        y[(b * w.shape[0] + c) * out + l] = sum;
      }
  return y;
}

OpCase conv_row(const std::string& label, const Conv1dOptions& options, const std::vector<std::vector<Shape>>& shapes) {
  return {.op = "conv1d",
          .label = label,
          .shapes = shapes,
          .call = [=](const Tensors& x) { return conv1d(x[0], x[1], x.size() > 2 ? x[2] : Tensor(), options); },
          .reference = [=](const Arrays& x) { return convolved(x, options); }};
}

Array normalised(const Arrays& a) {
  const Array& x = a[0];
  const int64_t n = x.shape[0], channels = x.shape[1], length = x.shape.rank() == 3 ? x.shape[2] : 1;
  Array y(x.shape);
  for (int64_t c = 0; c < channels; ++c) {
    double mean = 0, variance = 0;
    const auto each = [&](auto&& f) {
      for (int64_t b = 0; b < n; ++b)
        for (int64_t l = 0; l < length; ++l) f((b * channels + c) * length + l);
    };
    const double count = static_cast<double>(n * length);
    each([&](int64_t i) { mean += x[i] / count; });
    each([&](int64_t i) { variance += (x[i] - mean) * (x[i] - mean) / count; });
    each([&](int64_t i) { y[i] = a[1][c] * (x[i] - mean) / std::sqrt(variance + double{1e-5f}) + a[2][c]; });
  }
  return y;
}

}  // namespace

std::vector<OpCase> conv_rows() {
  return {
      conv_row("plain", {},
               {{{2, 3, 9}, {4, 3, 3}}, {{1, 1, 1}, {1, 1, 1}}, {{2, 2, 33}, {3, 2, 5}}, {{0, 2, 5}, {3, 2, 2}}}),
      conv_row("bias", {}, {{{2, 3, 9}, {4, 3, 3}, {4}}, {{1, 1, 8}, {2, 1, 8}, {2}}}),
      conv_row("padded", {.padding = 2},
               {{{2, 2, 7}, {3, 2, 3}, {3}}, {{1, 2, 1}, {1, 2, 5}, {1}}, {{1, 1, 0}, {2, 1, 3}, {2}}}),
      conv_row("stride", {.padding = 1, .stride = 2}, {{{2, 2, 8}, {3, 2, 3}, {3}}, {{1, 1, 33}, {2, 1, 4}}}),
      conv_row("dilation", {.padding = 3, .stride = 1, .dilation = 3}, {{{2, 2, 9}, {2, 2, 3}, {2}}}),
      conv_row("stride and dilation", {.padding = 4, .stride = 3, .dilation = 2},
               {{{2, 2, 9}, {2, 2, 4}, {2}}, {{1, 1, 2}, {1, 1, 3}}}),
  };
}

std::vector<OpCase> batch_norm_rows() {
  return {{.op = "batch_norm",
           .label = "training",
           .shapes = {{{4, 3}, {3}, {3}},
                      {{7, 9}, {9}, {9}},
                      {{8, 33}, {33}, {33}},
                      {{2, 3, 4}, {3}, {3}},
                      {{3, 2, 8}, {2}, {2}},
                      {{4, 70}, {70}, {70}},
                      {{5, 1, 1}, {1}, {1}},
                      {{1, 1}, {1}, {1}},
                      {{3, 0}, {0}, {0}}},
           .call = [](const Tensors& x) { return batch_norm(x[0], x[1], x[2]); },
           .reference = normalised}};
}

}  // namespace qkv::tests
