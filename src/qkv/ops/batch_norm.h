// Batch normalisation in training mode (Ioffe and Szegedy, 2015), for the comparison with layer norm.
#pragma once

#include "qkv/core/api.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

struct BatchNormOptions {
  float epsilon = 1e-5f;
};

/// y = gamma (x - mean) / sqrt(variance + epsilon) + beta, per channel over the batch, with the biased variance.
/// x (N, C) or (N, C, L), gamma and beta (C). A channel with a single value becomes beta.
Tensor batch_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const BatchNormOptions& options = {});

}  // namespace qkv
