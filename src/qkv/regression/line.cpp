// Sorting, merging, cutting into cells, and the fast Gauss transform.
#include "qkv/regression/line.h"

#include <algorithm>
#include <numeric>

#include "qkv/core/parallel.h"
#include "qkv/kernels/gauss_line.h"

namespace qkv {

Line::Line(std::span<const double> keys, const Points& values, std::span<const int64_t> huge_rows)
    : y(&values), order(keys.size()) {
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto key = [&](int64_t row) { return keys[static_cast<size_t>(row)]; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return key(a) < key(b); });
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || key(order[i]) != key(order[i - 1])) {
      x.push_back(key(order[i]));
      key_begin.push_back(static_cast<int64_t>(i));
    }
  }
  key_begin.push_back(static_cast<int64_t>(order.size()));
  for (const int64_t row : huge_rows) huge.push_back(key(row));
  std::sort(huge.begin(), huge.end());
  const size_t n = x.size();
  value.assign(n * static_cast<size_t>(columns()), 0.0);
  for (size_t k = 0; k < n; ++k) {
    value[k] = static_cast<double>(key_begin[k + 1] - key_begin[k]);
    for (int64_t j = 0; j < y->width; ++j)
      for (int64_t i = key_begin[k]; i < key_begin[k + 1]; ++i)
        value[static_cast<size_t>(j + 1) * n + k] += y->at(order[i], j);
  }
}

Cells::Cells(const std::vector<double>& x, double span) {
  const auto n = static_cast<int64_t>(x.size());
  for (int64_t first = 0; first < n;) {
    int64_t last = first + 1;
    while (last < n && x[last] - x[first] <= span) ++last;
    begin.push_back(first);
    centre.push_back(x[first] + (x[last - 1] - x[first]) / 2);
    first = last;
  }
  begin.push_back(n);
}

namespace {

kernels::GaussLine gauss_line(const Line& line, const Cells& cells, double width, int64_t group) {
  const int64_t first = group * kernels::kGaussMaxColumns;
  return {.x = line.x.data(),
          .value = line.value.data() + first * line.keys(),
          .keys = line.keys(),
          .columns = 0,
          .centre = cells.centre.data(),
          .begin = cells.begin.data(),
          .cells = cells.size(),
          .slot = nullptr,
          .moments = nullptr,
          .width = width};
}

int64_t group_columns(int64_t columns, int64_t group) {
  return std::min<int64_t>(kernels::kGaussMaxColumns, columns - group * kernels::kGaussMaxColumns);
}

}  // namespace

GaussTransform::GaussTransform(const Line& line, int64_t columns, double width)
    : line_(&line),
      columns_(columns),
      width_(width),
      cells_(line.x, 2 * kernels::kGaussRadius * width),
      slot_(cells_.centre.size()) {
  std::vector<int64_t> crowded;  // cells that get moments
  for (int64_t c = 0; c < cells_.size(); ++c) {
    slot_[c] = static_cast<int64_t>(crowded.size());
    if (cells_.begin[c + 1] - cells_.begin[c] > kernels::kGaussDirectKeys) crowded.push_back(c);
  }
  const auto groups = (columns + kernels::kGaussMaxColumns - 1) / kernels::kGaussMaxColumns;
  for (int64_t g = 0; g < groups; ++g) {
    kernels::GaussLine view = gauss_line(line, cells_, width, g);
    view.columns = group_columns(columns, g);
    const int64_t size = view.columns * kernels::kGaussTerms;
    auto& moments = moments_.emplace_back(crowded.size() * static_cast<size_t>(size));
    const double work = static_cast<double>(line.keys()) * static_cast<double>(view.columns) * 15;
    parallel_ranges(static_cast<int64_t>(crowded.size()), 8, work, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) kernels::gauss_moments(view, crowded[i], moments.data() + i * size);
    });
  }
}

void GaussTransform::sums(std::span<const double> queries, int order, double* sums) const {
  const auto count = static_cast<int64_t>(queries.size());
  std::vector<double> part;
  for (size_t g = 0; g < moments_.size(); ++g) {
    kernels::GaussLine view = gauss_line(*line_, cells_, width_, static_cast<int64_t>(g));
    view.columns = group_columns(columns_, static_cast<int64_t>(g));
    view.slot = slot_.data();
    view.moments = moments_[g].data();
    if (moments_.size() == 1) return kernels::gauss_sums(view, queries.data(), count, order, sums);
    const int64_t size = view.columns * (order + 1);
    part.resize(static_cast<size_t>(count * size));
    kernels::gauss_sums(view, queries.data(), count, order, part.data());
    const int64_t first = static_cast<int64_t>(g) * kernels::kGaussMaxColumns * (order + 1);
    for (int64_t i = 0; i < count; ++i)
      std::copy_n(part.data() + i * size, size, sums + i * columns_ * (order + 1) + first);
  }
}

}  // namespace qkv
