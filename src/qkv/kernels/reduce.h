// Reductions over the middle axis of an array viewed as (outer, n, inner), and their pullbacks. The order of every sum
// is fixed by the sizes, so results are bit-identical at any thread count.
#pragma once

#include <cstdint>

namespace qkv::kernels {

/// An array viewed as (outer, n, inner), row-major.
struct Split {
  int64_t outer, n, inner;
};

/// y[o, j] = sum_i x[o, i, j] / divisor. Up to 16 floats per lane are added in float, the resulting blocks in double.
void sum(const float* x, float* y, Split s, double divisor);

/// y[o, j] = max_i x[o, i, j]; NaN if any is NaN. n > 0.
void max(const float* x, float* y, Split s);

/// dx[o, i, j] = dy[o, j] where x[o, i, j] is the first that equals y[o, j] (or the first NaN), else 0. Adds if `add`.
void max_back(const float* x, const float* y, const float* dy, float* dx, Split s, bool add);

/// y[o, i, j] = x[o, j] * factor. Adds if `add`.
void spread(const float* x, float* y, Split s, float factor, bool add);

}  // namespace qkv::kernels
