// Cutting outputs into parts by size.
#include "qkv/regression/output_parts.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace qkv {
namespace {

constexpr double kRatio = 0x1p20;  // of sizes within a part: the rest of a double's 53 bits is more than data have
constexpr int kMostParts = 8;

/// The largest size in each part of a column, ascending; the last is infinite.
std::vector<double> limits_of(const std::vector<double>& column) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  std::vector<double> sizes;
  for (const double value : column)
    if (value != 0) sizes.push_back(std::abs(value));
  if (sizes.empty()) return {kNone};
  const auto low = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 100);
  std::nth_element(sizes.begin(), low, sizes.end());
  const double largest = *std::max_element(low, sizes.end());
  std::vector<double> limits = {*low * kRatio};
  while (limits.back() < largest && std::ssize(limits) < kMostParts) {
    double next = largest;  // the smallest size that is still outside
    for (const double size : sizes)
      if (size > limits.back()) next = std::min(next, size);
    limits.push_back(next * kRatio);
  }
  limits.back() = kNone;
  return limits;
}

}  // namespace

OutputParts::OutputParts(const Points& y) : first{0} {
  std::vector<std::vector<double>> parts;
  std::vector<bool> huge(static_cast<size_t>(y.rows));
  for (int64_t j = 0; j < y.width; ++j) {
    const std::vector<double> column = y.column(j), limits = limits_of(column);
    double usual = 0, mean = 0;
    for (const double value : column) usual += std::abs(value) <= limits[0] ? 1 : 0;
    for (const double value : column)
      if (std::abs(value) <= limits[0]) mean += value / usual;
    parts.resize(parts.size() + limits.size(), std::vector<double>(column.size()));
    for (size_t i = 0; i < column.size(); ++i) {
      const auto part = std::lower_bound(limits.begin(), limits.end(), std::abs(column[i])) - limits.begin();
      parts[static_cast<size_t>(first.back() + part)][i] = column[i] - mean;
      if (part > 0) huge[i] = true;
    }
    centre.push_back(mean);
    first.push_back(static_cast<int64_t>(parts.size()));
  }
  columns = Points::from_columns(parts);
  for (int64_t i = 0; i < y.rows; ++i)
    if (huge[static_cast<size_t>(i)]) huge_rows.push_back(i);
}

bool OutputParts::is_huge(int64_t row) const { return std::binary_search(huge_rows.begin(), huge_rows.end(), row); }

double OutputParts::value(std::span<const double> parts, int64_t j) const {
  double sum = parts[static_cast<size_t>(first[j])];
  for (int64_t p = first[j] + 1; p < first[j + 1]; ++p) sum += parts[static_cast<size_t>(p)];
  return sum + centre[j];
}

}  // namespace qkv
