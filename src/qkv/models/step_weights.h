// The weights of a decoder in a form for decoding, which repeats the same products with few rows.
#pragma once

#include <vector>

#include "qkv/models/transformer_decoder.h"
#include "qkv/nn/layers.h"

namespace qkv {

/// A linear layer whose weight may be copied once into the panels that products read. Same bits as Linear, but not
/// recorded.
class StepLinear {
 public:
  enum class Panels { no, yes };

  StepLinear() = default;
  StepLinear(const Linear& layer, Panels panels);
  int64_t in() const { return weight_.size(1); }
  int64_t out() const { return weight_.size(0); }
  /// Whether it was made from this layer.
  bool is_of(const Linear& layer) const { return weight_.ptr() == layer.weight.ptr(); }
  /// activation(x weight^T + bias), x (rows, in), y (rows, out), on the calling thread.
  void operator()(const float* x, int64_t rows, float* y, Activation activation = Activation::none) const;
  /// The same for a matrix that no cache holds: columns in parallel, so that the weight is read once for all rows.
  void in_parallel(const float* x, int64_t rows, float* y) const;
  bool has_panels() const { return panels_.defined(); }
  /// (..., in) -> (..., out)
  Tensor operator()(const Tensor& x, Activation activation = Activation::none) const;

 private:
  Tensor weight_, bias_, panels_;
};

struct StepWeights {
  struct Block {
    StepLinear q, k, v, out;  // of self-attention
    StepLinear cross_q, cross_out;
    StepLinear first, second;  // of the feed-forward network
  };
  std::vector<Block> blocks;
  StepLinear output;

  StepWeights(const TransformerDecoder& decoder, StepLinear::Panels panels);
  /// Whether they were made from this decoder, with at least these panels.
  bool serve(const TransformerDecoder& decoder, StepLinear::Panels panels) const;
};

}  // namespace qkv
