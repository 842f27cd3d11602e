// Diagonals of a score matrix: one number per distance between key and query, as used for attention biases.
#pragma once

#include <algorithm>
#include <cstdint>

#include "qkv/tensor/tensor.h"

namespace qkv {

/// How many diagonals a matrix of queries x keys has; diagonal j - i + queries - 1 holds (i, j).
inline int64_t diagonals_of(int64_t queries, int64_t keys) { return std::max<int64_t>(0, queries + keys - 1); }

/// The whole matrix, O(n^2): y[..., i, j] = x[..., j - i + Lq - 1]. (..., Lq + Lk - 1) -> (..., Lq, Lk)
Tensor dense_of_diagonals(const Tensor& x, int64_t queries, int64_t keys);

/// y[h, j - i + Lq - 1] = table[h, clamp(j - i - offset, -m, m) + m]: query i is at position offset + i, key j at j.
/// table (H, 2 m + 1) -> (H, Lq + Lk - 1)
Tensor clipped_diagonals(const Tensor& table, int64_t queries, int64_t keys, int64_t offset = 0);

}  // namespace qkv
