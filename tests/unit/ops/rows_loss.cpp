// Op-table rows: losses. Targets are made from the number of classes; id 1 is ignored where a row says so.
#include <algorithm>
#include <cmath>

#include "qkv/ops/linear_loss.h"
#include "qkv/ops/loss.h"
#include "unit/ops/op_table.h"

namespace qkv::tests {
namespace {

Ids some_targets(const Shape& logits) {
  if (logits.rank() == 0) return Ids(Shape{}, {0});  // for an absent tensor, which the op must refuse
  Ids targets = Ids::empty(Shape(std::span(logits.begin(), logits.end() - 1)));
  for (int64_t i = 0; i < targets.numel(); ++i)
    targets.mutable_ptr()[i] = static_cast<int32_t>((i * 7 + 1) % std::max<int64_t>(logits[-1], 1));
  return targets;
}

// The sum over classes of -w_j log softmax(x)_j, w_j = e / V + (1 - e) [j = target], with 0 log 0 = 0.
double plain_row(const double* x, int64_t v, int32_t target, double smoothing) {
  double most = x[0], sum = 0, loss = 0;
  for (int64_t j = 0; j < v; ++j) most = std::max(most, x[j]);
  for (int64_t j = 0; j < v; ++j) sum += std::exp(x[j] - most);
  for (int64_t j = 0; j < v; ++j) {
    const double w = smoothing / static_cast<double>(v) + (j == target ? 1 - smoothing : 0);
    if (w != 0) loss -= w * (x[j] - most - std::log(sum));
  }
  return loss;
}

Array plain_cross_entropy(const Array& x, const CrossEntropyOptions& options) {
  const Ids targets = some_targets(x.shape);
  Array losses(targets.shape());
  int64_t counted = 0;
  for (int64_t r = 0; r < targets.numel(); ++r) {
    if (options.ignore_id && targets.ptr()[r] == *options.ignore_id) continue;
    ++counted;
    losses[r] = plain_row(x.v.data() + r * x.shape[-1], x.shape[-1], targets.ptr()[r], options.label_smoothing);
  }
  if (options.reduction == Reduction::none) return losses;
  Array y(Shape{});
  for (double loss : losses.v) y[0] += loss;
  if (options.reduction == Reduction::mean) y[0] = counted ? y[0] / static_cast<double>(counted) : 0;
  return y;
}

OpCase cross(std::string label, const CrossEntropyOptions& options) {
  return {.op = "cross_entropy",
          .label = label,
          .shapes = {{{3, 5}},
                     {{0, 4}},
                     {{3, 1}},
                     {{2, 3}},
                     {{7}},
                     {{2, 2, 8}},
                     {{2, 9}},
                     {{2, 33}},
                     {{3, 201}},
                     {{90, 4}},
                     {{1, 1}},
                     {{3000, 9}}},
          .call = [=](const Tensors& x) { return cross_entropy(x[0], some_targets(x[0].shape()), options); },
          .reference = [=](const Arrays& x) { return plain_cross_entropy(x[0], options); },
          .ranges = {{-3, 3}}};
}

// x (..., D), weight (V, D) and, if there is a third input, bias (V).
OpCase linear(std::string label, const CrossEntropyOptions& options, std::vector<std::vector<Shape>> shapes) {
  const auto logits_shape = [](Shape x, const Shape& weight) {
    if (x.rank() > 0) x.set(-1, weight[0]);
    return x;
  };
  return {.op = "linear_cross_entropy",
          .label = label,
          .shapes = std::move(shapes),
          .call =
              [=](const Tensors& x) {
                const Ids targets = some_targets(logits_shape(x[0].shape(), x[1].shape()));
                return linear_cross_entropy(x[0], x[1], x.size() > 2 ? x[2] : Tensor(), targets, options);
              },
          .reference =
              [=](const Arrays& x) {
                Array z(logits_shape(x[0].shape, x[1].shape));
                const int64_t v = x[1].shape[0], d = x[1].shape[1];
                for (int64_t i = 0; i < z.numel(); ++i) {
                  z[i] = x.size() > 2 ? x[2][i % v] : 0;
                  for (int64_t k = 0; k < d; ++k) z[i] += x[0][i / v * d + k] * x[1][i % v * d + k];
                }
                return plain_cross_entropy(z, options);
              },
          .ranges = {{-1, 1}, {-0.4f, 0.4f}, {-1, 1}}};  // so that one huge input keeps a row's loss within float
}

OpCase squares(std::string label, Reduction reduction, std::vector<Shape> shapes) {
  OpCase row{.op = "squared_error",
             .label = label,
             .shapes = {},
             .call = [=](const Tensors& x) { return squared_error(x[0], x[1], reduction); },
             .reference =
                 [=](const Arrays& x) {
                   Array each = x[0];
                   for (int64_t i = 0; i < each.numel(); ++i) each[i] = (x[0][i] - x[1][i]) * (x[0][i] - x[1][i]);
                   if (reduction == Reduction::none) return each;
                   Array y(Shape{});
                   for (double v : each.v) y[0] += v;
                   if (reduction == Reduction::half_sum) y[0] /= 2;
                   if (reduction == Reduction::mean) y[0] = each.numel() ? y[0] / static_cast<double>(each.numel()) : 0;
                   return y;
                 }};
  for (const Shape& s : shapes) row.shapes.push_back({s, s});
  return row;
}

}  // namespace

std::vector<OpCase> loss_rows() {
  const std::vector<Shape> shapes = {{3, 5}, {0}, {1}, {}, {7}, {8}, {9}, {33}, {201}, {33001}};
  return {cross("mean", {}),
          cross("sum, smoothed", {.label_smoothing = 0.1f, .reduction = Reduction::sum}),
          cross("each, one id ignored", {.ignore_id = 1, .reduction = Reduction::none}),
          cross("mean, smoothed, one id ignored", {.ignore_id = 1, .label_smoothing = 0.3f}),
          linear("mean", {},
                 {{{3, 4}, {5, 4}, {5}},
                  {{2, 2, 7}, {9, 7}, {9}},
                  {{0, 4}, {5, 4}, {5}},
                  {{3, 1}, {1, 1}, {1}},
                  {{1, 1}, {3, 1}, {3}},
                  {{5, 8}, {33, 8}}}),
          linear("sum, smoothed", {.label_smoothing = 0.1f, .reduction = Reduction::sum},
                 {{{3, 9}, {17, 9}, {17}}, {{4}, {5, 4}}, {{1}, {2, 1}}}),
          linear("each, one id ignored", {.ignore_id = 1, .reduction = Reduction::none}, {{{6, 3}, {5, 3}, {5}}}),
          squares("mean", Reduction::mean, shapes),
          squares("sum", Reduction::sum, shapes),
          squares("half", Reduction::half_sum, shapes),
          squares("each", Reduction::none, shapes)};
}

}  // namespace qkv::tests
