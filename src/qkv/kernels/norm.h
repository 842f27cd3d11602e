// Layer normalisation (Ba, Kiros, Hinton, 2016) of rows of width D, alone or after a residual sum with dropout, and
// normalisation by the root mean square.
#pragma once

#include <cstdint>

#include "qkv/kernels/dropout.h"

namespace qkv::kernels {

/// y = (s - mean) inverse gamma + beta per row, inverse = 1 / sqrt(variance + eps), the variance over D (not D - 1).
struct NormForward {
  const float* gamma;  // (D)
  const float* beta;   // (D)
  float eps;
  float* y;        // (rows, D)
  float* mean;     // (rows)
  float* inverse;  // (rows)
  int64_t width;   // D
};

/// ds = inverse (g - mean(g) - h mean(g h)), g = dy gamma, h = (s - mean) inverse; dgamma = sum dy h, dbeta = sum dy.
struct NormBackward {
  const float* s;        // (rows, D): the values that were normalised
  const float* mean;     // (rows)
  const float* inverse;  // (rows)
  const float* gamma;    // (D)
  const float* dy;       // (rows, D)
  float* ds;             // (rows, D)
  float* dgamma;         // (D), of these rows only, or null
  float* dbeta;          // (D), of these rows only, or null
  int64_t width;         // D
};

/// y = x inverse gamma per row, inverse = 1 / sqrt(mean(x^2) + eps) (Zhang and Sennrich, 2019).
struct RmsForward {
  const float* x;      // (rows, D)
  const float* gamma;  // (D)
  float eps;
  float* y;        // (rows, D)
  float* inverse;  // (rows)
  int64_t width;   // D
};

/// dx = inverse (g - h mean(g h)), g = dy gamma, h = x inverse; dgamma = sum dy h.
struct RmsBackward {
  const float* x;        // (rows, D)
  const float* inverse;  // (rows)
  const float* gamma;    // (D)
  const float* dy;       // (rows, D)
  float* dx;             // (rows, D)
  float* dgamma;         // (D), of these rows only, or null
  int64_t width;         // D
};

/// Rows [begin, end).
void rms_norm(const RmsForward& norm, int64_t begin, int64_t end);
void rms_norm_back(const RmsBackward& norm, int64_t begin, int64_t end);

/// Rows [begin, end) with s = x.
void layer_norm(const NormForward& norm, const float* x, int64_t begin, int64_t end);
/// Rows [begin, end) with s = x + y scale m, m the decisions of `drop` (null: s = x + y); s may be norm.y. The
/// decisions go to `bits` unless it is null.
void residual_layer_norm(const NormForward& norm, const float* x, const float* y, const Drop* drop, float* s,
                         uint8_t* bits, int64_t begin, int64_t end);
/// Rows [begin, end); pointers are to row 0, except dgamma and dbeta, which are the sums for these rows.
void layer_norm_back(const NormBackward& norm, int64_t begin, int64_t end);
/// The same, and dy_branch = ds scale m: the gradient of the branch that went through dropout.
void residual_layer_norm_back(const NormBackward& norm, float scale, const uint8_t* bits, float* dy_branch,
                              int64_t begin, int64_t end);

}  // namespace qkv::kernels
