// Attention with one query per batch row, for decoders whose next query needs this step's result: weights are kept, not
// recomputed.
#pragma once

#include <cstdint>

namespace qkv::kernels {

/// One row: a query against the `keys` keys it may see. Keys and values are contiguous. With w the score is
/// scale * w . tanh(query + key), without it scale * query . key.
struct DecoderRow {
  int64_t keys, width, value_width;
  float scale;
  const float* query;    // (width), projected
  const float* key;      // (keys, width), projected
  const float* w;        // (width), or null
  const float* value;    // (keys, value_width)
  const float* factors;  // (keys): dropout of the weights, or null
};

/// weights (keys) = softmax(scores), context (value_width) = (weights * factors) value, 0 without keys.
void decoder_row(const DecoderRow& row, float* weights, float* context);

/// Where the gradients of a row go: dquery is written, the others are added to; dw is not used without w.
struct DecoderRowGradient {
  float *dquery, *dkey, *dw, *dvalue;
};
/// `scratch` holds `keys` floats.
void decoder_row_back(const DecoderRow& row, const float* weights, const float* dcontext, const DecoderRowGradient& to,
                      float* scratch);

}  // namespace qkv::kernels
