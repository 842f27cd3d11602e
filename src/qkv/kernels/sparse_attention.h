// The gradient of attention over a list of keys; its value is step_attention.
#pragma once

#include <cstdint>

namespace qkv::kernels {

/// One head of one query, which saw the keys slots[0] .. slots[count - 1], all different.
struct SparseRow {
  const int32_t* slots;
  int64_t count, width;
  int64_t stride;  // from a row of k, v, dk and dv to the next
  float scale;
  const float *q, *dy;  // (width)
  const float *k, *v;   // their head, of row 0
};

/// dq (width) is set; dk and dv, laid out as k and v, are added to.
void sparse_attention_backward(const SparseRow& row, float* dq, float* dk, float* dv);

}  // namespace qkv::kernels
