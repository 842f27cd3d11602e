// Moves elements: strided copies, permuted axes, and selection by a mask.
#pragma once

#include <cstdint>
#include <span>

namespace qkv::kernels {

/// Rows of `length` elements: y[r * y_stride + i] = x[r * x_stride + i].
void copy_rows(const float* x, int64_t x_stride, float* y, int64_t y_stride, int64_t rows, int64_t length);
/// The same with +=.
void add_rows(const float* x, int64_t x_stride, float* y, int64_t y_stride, int64_t rows, int64_t length);

/// y, contiguous with these sizes, from x with these strides: y[i0, i1, ...] = x[i0 s0 + i1 s1 + ...]. The strides are
/// those of a contiguous array with its axes reordered; at most eight axes.
void permute(const float* x, float* y, std::span<const int64_t> sizes, std::span<const int64_t> strides);

/// y = the elements of x whose mask is not 0, in order. Mask: float or int32_t.
template <class Mask>
void select(const float* x, const Mask* mask, float* y, int64_t n);
/// dx[i] (+)= the next element of dy where the mask is not 0, else 0.
template <class Mask>
void select_back(const float* dy, const Mask* mask, float* dx, int64_t n, bool add);
template <class Mask>
int64_t count_nonzero(const Mask* mask, int64_t n);

/// y = mask != 0 ? a : b.
template <class Mask>
void where(const Mask* mask, const float* a, const float* b, float* y, int64_t n);

}  // namespace qkv::kernels
