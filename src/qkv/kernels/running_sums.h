// Sums over all earlier, or all later, rows of outer products: linear attention without its quadratic matrix.
#pragma once

#include <cstdint>

namespace qkv::kernels {

/// Which rows count: those up to the row's own place plus `offset`, or those from its place minus `offset` on.
enum class Running { up, down };

struct RunningSums {
  const float *a, *b, *c;   // (queries, features), (keys, features), (keys, width)
  int64_t queries, keys;    // rows
  int64_t features, width;  // columns
  int64_t offset;           // 0 or more
  Running way;
};

/// up: y_i = sum over j <= i + offset of (a_i . b_j) c_j; down: over j >= i - offset. Columns [begin, end) of y
/// (queries, width); a column's bits do not depend on which others are computed with it.
void running_sums(const RunningSums& s, float* y, int64_t begin, int64_t end);

}  // namespace qkv::kernels
