// Weights of a kernel smoother for one query and many keys in any dimension, and weighted sums, in double.
#pragma once

#include <cstdint>

#include "qkv/core/forms.h"

namespace qkv::kernels {

/// Keys by coordinate: coordinate a of key i is x[a * stride + i].
struct KeyTile {
  const double* x;
  int64_t stride, keys;
  int dimension;
};

/// weight[i] = K((x_i - query) / width). With a reference point (a key near the query) the Gaussian is relative to the
/// weight of that point, so a query far from all keys still tells them apart: |x - q|^2 - |r - q|^2 = (x - r) . ((x -
/// q) + (r - q)), without cancellation.
void kernel_weights(KernelShape shape, const KeyTile& tile, const double* query, const double* width,
                    const double* reference, double* weight);

/// distance[i] = sum_a ((x_ia - query_a) / width_a)^2.
void squared_distances(const KeyTile& tile, const double* query, const double* width, double* distance);

/// sum_i a_i;  sum_i a_i b_i;  y_i = a_i b_i;  y_i = (a_i - s) t. Sums in one fixed order.
double sum(const double* a, int64_t n);
double dot(const double* a, const double* b, int64_t n);
void multiply(const double* a, const double* b, double* y, int64_t n);
void subtract_scale(const double* a, double s, double t, double* y, int64_t n);

}  // namespace qkv::kernels
