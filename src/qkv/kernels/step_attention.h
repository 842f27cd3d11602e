// Attention in a decoding step: one query per row, with keys and values read in place.
#pragma once

#include <cstdint>

namespace qkv::kernels {

/// The keys of row r are rows slots[r * stride + j] of k and v, j < counts[r]; slots may repeat, also within a row.
struct StepKeys {
  const float *k, *v;    // (any number of slots, key_heads * width)
  const int32_t* slots;  // (rows, stride)
  int64_t stride;
  const int32_t* counts;  // (rows)
};

struct StepAttention {
  int64_t heads, key_heads, width;  // query head h reads key head h / (heads / key_heads); width: width of a head
  float scale;
};

/// out = softmax(scale q . k) v for rows [begin, end) of q and out, (rows, heads * width); a row without keys gets 0. A
/// row's bits depend only on its own query, keys and values.
void step_attention(const StepAttention& sizes, const float* q, const StepKeys& keys, float* out, int64_t begin,
                    int64_t end);

}  // namespace qkv::kernels
