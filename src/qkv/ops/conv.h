// One-dimensional convolution, for the comparison with attention.
#pragma once

#include <cstdint>

#include "qkv/core/api.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// Zeros added at both ends, step between outputs, step between taps.
struct Conv1dOptions {
  int64_t padding = 0, stride = 1, dilation = 1;
};

/// y[b, o, l] = bias[o] + sum over i, k of weight[o, i, k] x[b, i, l stride + k dilation - padding].
/// x (B, Cin, L), weight (Cout, Cin, K), bias (Cout) or Tensor() for none -> (B, Cout, Lout).
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv1dOptions& options = {});

}  // namespace qkv
