// Attention of a decoding step: one query a row, over keys and values that are read where they were once written.
#pragma once

#include <cstdint>

namespace qkv::kernels {

/// Of row r the keys are rows slots[r * stride + j] of k and v, j < counts[r]; slots may repeat, within a row and
/// between rows.
struct StepKeys {
  const float *k, *v;    // (any number of slots, key_heads * width)
  const int32_t* slots;  // (rows, stride)
  int64_t stride;
  const int32_t* counts;  // (rows)
};

struct StepAttention {
  int64_t heads, key_heads, width;  // query head h reads key head h / (heads / key_heads); width: of a head
  float scale;
};

/// out = softmax(scale q . k) v for rows [begin, end) of q and out, (rows, heads * width); a row without keys gets 0. A
/// row's bits depend on its own query, keys and values alone.
void step_attention(const StepAttention& sizes, const float* q, const StepKeys& keys, float* out, int64_t begin,
                    int64_t end);

}  // namespace qkv::kernels
