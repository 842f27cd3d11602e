// Kernel sums over keys on a line: fast, with a bound, and key by key where the bound does not hold.
#pragma once

#include <optional>

#include "qkv/regression/line.h"
#include "qkv/regression/local_fit.h"

namespace qkv {

/// Sums for one kernel shape and width. The line must outlive it.
class LineSums {
 public:
  LineSums(const Line& line, KernelShape shape, double width, SumsWanted wanted);

  /// The number of doubles per query in `sums`.
  int64_t stride() const { return line_->columns() * (wanted_.order + 1) + (wanted_.squares ? 3 : 0) + 1; }
  /// Fast sums for ascending queries: (count, stride).
  void fast(std::span<const double> queries, double* sums) const;
  /// A query's fast sums, ready for a fit; returns a bound on the error of s0, in rows (and of t0, in rows times the
  /// largest |y|).
  double unpack(const double* sums, double query, LocalSums& out) const;
  /// Whether a huge value is so far from the query that the fast sums of a Gaussian leave it out, but not so far that
  /// it has no weight.
  bool misses_huge(double query) const;
  /// Removes one row, whose x is the query, from the sums.
  void leave_out(int64_t row, LocalSums& sums) const;
  /// Sums for one query key by key, without one row whose x is the query (-1: all rows). Far from every key the weights
  /// are relative to the nearest one, which then has weight 1.
  void direct(double query, int64_t without_row, LocalSums& out) const;

 private:
  struct Term;
  void add(const Term& term, LocalSums& out) const;
  const Line* line_;
  KernelShape shape_;
  double width_;
  SumsWanted wanted_;
  std::optional<GaussTransform> gauss_, gauss_squared_;
  std::optional<CompactWindows> compact_;
  std::optional<LocalSums> all_;  // constant shape: the same for every query, around the mean of x
  double mean_ = 0;
};

}  // namespace qkv
