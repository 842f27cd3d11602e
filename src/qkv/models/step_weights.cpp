// Products with panels, a stretch of columns at a time, so that an activation finds them in the cache.
#include "qkv/models/step_weights.h"

#include <algorithm>

#include "qkv/models/transformer.h"

namespace qkv {
namespace {

constexpr int64_t kColumns = 512;

}  // namespace

StepLinear::StepLinear(const Linear& layer, Panels panels) : weight_(layer.weight.detached()), bias_(layer.bias.detached()) {
  const int64_t N = weight_.size(0), K = weight_.size(1);
  if (panels == Panels::no || N * K == 0) return;
  panels_ = Tensor::empty({kernels::packed_floats(N, K)});
  kernels::pack_right(Transpose::yes, N, K, weight_.ptr(), K, panels_.mutable_ptr());
}

// C is not set.
kernels::GemmCall StepLinear::product(const float* x, int64_t rows) const {
  const int64_t N = weight_.size(0), K = weight_.size(1);
  return {Transpose::no, Transpose::yes, rows, N, K, 1, x, K, weight_.ptr(), K, 0, nullptr, N,
          panels_.defined() ? panels_.ptr() : nullptr, bias_.defined() ? bias_.ptr() : nullptr};
}

void StepLinear::operator()(const float* x, int64_t rows, float* y, Activation activation) const {
  const kernels::GemmCall whole = product(x, rows);
  for (int64_t j = 0; j < whole.N; j += kColumns) {
    kernels::GemmCall part = whole;
    part.N = std::min(kColumns, whole.N - j);
    part.B += j * whole.K;
    part.C = y + j;
    if (part.panels) part.panels += j * whole.K;
    if (part.bias) part.bias += j;
    kernels::gemm(part);
    if (activation != Activation::none) kernels::bias_activation(activation, y + j, y + j, nullptr, {rows, part.N, whole.N});
  }
}

void StepLinear::largest(const float* x, int64_t rows, kernels::LargestOfRows& out, int64_t first) const {
  kernels::largest_of_product(product(x, rows), out, first);
}

Tensor StepLinear::operator()(const Tensor& x, Activation activation) const {
  Shape shape = x.shape();
  shape.set(-1, out());
  Tensor y = Tensor::empty(shape);
  (*this)(x.ptr(), x.shape().product(0, x.rank() - 1), y.mutable_ptr(), activation);
  return y;
}

StepWeights::StepWeights(const TransformerDecoder& decoder, StepLinear::Panels panels) : output(decoder.output, panels) {
  const auto ready = [&](const Linear& layer) { return StepLinear(layer, panels); };
  for (const DecoderBlock& b : decoder.blocks) {
    Block block{ready(b.self.to_q), ready(b.self.to_k), ready(b.self.to_v), ready(b.self.to_out), {}, {}, ready(b.ffn.first), ready(b.ffn.second)};
    if (b.cross) block.cross_q = ready(b.cross->to_q), block.cross_out = ready(b.cross->to_out);
    blocks.push_back(std::move(block));
  }
}

}  // namespace qkv
