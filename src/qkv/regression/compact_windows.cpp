// Windows of compact kernels by prefix power sums within cells.
#include <algorithm>
#include <array>
#include <cmath>

#include "qkv/core/parallel.h"
#include "qkv/regression/line.h"

namespace qkv {
namespace {

/// Coefficients of a shape, or of its square, as a polynomial in u; `side` is -1 left of the query, 1 right of it.
struct Polynomial {
  std::array<double, 5> coefficient{};
  int degree = 0;
};

Polynomial polynomial(KernelShape shape, bool squared, double side) {
  switch (shape) {
    case KernelShape::triangular:  // 1 - side u
      return squared ? Polynomial{{1, -2 * side, 1}, 2} : Polynomial{{1, -side}, 1};
    case KernelShape::epanechnikov:  // 1 - u^2
      return squared ? Polynomial{{1, 0, -2, 0, 1}, 4} : Polynomial{{1, 0, -1}, 2};
    default:
      return Polynomial{{1}, 0};
  }
}

/// A sum that keeps its rounding errors (Neumaier, 1974).
struct CompensatedSum {
  double total = 0, rest = 0;
  void add(double term) {
    const double next = total + term;
    rest += std::abs(total) >= std::abs(term) ? (total - next) + term : (term - next) + total;
    total = next;
  }
  double value() const { return total + rest; }
};

}  // namespace

CompactWindows::CompactWindows(const Line& line, KernelShape shape, double width, SumsWanted wanted)
    : line_(&line), shape_(shape), width_(width), wanted_(wanted), cells_(line.x, width / 2), cell_of_(line.x.size()) {
  const int degree = polynomial(shape, false, 1).degree, square = polynomial(shape, true, 1).degree;
  value_terms_ = degree + wanted.order + 1;
  count_terms_ = std::max(value_terms_, wanted.squares ? square + wanted.order + 1 : 0);
  terms_ = count_terms_ + value_terms_ * static_cast<int>(line.y->width);
  prefix_.resize(line.x.size() * static_cast<size_t>(terms_));
  const double work = static_cast<double>(line.keys()) * terms_ * 3;
  parallel_ranges(cells_.size(), 64, work, [&](int64_t first_cell, int64_t last_cell) {
    std::vector<CompensatedSum> sums(static_cast<size_t>(terms_));
    for (int64_t c = first_cell; c < last_cell; ++c) {
      std::fill(sums.begin(), sums.end(), CompensatedSum{});
      for (int64_t i = cells_.begin[c]; i < cells_.begin[c + 1]; ++i) {
        cell_of_[i] = c;
        const double t = (line.x[i] - cells_.centre[c]) / width;
        auto* out = prefix_.data() + i * terms_;
        int term = 0;
        for (int64_t column = 0; column < line.columns(); ++column) {
          double power = line.value[column * line.keys() + i];
          for (int p = 0; p < (column == 0 ? count_terms_ : value_terms_); ++p, ++term, power *= t) {
            sums[term].add(power);
            out[term] = sums[term].value();
          }
        }
      }
    }
  });
}

/// power += sums of v u^p over keys [first, last), u = (x - query) / h.
void CompactWindows::add_range(int64_t first, int64_t last, double query, std::vector<double>& power,
                               double& touched) const {
  std::array<double, 8> moved;
  while (first < last) {
    const int64_t cell = cell_of_[first], start = cells_.begin[cell], stop = cells_.begin[cell + 1],
                  end = std::min(last, stop);
    const double* upper = prefix_.data() + (end - 1) * terms_;
    const double* lower = first > start ? prefix_.data() + (first - 1) * terms_ : nullptr;
    const double shift = (cells_.centre[cell] - query) / width_;
    touched += prefix_[static_cast<size_t>((stop - 1) * terms_)];
    for (int term = 0; term < terms_;) {
      const int count = term == 0 ? count_terms_ : value_terms_;
      for (int p = 0; p < count; ++p) moved[p] = upper[term + p] - (lower ? lower[term + p] : 0);
      // (t + e)^p by one synthetic step per degree
      for (int r = 0; r + 1 < count; ++r)
        for (int p = count - 1; p > r; --p) moved[p] += shift * moved[p - 1];
      for (int p = 0; p < count; ++p) power[term + p] += moved[p];
      term += count;
    }
    first = end;
  }
}

void CompactWindows::sums(std::span<const double> queries, double* sums) const {
  const auto& x = line_->x;
  const int64_t columns = line_->columns(), stride = columns * (wanted_.order + 1) + (wanted_.squares ? 3 : 0) + 1;
  std::vector<double> power(static_cast<size_t>(terms_));
  auto low = x.begin(), middle = x.begin(), high = x.begin();
  if (!queries.empty()) {  // the same tests as below, by bisection
    const double q = queries[0];
    low =
        std::partition_point(x.begin(), x.end(), [&](double key) { return key < q && !(std::abs(key - q) < width_); });
    middle = std::partition_point(low, x.end(), [&](double key) { return key < q; });
    high = std::partition_point(middle, x.end(), [&](double key) { return std::abs(key - q) < width_; });
  }
  for (const double q : queries) {
    while (low != x.end() && *low < q && !(std::abs(*low - q) < width_)) ++low;
    middle = std::max(middle, low);
    while (middle != x.end() && *middle < q) ++middle;
    high = std::max(high, middle);
    while (high != x.end() && std::abs(*high - q) < width_) ++high;
    std::fill(sums, sums + stride, 0.0);
    double touched = 0;
    const bool two_sides = shape_ == KernelShape::triangular;
    const int64_t a = low - x.begin(), b = middle - x.begin(), c = high - x.begin();
    for (int side = two_sides ? -1 : 1; side <= 1; side += 2) {
      std::fill(power.begin(), power.end(), 0.0);
      add_range(two_sides && side > 0 ? b : a, side < 0 ? b : c, q, power, touched);
      const Polynomial kernel = polynomial(shape_, false, side);
      for (int64_t column = 0, term = 0; column < columns; term += column == 0 ? count_terms_ : value_terms_, ++column)
        for (int k = 0; k <= wanted_.order; ++k)
          for (int p = 0; p <= kernel.degree; ++p)
            sums[column * (wanted_.order + 1) + k] += kernel.coefficient[p] * power[term + p + k];
      if (wanted_.squares) {
        const Polynomial square = polynomial(shape_, true, side);
        for (int k = 0; k <= wanted_.order; ++k)
          for (int p = 0; p <= square.degree; ++p) sums[stride - 4 + k] += square.coefficient[p] * power[p + k];
      }
    }
    sums[stride - 1] = touched;
    sums += stride;
  }
}

}  // namespace qkv
