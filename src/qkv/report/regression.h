// Kernel regression on the columns of a file: predictions as a table, as JSON and as figures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/io/csv.h"
#include "qkv/plot/figure.h"
#include "qkv/regression/bandwidth.h"

namespace QKV_API qkv {
namespace report {

struct RegressionData {
  std::vector<std::string> x_names, y_names;
  Points x, y;
  int64_t dropped = 0;  // rows with a missing number
};

struct RegressionResult {
  RegressionOptions options;
  Points at;
  Predictions predictions;
  std::optional<double> level;         // of the band, if there is one
  std::vector<double> effective_keys;  // per point; empty if not requested
  std::optional<Learned> learned;      // how the bandwidth was found, if it was searched for
  std::optional<CrossValidated> validated;
};

/// One row per point: x, prediction, band, effective keys.
Table prediction_table(const RegressionData& data, const RegressionResult& result);

/// The fit and its options; with rows, also the predictions.
enum class JsonRows { with, without };
std::string to_json(const RegressionData& data, const RegressionResult& result, JsonRows rows);

/// Data as circles, the fit as a line, the band around it; one panel per output. Only for one column of x.
Figure fit_figure(const RegressionData& data, const RegressionResult& result);

/// The weights of every point (rows) on every row of the data (columns), both in ascending order if x has one column.
Figure weights_figure(const RegressionData& data, const Points& at, const KernelRegression& regression);

}  // namespace report
}  // namespace qkv
