// Additive attention of one query a batch row, for decoders that ask step by step: weights are kept, not recomputed.
#pragma once

#include <cstdint>

namespace qkv::kernels {

/// One row: a query against `keys` keys that it may see. Keys and values follow each other without gaps.
struct AdditiveRow {
  int64_t keys, width, value_width;
  const float* query;    // (width), projected
  const float* key;      // (keys, width), projected
  const float* w;        // (width)
  const float* value;    // (keys, value_width)
  const float* factors;  // (keys): dropout of the weights, or null
};

/// weights (keys) = softmax(w . tanh(query + key)), context (value_width) = (weights * factors) value; no key gives 0.
void additive_row(const AdditiveRow& row, float* weights, float* context);

/// Where the gradients of a row go: dquery is written, the others are added to.
struct AdditiveRowGradient {
  float *dquery, *dkey, *dw, *dvalue;
};
/// `scratch` holds `keys` floats.
void additive_row_back(const AdditiveRow& row, const float* weights, const float* dcontext,
                       const AdditiveRowGradient& to, float* scratch);

}  // namespace qkv::kernels
