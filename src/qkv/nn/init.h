// Initial values, as in the book's four frameworks.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "qkv/core/api.h"
#include "qkv/nn/module.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// U(-a, a), a = sqrt(6 / (fan_in + fan_out)); fan_in is the last axis, fan_out the product of the others (Glorot and
/// Bengio, 2010).
Tensor xavier_uniform(const Shape& shape, const Rng& rng);

/// U(-1/sqrt(fan_in), 1/sqrt(fan_in)): PyTorch's default for linear layers (fan_in = inputs) and GRUs (fan_in = hidden
/// units).
Tensor fan_in_uniform(const Shape& shape, int64_t fan_in, const Rng& rng);

/// Rows (or, if there are more rows than columns, columns) orthonormal: Keras' recurrent matrices (Saxe et al., 2014).
Tensor orthogonal(int64_t rows, int64_t columns, const Rng& rng);

/// Draws every matrix of a module's linear layers anew, Xavier-uniform, as the book's init_weights does.
template <Module M>
void xavier_matrices(M& module, const Rng& rng) {
  each_tensor(module, [&](const std::string& name, Tensor& t) {
    if (t.rank() == 2 && name.ends_with(".weight")) t = parameter(xavier_uniform(t.shape(), rng.at(name)));
  });
}

/// The standard deviation of GPT-2's initial weights.
inline constexpr float kGpt2Deviation = 0.02f;

/// Draws every matrix of a module's linear layers anew from N(0, 0.02^2), divided by sqrt(2 layers) for those that
/// `writes_residual(name)`; their biases become 0 (Radford et al., 2019).
template <Module M, class WritesResidual>
void gpt2_matrices(M& module, int64_t layers, const Rng& rng, const WritesResidual& writes_residual) {
  const float smaller = kGpt2Deviation / std::sqrt(2 * static_cast<float>(std::max<int64_t>(layers, 1)));
  each_tensor(module, [&](const std::string& name, Tensor& t) {
    if (t.rank() == 2 && name.ends_with(".weight"))
      t = parameter(normal(t.shape(), rng.at(name), 0, writes_residual(name) ? smaller : kGpt2Deviation));
    if (name.ends_with(".bias")) t = parameter(zeros(t.shape()));
  });
}

}  // namespace qkv
