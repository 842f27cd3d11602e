// The gates of recurrent cells: everything in a step but its matrix products, for contiguous rows.
#pragma once

#include <cstdint>

#include "qkv/core/forms.h"

namespace qkv::kernels {

/// What a step keeps per row, `width` floats each. Backward replaces them by gradients of the gates' sums:
///   gru         n, r, z, U_n h + b'  slots 0-2 become those of the input product, 1-3 those of the recurrent one
///   gru_before  n, r, z, r * h       the first three are replaced, for both products
///   lstm        i, f, g, o, tanh c'  the first four are replaced, for both products
/// Before the step, the slot of each gate holds its input product W x, without biases.
constexpr int64_t cell_slots(CellKind kind) { return kind == CellKind::lstm ? 5 : 4; }

/// Rows of one step. Unless noted, arrays are (rows, width) and contiguous.
struct CellStep {
  int64_t rows, width;
  float* kept;             // (rows, slots, width)
  const float* recurrent;  // U h of all gates, (rows, gates, width); gru_before: see below
  const float* bias;  // (gate slots, width), the sum of both biases; gru: n has only its input bias, and b' is a fourth
  const float *h_before, *c_before;
  float *h, *c;  // c: lstm only
};

void gru_step(const CellStep& step);
void lstm_step(const CellStep& step);
/// The two halves of gru_before: r, z and r * h from `recurrent` = U_rz h, (rows, 2, width); then n and h from U_n (r *
/// h), (rows, width).
void gru_before_gates(const CellStep& step);
void gru_before_step(const CellStep& step);

/// Backward of one step: kept gates become gradients as described above; dh, the gradient of the new state, becomes the
/// part of the old state's gradient that does not go through a product (likewise dc).
struct CellBack {
  int64_t rows, width;
  float* kept;
  const float *h_before, *c_before;
  float *dh, *dc;
  const float* dreset = nullptr;  // gru_before, second half: the gradient of r * h
};

void gru_back(const CellBack& back);
void lstm_back(const CellBack& back);
/// The two halves of gru_before: n and z; then, with the gradient of r * h, r.
void gru_before_back(const CellBack& back);
void gru_before_reset_back(const CellBack& back);

/// y = x * factor, or += if add, elementwise.
void multiply_into(const float* x, const float* factor, float* y, int64_t n, bool add);

}  // namespace qkv::kernels
