// The weights of a recurrent layer.
#pragma once

#include "qkv/core/api.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// Weights of a layer as PyTorch stores them: G gates (r, z, n or i, f, g, o) and two biases. D inputs, H units.
struct CellWeights {
  Tensor input;           // (G H, D)
  Tensor recurrent;       // (G H, H)
  Tensor bias_input;      // (G H)
  Tensor bias_recurrent;  // (G H)

  int64_t width() const { return recurrent.defined() ? recurrent.size(-1) : 0; }  // check_cell refuses absent weights
};

}  // namespace qkv
