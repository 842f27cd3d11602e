// Fit and weights as figures.
#include "qkv/cli/regress_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "qkv/core/check.h"

namespace qkv::cli {
namespace {

constexpr int64_t kMostCircles = 5000;      // a file with more of them is heavy and shows no more
constexpr int64_t kMostCells = 4'000'000;

std::vector<int64_t> ascending(const Points& points) {
  std::vector<int64_t> order(static_cast<size_t>(points.rows));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (points.width == 1)
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return points.at(a, 0) < points.at(b, 0); });
  return order;
}

}  // namespace

Figure fit_figure(const RegressInput& input, const Points& at, const Predictions& predictions, double level) {
  const std::vector<int64_t> order = ascending(at);
  const auto sorted = [&](const Points& values, int64_t j) {
    std::vector<double> out;
    for (const int64_t i : order) out.push_back(values.at(i, j));
    return out;
  };
  Figure figure;
  figure.cols = static_cast<int>(input.y_names.size());
  const int64_t step = (input.x.rows + kMostCircles - 1) / kMostCircles;
  for (int64_t j = 0; j < input.y.width; ++j) {
    Series data{.name = "data", .x = {}, .y = {}, .style = line_style("o")};
    data.style->alpha = 0.5;
    for (int64_t i = 0; i < input.x.rows; i += step) {
      data.x.push_back(input.x.at(i, 0));
      data.y.push_back(input.y.at(i, j));
    }
    Series fit{.name = "fit", .x = sorted(at, 0), .y = sorted(predictions.values, j), .style = line_style(at.rows > 1 ? "m-" : "mo")};
    Curves curves{.series = {std::move(data), std::move(fit)}};
    if (predictions.low.rows > 0)
      curves.bands.push_back({fmt::format("{:.4g} % band", 100 * level), sorted(at, 0), sorted(predictions.low, j), sorted(predictions.high, j), {}});
    Axis x, y;
    x.label = input.x_names[0];
    y.label = input.y_names[j];
    figure.panels.push_back({std::move(curves), "", x, y});
  }
  return figure;
}

Figure weights_figure(const RegressInput& input, const Points& at, const KernelRegression& regression) {
  check(at.rows <= kMostCells / std::max<int64_t>(1, input.x.rows), "--weights-plot: ", at.rows, " points x ", input.x.rows,
        " rows are too many for a picture, at most ", kMostCells, " cells");
  const Tensor weights = regression.weights(at);
  const std::vector<int64_t> rows = ascending(at), columns = ascending(input.x);
  Tensor shown = Tensor::empty({at.rows, input.x.rows});
  for (int64_t q = 0; q < at.rows; ++q)
    for (int64_t i = 0; i < input.x.rows; ++i)
      shown.mutable_ptr()[q * input.x.rows + i] = weights.ptr()[rows[q] * input.x.rows + columns[i]];
  const bool sorted = input.x.width == 1;
  return heatmaps(shown, sorted ? "Sorted training inputs" : "Training inputs", sorted ? "Sorted testing inputs" : "Testing inputs");
}

}  // namespace qkv::cli
