// Kernel sums over keys in any dimension: one pass over all keys per query, vectorised over keys, in a fixed order.
#pragma once

#include <span>
#include <vector>

#include "qkv/regression/line.h"
#include "qkv/regression/local_fit.h"

namespace qkv {

/// Keys (n, d) and values (n, m), stored by coordinate.
struct Cloud {
  Cloud(const Points& x_rows, const Points& y_rows);
  int64_t n, d, m;
  std::vector<double> x, y;  // (d, n), (m, n)
  std::vector<double> mean;  // (d)
};

/// Sums for one kernel shape with one width per coordinate. The cloud must outlive it; use one object per thread.
class CloudSums {
 public:
  CloudSums(const Cloud& cloud, KernelShape shape, std::span<const double> width, SumsWanted wanted);

  /// Sums for one query without one row (-1: all rows).
  void direct(std::span<const double> query, int64_t without_row, LocalSums& out);
  /// The kernel weights of one query, in the order of the keys, relative if direct() used relative ones.
  void weights(std::span<const double> query, int64_t without_row, std::span<double> out);
  /// The origin of u in the last result of direct(): u = (x - reference) / width.
  std::span<const double> reference() const { return reference_; }

 private:
  void pass(std::span<const double> query, int64_t without_row, LocalSums& out, const double* relative_to);
  void add_tile(int64_t first, int64_t count, LocalSums& out);
  void find_nearest(std::span<const double> query, int64_t without_row);
  const Cloud* cloud_;
  KernelShape shape_;
  std::vector<double> width_;
  SumsWanted wanted_;
  bool relative_ = false;             // the last query was far: weights are relative to the reference
  std::vector<double> reference_;     // (d)
  std::vector<double> weight_;        // (tile)
  std::vector<double> u_, weight_u_;  // (d, tile)
};

}  // namespace qkv
