// Averaging large matrices down to what a page or a terminal can show.
#include "qkv/plot/heat.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qkv::plotting {

Matrix averaged(const Tensor& matrix, int64_t most_rows, int64_t most_cols) {
  const int64_t rows = matrix.size(0), cols = matrix.size(1);
  const int64_t tall = std::max<int64_t>(1, (rows + most_rows - 1) / std::max<int64_t>(most_rows, 1));
  const int64_t wide = std::max<int64_t>(1, (cols + most_cols - 1) / std::max<int64_t>(most_cols, 1));
  Matrix out{(rows + tall - 1) / tall, (cols + wide - 1) / wide, {}};
  if (tall == 1 && wide == 1) {
    out.values.assign(matrix.data().begin(), matrix.data().end());
    return out;
  }
  std::vector<double> sums(out.cols);
  std::vector<int64_t> counts(out.cols);
  for (int64_t i = 0; i < out.rows; ++i) {
    std::fill(sums.begin(), sums.end(), 0.0);
    std::fill(counts.begin(), counts.end(), 0);
    for (int64_t r = i * tall; r < std::min(rows, (i + 1) * tall); ++r) {
      for (int64_t c = 0; c < cols; ++c) {
        const float v = matrix.ptr()[r * cols + c];
        if (std::isnan(v)) continue;
        sums[c / wide] += v;
        ++counts[c / wide];
      }
    }
    for (int64_t j = 0; j < out.cols; ++j)
      out.values.push_back(counts[j] > 0 ? static_cast<float>(sums[j] / static_cast<double>(counts[j]))
                                         : std::numeric_limits<float>::quiet_NaN());
  }
  return out;
}

std::string cell_number(double value) {
  const double size = std::abs(value);
  if (!std::isfinite(value) || size >= 1e5) return short_number(value);
  return tick_label(value, size >= 100 ? 1 : size >= 10 ? 0.1 : 0.01, size);
}

}  // namespace qkv::plotting
