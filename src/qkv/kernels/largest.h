// The largest elements of rows, and what turns scores into log-probabilities without writing all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "qkv/kernels/gemm.h"

namespace qkv::kernels {

struct Scored {
  float value;
  int32_t id;  // place in the row
};

/// The k largest of x (n) into out (k): descending, equal ones by ascending place, NaN left out. Returns how many there are.
int64_t largest(const float* x, int64_t n, int64_t k, Scored* out);

/// What makes log-probabilities of scores: log p of x is (x - most) - log_sum. log_sum is NaN where a score is, or is +inf, and -inf where
/// all are -inf.
struct LogSum {
  float most, log_sum;
};

/// Of one row. In fixed stretches, so that a row has the same bits wherever its scores come from.
LogSum log_sum_exp(const float* x, int64_t n);

/// The k >= 1 largest above -inf of each of several rows, as `largest` has them, with the bits of log_sum_exp.
struct LargestOfRows {
  LargestOfRows(int64_t rows, int64_t k);
  int64_t k;
  std::vector<Scored> scored;   // (rows, k)
  std::vector<int64_t> counts;  // (rows)
  std::vector<LogSum> sums;     // (rows)
};

/// Fills rows [first, first + rows) of `out` from x (rows, n), on the calling thread.
void largest_of_rows(const float* x, int64_t rows, int64_t n, LargestOfRows& out, int64_t first);
/// The same of the rows of a product, whose C is not written: each stretch of it is looked at while it is in the cache.
void largest_of_product(const GemmCall& call, LargestOfRows& out, int64_t first);

}  // namespace qkv::kernels
