// Points: rows of doubles. Regression uses double throughout: data keep all their digits.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "qkv/core/api.h"

namespace QKV_API qkv {

struct Points {
  int64_t rows = 0, width = 0;
  std::vector<double> values;  // (rows, width)

  Points() = default;
  Points(int64_t row_count, int64_t row_width)
      : rows(row_count), width(row_width), values(static_cast<size_t>(row_count * row_width)) {}
  /// One coordinate per row.
  static Points of(std::vector<double> column) {
    Points points;
    points.rows = static_cast<int64_t>(column.size());
    points.width = 1;
    points.values = std::move(column);
    return points;
  }
  /// Columns of equal length side by side.
  static Points from_columns(std::span<const std::vector<double>> columns);

  std::span<const double> row(int64_t i) const { return {values.data() + i * width, static_cast<size_t>(width)}; }
  double& at(int64_t i, int64_t a) { return values[static_cast<size_t>(i * width + a)]; }
  double at(int64_t i, int64_t a) const { return values[static_cast<size_t>(i * width + a)]; }
  /// All rows of one coordinate.
  std::vector<double> column(int64_t a) const;
  /// The same points, coordinate by coordinate: (width, rows).
  std::vector<double> transposed() const;
};

/// Fails, naming row, column and value, unless every value is finite.
void check_finite(const char* what, const Points& points);

}  // namespace qkv
