// Products with panels, a block of columns at a time, so that the activation finds them in the cache.
#include "qkv/models/step_weights.h"

#include <algorithm>

#include "qkv/kernels/gemm.h"
#include "qkv/kernels/linear.h"
#include "qkv/models/transformer_decoder.h"

namespace qkv {
namespace {

constexpr int64_t kColumns = 512;

}  // namespace

StepLinear::StepLinear(const Linear& layer, Panels panels)
    : weight_(layer.weight.detached()), bias_(layer.bias.detached()) {
  const int64_t N = weight_.size(0), K = weight_.size(1);
  if (panels == Panels::no || N * K == 0) return;
  panels_ = Tensor::empty({kernels::packed_floats(N, K)});
  kernels::pack_right(Transpose::yes, N, K, weight_.ptr(), K, panels_.mutable_ptr());
}

void StepLinear::operator()(const float* x, int64_t rows, float* y, Activation activation) const {
  const int64_t N = weight_.size(0), K = weight_.size(1);
  for (int64_t j = 0; j < N; j += kColumns) {
    const int64_t columns = std::min(kColumns, N - j);
    kernels::gemm({.transpose_b = Transpose::yes,
                   .M = rows,
                   .N = columns,
                   .K = K,
                   .A = x,
                   .lda = K,
                   .B = weight_.ptr() + j * K,
                   .ldb = K,
                   .C = y + j,
                   .ldc = N,
                   .panels = panels_.defined() ? panels_.ptr() + j * K : nullptr,
                   .bias = bias_.defined() ? bias_.ptr() + j : nullptr});
    if (activation != Activation::none) kernels::bias_activation(activation, y + j, y + j, nullptr, {rows, columns, N});
  }
}

void StepLinear::in_parallel(const float* x, int64_t rows, float* y) const {
  const int64_t N = weight_.size(0), K = weight_.size(1);
  kernels::gemm_parallel({.transpose_b = Transpose::yes,
                          .M = rows,
                          .N = N,
                          .K = K,
                          .A = x,
                          .lda = K,
                          .B = weight_.ptr(),
                          .ldb = K,
                          .C = y,
                          .ldc = N,
                          .panels = panels_.defined() ? panels_.ptr() : nullptr,
                          .bias = bias_.defined() ? bias_.ptr() : nullptr});
}

Tensor StepLinear::operator()(const Tensor& x, Activation activation) const {
  Shape shape = x.shape();
  shape.set(-1, out());
  Tensor y = Tensor::empty(shape);
  (*this)(x.ptr(), x.shape().product(0, x.rank() - 1), y.mutable_ptr(), activation);
  return y;
}

StepWeights::StepWeights(const TransformerDecoder& decoder, StepLinear::Panels panels)
    : output(decoder.output, panels) {
  const auto ready = [&](const Linear& layer) { return StepLinear(layer, panels); };
  for (const TransformerBlock& b : decoder.stack.blocks) {
    Block block{ready(b.self.to_q), ready(b.self.to_k), ready(b.self.to_v), ready(b.self.to_out), {}, {},
                ready(b.ffn.first), ready(b.ffn.second)};
    if (b.cross) {
      block.cross_q = ready(b.cross->to_q);
      block.cross_out = ready(b.cross->to_out);
    }
    blocks.push_back(std::move(block));
  }
}

bool StepWeights::serve(const TransformerDecoder& decoder, StepLinear::Panels panels) const {
  return output.is_of(decoder.output) && (output.has_panels() || panels == StepLinear::Panels::no) &&
         blocks.size() == decoder.stack.blocks.size();
}

}  // namespace qkv
