// The weights of a decoder in a form for decoding, which repeats the same products with few rows.
#pragma once

#include <optional>
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
  int64_t elements() const { return weight_.defined() ? in() * out() : 0; }
  /// Whether it was made from this layer.
  bool is_of(const Linear& layer) const { return weight_.ptr() == layer.weight.ptr(); }
  /// activation(x weight^T + bias), x (rows, in), y (rows, out). Columns in parallel, so that the weight is read once
  /// for all rows, unless rows already are.
  void operator()(const float* x, int64_t rows, float* y, Activation activation = Activation::none) const;
  bool has_panels() const { return panels_.defined(); }
  /// Gives back the pages of a weight that only the panels are read of, if a file is mapped there.
  void give_back() const;
  /// (..., in) -> (..., out)
  Tensor operator()(const Tensor& x, Activation activation = Activation::none) const;

 private:
  Tensor weight_, bias_, panels_;
};

/// The same for a feed-forward network of either kind.
class StepFeedForward {
 public:
  StepFeedForward() = default;
  StepFeedForward(const AnyFeedForward& network, StepLinear::Panels panels);
  int64_t elements() const { return first_.elements() + (up_ ? up_->elements() : 0) + last_.elements(); }
  /// (..., in) -> (..., out)
  Tensor operator()(const Tensor& x) const;

 private:
  StepLinear first_, last_;       // first_: with the activation
  std::optional<StepLinear> up_;  // what it is multiplied by, if it is a gate
  Activation activation_ = Activation::none;
};

struct StepWeights {
  struct Block {
    StepLinear q, k, v, out;  // of self-attention
    StepLinear cross_q, cross_out;
    StepFeedForward ffn;
    /// Of all matrices.
    int64_t elements() const;
  };
  std::vector<Block> blocks;
  StepLinear output;

  StepWeights(const TransformerDecoder& decoder, StepLinear::Panels panels);
  /// Whether they were made from this decoder, with at least these panels.
  bool serve(const TransformerDecoder& decoder, StepLinear::Panels panels) const;
  /// The embeddings may share the output layer's matrix: what they have read of it is given back.
  void give_back() const { output.give_back(); }
};

}  // namespace qkv
