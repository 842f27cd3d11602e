// Outputs as columns to be summed: numbers of very different size get separate columns, so that a huge one does not
// cost digits in predictions where it has no weight.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "qkv/regression/points.h"

namespace qkv {

/// y = centre + sum of its parts. The first part of an output holds the rows whose |y| is at most 2^20 times the lower
/// percentile of |y|, minus their mean; ordinary data have no other part. Larger values are in further parts, each
/// spanning a factor of 2^20; values outside a part are 0 in it.
struct OutputParts {
  explicit OutputParts(const Points& y);

  Points columns;                  // (rows, parts)
  std::vector<int64_t> first;      // (outputs + 1): the parts of output j are first[j] .. first[j + 1] - 1
  std::vector<double> centre;      // (outputs)
  std::vector<int64_t> huge_rows;  // ascending: rows with a value outside the first part of its output

  int64_t count() const { return columns.width; }
  /// Whether a value of this row is outside the first part.
  bool is_huge(int64_t row) const;
  /// Output j from the predictions of its parts.
  double value(std::span<const double> parts, int64_t j) const;
};

}  // namespace qkv
