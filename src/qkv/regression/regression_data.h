// The data of a KernelRegression, shared by all widths and kernels tried on it.
#pragma once

#include <optional>

#include "qkv/regression/cloud_sums.h"
#include "qkv/regression/kernel_regression.h"
#include "qkv/regression/output_parts.h"

namespace qkv {

struct KernelRegression::Data {
  Data(Points x_rows, Points y_rows);
  Data(const Data&) = delete;

  Points x, y;
  std::vector<double> spread;           // (d): standard deviation of each coordinate
  std::vector<double> mean, deviation;  // (m): of y
  OutputParts parts;                    // of y
  Cloud cloud;
  std::optional<Line> line;  // in one dimension
};

}  // namespace qkv
