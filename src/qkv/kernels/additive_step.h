// Additive attention with one query per batch row, for step-by-step decoders: weights are kept, not recomputed.
#pragma once

#include <cstdint>

namespace qkv::kernels {

/// One row: a query against the `keys` keys it may see. Keys and values are contiguous.
struct AdditiveRow {
  int64_t keys, width, value_width;
  const float* query;    // (width), projected
  const float* key;      // (keys, width), projected
  const float* w;        // (width)
  const float* value;    // (keys, value_width)
  const float* factors;  // (keys): dropout of the weights, or null
};

/// weights (keys) = softmax(w . tanh(query + key)), context (value_width) = (weights * factors) value, 0 without keys.
void additive_row(const AdditiveRow& row, float* weights, float* context);

/// Where the gradients of a row go: dquery is written, the others are added to.
struct AdditiveRowGradient {
  float *dquery, *dkey, *dw, *dvalue;
};
/// `scratch` holds `keys` floats.
void additive_row_back(const AdditiveRow& row, const float* weights, const float* dcontext,
                       const AdditiveRowGradient& to, float* scratch);

}  // namespace qkv::kernels
