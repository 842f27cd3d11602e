// Gaussian kernel sums of every row over all other rows, and the sums for their derivative by the width, in double.
#pragma once

#include <cstdint>

namespace qkv::kernels {

struct LeaveOneOut {
  const double* x;  // (d, n)
  const double* y;  // (m, n)
  int64_t n, d, m;
  /// Doubles per row in `sums`.
  int64_t terms() const { return (1 + m) * (1 + d); }
};

/// For each of `count` rows i: sums[c][0] = sum_{j != i} K_j v_cj and sums[c][1 + a] = sum_{j != i} K_j v_cj (x_aj -
/// x_ai)^2, with v_0 = 1 and v_c = y_{c - 1}; sums (count, 1 + m, 1 + d). K_j = exp(-sum_a ((x_aj - x_ai) w_a)^2 / 2);
/// if these sum to less than kFarTotal, the row's K_j are relative to that of its nearest key, which is then 1. A row's
/// sums do not depend on the other rows of the call.
void leave_one_out_sums(const LeaveOneOut& data, const double* w, const int64_t* rows, int64_t count, double* sums);

inline constexpr double kFarTotal = 1e-100;

}  // namespace qkv::kernels
