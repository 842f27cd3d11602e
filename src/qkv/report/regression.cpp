// Predictions as a table and as JSON, fit and weights as figures.
#include "qkv/report/regression.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "qkv/core/check.h"
#include "qkv/core/names.h"

namespace qkv::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostCircles = 5000;  // more would make a large file that shows no more
constexpr int64_t kMostCells = 4'000'000;

std::vector<int64_t> ascending(const Points& points) {
  std::vector<int64_t> order(static_cast<size_t>(points.rows));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (points.width == 1)
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return points.at(a, 0) < points.at(b, 0); });
  return order;
}

// The name of a column of x: "x" for the only one of a file without names, whose columns are named by number.
std::string x_name(const std::vector<std::string>& names, size_t a) {
  const std::string& name = names[a];
  const bool numbered =
      name.size() <= 3 && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  return names.size() == 1 && numbered ? "x" : name;
}

}  // namespace

Table prediction_table(const RegressionData& data, const RegressionResult& result) {
  Table out;
  for (size_t a = 0; a < data.x_names.size(); ++a) {
    out.names.push_back(x_name(data.x_names, a));
    out.columns.push_back(result.at.column(static_cast<int64_t>(a)));
  }
  const auto add = [&](const char* what, const Points& values) {
    for (size_t j = 0; j < data.y_names.size(); ++j) {
      out.names.push_back(data.y_names.size() == 1 ? what : text(what, "_", data.y_names[j]));
      out.columns.push_back(values.column(static_cast<int64_t>(j)));
    }
  };
  add("prediction", result.predictions.values);
  if (result.level) {
    add("low", result.predictions.low);
    add("high", result.predictions.high);
  }
  if (!result.effective_keys.empty()) {
    out.names.push_back("effective_keys");
    out.columns.push_back(result.effective_keys);
  }
  return out;
}

std::string to_json(const RegressionData& data, const RegressionResult& result, JsonRows rows) {
  const RegressionOptions& o = result.options;
  const bool has_width = o.estimator != Estimator::average && o.kernel != KernelShape::constant;
  Json json = {{"rows", data.x.rows},
               {"dropped", data.dropped},
               {"kernel", name_of(o.kernel)},
               {"estimator", name_of(o.estimator)}};
  json["bandwidth"] = has_width ? Json(o.bandwidth) : Json(nullptr);
  if (result.validated)
    json["leave_one_out"] = {{"score", result.validated->score}, {"evaluations", result.validated->evaluations}};
  if (result.learned)
    json["learned"] = {{"w", result.learned->w}, {"start", result.learned->start}, {"losses", result.learned->losses}};
  if (result.level) json["sigma"] = result.predictions.deviation;
  json["absent"] = result.predictions.absent;
  if (rows == JsonRows::with) {
    const Table table = prediction_table(data, result);
    Json list = Json::array();
    for (size_t i = 0; i < static_cast<size_t>(table.rows()); ++i) {
      Json row = Json::object();
      for (size_t c = 0; c < table.names.size(); ++c) {
        const double value = table.columns[c][i];
        row[table.names[c]] = std::isnan(value) ? Json(nullptr) : Json(value);
      }
      list.push_back(std::move(row));
    }
    json["predictions"] = std::move(list);
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace);  // a column's name may contain any bytes
}

Figure fit_figure(const RegressionData& input, const RegressionResult& result) {
  const auto& [at, predictions] = std::tie(result.at, result.predictions);
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
    Series data{.name = tr("data"), .x = {}, .y = {}, .style = line_style("o")};
    data.style->alpha = 0.5;
    for (int64_t i = 0; i < input.x.rows; i += step) {
      data.x.push_back(input.x.at(i, 0));
      data.y.push_back(input.y.at(i, j));
    }
    Series fit{.name = tr("fit"),
               .x = sorted(at, 0),
               .y = sorted(predictions.values, j),
               .style = line_style(at.rows > 1 ? "m-" : "mo")};
    Curves curves{.series = {std::move(data), std::move(fit)}};
    if (result.level)
      curves.bands.push_back({tr("{level:.4g} % band", "level"_a = 100 * *result.level),
                              sorted(at, 0),
                              sorted(predictions.low, j),
                              sorted(predictions.high, j),
                              {}});
    Axis x, y;
    x.label = input.x_names[0];
    y.label = input.y_names[j];
    figure.panels.push_back({std::move(curves), "", x, y});
  }
  return figure;
}

Figure weights_figure(const RegressionData& input, const Points& at, const KernelRegression& regression) {
  require(at.rows <= kMostCells / std::max<int64_t>(1, input.x.rows),
          "--weights-plot: {rows} points x {rows_2} rows are too many for a picture; it has at most {most_cells} cells",
          "rows"_a = at.rows, "rows_2"_a = input.x.rows, "most_cells"_a = kMostCells);
  const Tensor weights = regression.weights(at);
  const std::vector<int64_t> rows = ascending(at), columns = ascending(input.x);
  Tensor shown = Tensor::empty({at.rows, input.x.rows});
  for (int64_t q = 0; q < at.rows; ++q)
    for (int64_t i = 0; i < input.x.rows; ++i)
      shown.mutable_ptr()[q * input.x.rows + i] = weights.ptr()[rows[q] * input.x.rows + columns[i]];
  const bool sorted = input.x.width == 1;
  return heatmaps(shown, sorted ? tr("Sorted training inputs") : tr("Training inputs"),
                  sorted ? tr("Sorted testing inputs") : tr("Testing inputs"));
}

}  // namespace qkv::report
