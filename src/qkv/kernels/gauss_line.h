// Gaussian kernel sums on a line: a fast Gauss transform with a relative error bound, in double.
//
// Keys x_i are sorted and cut into cells of radius at most kGaussRadius * h around a centre c. With t = (x - c) / h, s
// = (q - c) / h
//     exp(-(s - t)^2 / 2) = exp(-s^2 / 2) exp(-t^2 / 2) exp(s t),     exp(s t) = sum_p s^p t^p / p!
// so a cell is described by its moments M_p = sum_i v_i exp(-t_i^2 / 2) t_i^p / p!, and its sum is exp(-s^2 / 2) G(s),
// G(s) = sum_p M_p s^p. Powers of u = (x - q) / h = t - s come from derivatives: sum K v t = exp(-s^2 / 2) G'(s), and
// so on.
//
// Bound: cutting exp(z) after P terms errs by at most |z|^P / P! * max(1, e^z), so each weight is right to a relative
// |z|^P / P! * e^|z|. With |t| <= 1/2, |s| <= 10 and P = 30 that is at most 5^30 / 30! * e^5 = 5.3e-10, at the far end;
// where s <= 6 (weights above 1e-8) it is below 2e-17. Keys in cells further than the cutoff T = 9.5 may be dropped:
// together they weigh at most n exp(-T^2 / 2) = n 2.6e-20, which the caller compares with the sum.
#pragma once

#include <cstdint>

namespace qkv::kernels {

inline constexpr int kGaussTerms = 30;          // P
inline constexpr double kGaussRadius = 0.5;     // of a cell, in widths
inline constexpr double kGaussCutoff = 9.5;     // T, in widths
inline constexpr int64_t kGaussDirectKeys = 6;  // cells with at most this many keys are summed key by key
inline constexpr int kGaussMaxColumns = 8;

struct GaussLine {
  const double* x;        // (keys), ascending
  const double* value;    // (columns, keys)
  int64_t keys, columns;  // columns <= kGaussMaxColumns
  const double* centre;   // (cells), ascending
  const int64_t* begin;   // (cells + 1): first key of each cell
  int64_t cells;
  const int64_t* slot;    // (cells): which row of moments; not read for cells of few keys
  const double* moments;  // (slots, columns, kGaussTerms)
  double width;           // h
};

/// Fills the moments of one cell: (columns, kGaussTerms).
void gauss_moments(const GaussLine& line, int64_t cell, double* moments);

/// sums[q][column][k] = sum_i K((x_i - q) / h) value[column][i] ((x_i - q) / h)^k for k = 0..order (0 or 2); queries
/// ascending.
void gauss_sums(const GaussLine& line, const double* query, int64_t queries, int order, double* sums);

}  // namespace qkv::kernels
