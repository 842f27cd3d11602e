// Keys on a line, and two fast ways to sum kernels over them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "qkv/core/forms.h"
#include "qkv/regression/local_fit.h"
#include "qkv/regression/points.h"

namespace qkv {

/// Keys in ascending order, equal ones merged.
struct Line {
  /// x (rows), y (rows, outputs); y must outlive the line. `huge_rows`: those whose y is huge compared with the others.
  Line(std::span<const double> x, const Points& y, std::span<const int64_t> huge_rows = {});
  int64_t keys() const { return static_cast<int64_t>(x.size()); }
  int64_t columns() const { return 1 + y->width; }

  const Points* y;
  std::vector<double> x;       // (keys)
  std::vector<double> huge;    // x of the huge rows, ascending
  std::vector<double> value;   // (1 + outputs, keys): the number of rows of a key, and the sum of each of their y
  std::vector<int64_t> order;  // (rows): row numbers by ascending x
  /// (keys + 1): the rows of a key are order[key_begin[k]] .. order[key_begin[k + 1] - 1].
  std::vector<int64_t> key_begin;
};

/// Runs of keys at most one span long.
struct Cells {
  Cells(const std::vector<double>& x, double span);
  int64_t size() const { return static_cast<int64_t>(centre.size()); }
  std::vector<double> centre;  // (cells), ascending
  std::vector<int64_t> begin;  // (cells + 1)
};

/// The fast Gauss transform over the first `columns` columns of a line; kernels/gauss_line.h has the error bound.
class GaussTransform {
 public:
  GaussTransform(const Line& line, int64_t columns, double width);
  /// Writes sums (count, columns, order + 1) for ascending queries.
  void sums(std::span<const double> queries, int order, double* sums) const;

 private:
  const Line* line_;
  int64_t columns_;
  double width_;
  Cells cells_;
  std::vector<int64_t> slot_;                 // (cells): row of the moments
  std::vector<std::vector<double>> moments_;  // for each group of columns: (slots, columns, terms)
};

/// Windows of a compact shape. K is a polynomial in u on each side of the query, so a window is determined by the power
/// sums of its keys. Keys are cut into cells of at most h / 2; each cell keeps prefix power sums around its centre in
/// units of h, summed with compensation, so each is accurate to an ulp of the cell's mass. Moving a power sum of degree
/// p from |t| <= 1/4 around a centre at |e| <= 5/4 to the query multiplies errors by at most 1.5^p. Together the error
/// of every sum here (degree 6 at most) stays below kCompactError epsilon times the rows of the touched cells (times
/// the largest |y|). A single prefix sum over all keys would lose digits as h becomes small compared with the range;
/// these sums do not depend on the range.
class CompactWindows {
 public:
  CompactWindows(const Line& line, KernelShape shape, double width, SumsWanted wanted);
  /// For each of the ascending queries: (columns, order + 1) sums, 3 squares if wanted, and the number of rows in the
  /// touched cells.
  void sums(std::span<const double> queries, double* sums) const;

 private:
  void add_range(int64_t first, int64_t last, double query, std::vector<double>& power, double& touched) const;
  const Line* line_;
  KernelShape shape_;
  double width_;
  SumsWanted wanted_;
  int count_terms_, value_terms_, terms_;
  Cells cells_;
  std::vector<int64_t> cell_of_;  // (keys)
  std::vector<double> prefix_;    // (keys, terms): sums over the cell's keys up to and including this one
};

inline constexpr double kCompactError = 512;

}  // namespace qkv
