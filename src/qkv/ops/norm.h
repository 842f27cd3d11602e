// Normalisation of the last axis: layer norm, alone or fused with the residual sum before it, and RMS norm.
#pragma once

#include "qkv/core/api.h"
#include "qkv/tensor/run.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

inline constexpr float kNormEps = 1e-5f;

/// (x - mean) / sqrt(variance + eps) * gamma + beta on the last axis. x (..., D), gamma (D), beta (D) -> (..., D)
Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, float eps = kNormEps);

/// layer_norm(x + dropout(y, rate, run), gamma, beta, eps) in one pass. x and y (..., D), gamma (D), beta (D) -> (...,
/// D)
Tensor residual_layer_norm(const Tensor& x, const Tensor& y, const Tensor& gamma, const Tensor& beta, float rate,
                           const Run& run, float eps = kNormEps);

/// x / sqrt(mean(x^2) + eps) * gamma on the last axis. x (..., D), gamma (D) -> (..., D)
Tensor rms_norm(const Tensor& x, const Tensor& gamma, float eps = kNormEps);

}  // namespace qkv
