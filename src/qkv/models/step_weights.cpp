// Products with panels, a block of columns at a time.
#include "qkv/models/step_weights.h"

#include <algorithm>

#include "qkv/core/file_pages.h"
#include "qkv/core/parallel.h"
#include "qkv/kernels/elementwise.h"
#include "qkv/kernels/gemm.h"
#include "qkv/kernels/linear.h"
#include "qkv/models/transformer_decoder.h"

namespace qkv {
namespace {

// A block of columns: its result is still in the cache for the activation, and there are enough for all threads.
constexpr int64_t kMostColumns = 512, kLeastColumns = 64, kBlocks = 8;
constexpr double kFlopsPerNanosecond = 60, kBytesPerNanosecond = 25, kPackNanoseconds = 0.3;
constexpr int64_t kColumnsToPack = 32 * kernels::kPanelColumns;

}  // namespace

StepLinear::StepLinear(const Linear& layer, Panels panels)
    : weight_(layer.weight.detached()), bias_(layer.bias.detached()) {
  const int64_t N = weight_.size(0), K = weight_.size(1);
  if (panels == Panels::no || N * K == 0) return;
  panels_ = Tensor::empty({kernels::packed_floats(N, K)});
  float* const to = panels_.mutable_ptr();
  // From now on only the panels are read. A part of a mapped file is given back as soon as it is copied, so that both
  // never take memory together.
  parallel_ranges(N, kColumnsToPack, kPackNanoseconds * static_cast<double>(N * K), [&](int64_t begin, int64_t end) {
    const float* from = weight_.ptr() + begin * K;
    kernels::pack_right(Transpose::yes, end - begin, K, from, K, to + begin * K);
    give_back_pages(from, static_cast<size_t>((end - begin) * K) * sizeof(float));
  });
}

void StepLinear::give_back() const {
  if (has_panels()) give_back_pages(weight_.ptr(), static_cast<size_t>(weight_.numel()) * sizeof(float));
}

void StepLinear::operator()(const float* x, int64_t rows, float* y, Activation activation) const {
  const int64_t N = weight_.size(0), K = weight_.size(1);
  const auto elements = static_cast<double>(N * K);
  const double ns =
      elements * (sizeof(float) / kBytesPerNanosecond + 2.0 * static_cast<double>(rows) / kFlopsPerNanosecond);
  const int64_t share = ((N + kBlocks - 1) / kBlocks + kernels::kPanelColumns - 1) / kernels::kPanelColumns *
                        kernels::kPanelColumns,
                columns = std::clamp(detail::parallel_worthwhile(kBlocks, ns) ? share : N, kLeastColumns, kMostColumns);
  parallel_ranges(N, columns, ns, [&](int64_t begin, int64_t end) {
    kernels::gemm({.transpose_b = Transpose::yes,
                   .M = rows,
                   .N = end - begin,
                   .K = K,
                   .A = x,
                   .lda = K,
                   .B = weight_.ptr() + begin * K,
                   .ldb = K,
                   .C = y + begin,
                   .ldc = N,
                   .panels = panels_.defined() ? panels_.ptr() + begin * K : nullptr,
                   .bias = bias_.defined() ? bias_.ptr() + begin : nullptr});
    if (activation != Activation::none)
      kernels::bias_activation(activation, y + begin, y + begin, nullptr, {rows, end - begin, N});
  });
}

Tensor StepLinear::operator()(const Tensor& x, Activation activation) const {
  Shape shape = x.shape();
  shape.set(-1, out());
  Tensor y = Tensor::empty(shape);
  (*this)(x.ptr(), x.shape().product(0, x.rank() - 1), y.mutable_ptr(), activation);
  return y;
}

StepFeedForward::StepFeedForward(const AnyFeedForward& network, StepLinear::Panels panels)
    : last_(network.last(), panels) {
  if (const auto* plain = network.as<FeedForward>()) {
    first_ = StepLinear(plain->first, panels);
    activation_ = plain->activation;
  } else {
    const auto& gated = *network.as<GatedFeedForward>();
    first_ = StepLinear(gated.gate, panels);
    up_ = StepLinear(gated.up, panels);
    activation_ = gated.activation;
  }
}

Tensor StepFeedForward::operator()(const Tensor& x) const {
  Tensor hidden = first_(x, activation_);
  if (up_) kernels::mul(hidden.ptr(), (*up_)(x).ptr(), hidden.mutable_ptr(), hidden.numel());
  return last_(hidden);
}

int64_t StepWeights::Block::elements() const {
  int64_t sum = ffn.elements();
  for (const StepLinear* layer : {&q, &k, &v, &out, &cross_q, &cross_out}) sum += layer->elements();
  return sum;
}

StepWeights::StepWeights(const TransformerDecoder& decoder, StepLinear::Panels panels)
    : output(decoder.output, panels) {
  const auto ready = [&](const Linear& layer) { return StepLinear(layer, panels); };
  for (const TransformerBlock& b : decoder.stack.blocks) {
    Block block{ready(b.self.to_q),
                ready(b.self.to_k),
                ready(b.self.to_v),
                ready(b.self.to_out),
                {},
                {},
                StepFeedForward(b.ffn, panels)};
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
