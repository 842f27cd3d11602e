// Normalisation of each channel over the batch; arithmetic in double, since a batch may be long and far from 0.
#pragma once

#include <cstdint>

namespace qkv::kernels {

/// x is (batch, channels, length).
struct BatchNorm {
  int64_t batch, channels, length;
};

/// y = gamma (x - mean) / sqrt(variance + epsilon) + beta; mean and scale = 1 / sqrt(...), both (channels), are kept
/// for the backward pass.
void batch_norm(BatchNorm n, const float* x, const float* gamma, const float* beta, double epsilon, float* y,
                float* mean, float* scale);

/// The three gradients, overwritten; dx may be null.
void batch_norm_back(BatchNorm n, const float* x, const float* gamma, const float* mean, const float* scale,
                     const float* dy, float* dx, float* dgamma, float* dbeta);

}  // namespace qkv::kernels
