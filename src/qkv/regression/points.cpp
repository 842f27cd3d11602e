// Rows of doubles.
#include "qkv/regression/points.h"

#include <cmath>

#include "qkv/core/check.h"

namespace qkv {

Points Points::from_columns(std::span<const std::vector<double>> columns) {
  Points points(columns.empty() ? 0 : static_cast<int64_t>(columns[0].size()), static_cast<int64_t>(columns.size()));
  for (int64_t a = 0; a < points.width; ++a) {
    const auto& column = columns[static_cast<size_t>(a)];
    const auto size = static_cast<int64_t>(column.size());
    check(size == points.rows, "[points] columns of different lengths: ", points.rows, " and ", size);
    for (int64_t i = 0; i < points.rows; ++i) points.at(i, a) = column[static_cast<size_t>(i)];
  }
  return points;
}

std::vector<double> Points::column(int64_t a) const {
  std::vector<double> out(static_cast<size_t>(rows));
  for (int64_t i = 0; i < rows; ++i) out[static_cast<size_t>(i)] = at(i, a);
  return out;
}

std::vector<double> Points::transposed() const {
  std::vector<double> out(values.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t a = 0; a < width; ++a) out[static_cast<size_t>(a * rows + i)] = at(i, a);
  return out;
}

void check_finite(const char* what, const Points& points) {
  for (int64_t i = 0; i < points.rows; ++i)
    for (int64_t a = 0; a < points.width; ++a)
      check(std::isfinite(points.at(i, a)), "[regression] ", what, " row ", i + 1, ", column ", a + 1,
            " is not finite: ", points.at(i, a));
}

}  // namespace qkv
