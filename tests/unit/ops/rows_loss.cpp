// Op-table rows: losses. Targets are made from the number of classes; id 1 is ignored where a row says so.
#include <algorithm>
#include <cmath>

#include "qkv/ops/loss.h"
#include "unit/ops/op_table.h"

namespace qkv::tests {
namespace {

Ids some_targets(const Shape& logits) {
  Ids targets = Ids::empty(Shape(std::span(logits.begin(), logits.end() - 1)));
  for (int64_t i = 0; i < targets.numel(); ++i) targets.mutable_ptr()[i] = static_cast<int32_t>((i * 7 + 1) % logits[-1]);
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
  return {.op = "cross_entropy", .label = label,
          .shapes = {{{3, 5}}, {{0, 4}}, {{3, 1}}, {{2, 3}}, {{7}}, {{2, 2, 8}}, {{2, 9}}, {{2, 33}}, {{3, 201}}, {{90, 4}}},
          .call = [=](const Tensors& x) { return cross_entropy(x[0], some_targets(x[0].shape()), options); },
          .reference = [=](const Arrays& x) { return plain_cross_entropy(x[0], options); },
          .ranges = {{-3, 3}}};
}

OpCase squares(std::string label, Reduction reduction, std::vector<Shape> shapes) {
  OpCase row{.op = "squared_error", .label = label, .shapes = {},
             .call = [=](const Tensors& x) { return squared_error(x[0], x[1], reduction); },
             .reference = [=](const Arrays& x) {
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
  const std::vector<Shape> shapes = {{3, 5}, {0}, {1}, {}, {7}, {8}, {9}, {33}, {201}};
  return {cross("mean", {}),
          cross("sum, smoothed", {.label_smoothing = 0.1f, .reduction = Reduction::sum}),
          cross("each, one id ignored", {.ignore_id = 1, .reduction = Reduction::none}),
          cross("mean, smoothed, one id ignored", {.ignore_id = 1, .label_smoothing = 0.3f}),
          squares("mean", Reduction::mean, shapes),
          squares("sum", Reduction::sum, shapes),
          squares("half", Reduction::half_sum, shapes),
          squares("each", Reduction::none, shapes)};
}

}  // namespace qkv::tests
