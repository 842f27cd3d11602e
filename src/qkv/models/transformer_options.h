// What a Transformer is made of.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "qkv/attention/multi_head.h"
#include "qkv/models/model_facts.h"

namespace qkv {

/// Where layer normalisation stands: after the residual sum, as in the book, or before the sublayer, with one more at the end.
enum class NormPlace { post, pre };
constexpr std::array<std::string_view, 2> names(NormPlace) { return {"post", "pre"}; }

struct TransformerOptions {
  int64_t source_vocabulary = 0, target_vocabulary = 0;
  int64_t width = 32, ffn = 64, heads = 4;
  int64_t key_heads = 0;  // 0: as many as heads
  int64_t encoder_layers = 2, decoder_layers = 2;
  float dropout = 0.1f;            // of embeddings and of what every sublayer adds
  float attention_dropout = 0.1f;  // of attention weights
  NormPlace norm = NormPlace::post;
  Activation activation = Activation::relu;
  PositionKind positions = PositionKind::sinusoidal;
  int64_t max_positions = 1000;  // of a learned table
  int64_t max_distance = 32;     // of relative positions: what is farther counts as that far
  ScorerKind scorer = ScorerKind::scaled_dot;
  Linear::Bias bias = Linear::Bias::no;  // of the projections of attention
  bool tied = false;                     // one matrix for both embeddings and the output layer
  /// Linear layers start Xavier-uniform, or as PyTorch's do; embeddings as N(0, 1), as the books have it, or scaled: N(0, 1 / width), which
  /// after the factor sqrt(width) are as large as the positions that are added to them, so that positions count from the first step on.
  enum class Init { scaled, book, pytorch } init = Init::scaled;
  bool recompute = false;  // training keeps the inputs of the sublayers alone and computes the rest again: far less memory, a third more time
  bool advance_positions = true;  // false: in step-by-step decoding every token stands at position 0, as in the book's prediction

  ModelFacts facts() const;
  /// Names and shapes of all parameters of encoder and decoder.
  std::vector<NamedShape> layout() const;
};
constexpr std::array<std::string_view, 3> names(TransformerOptions::Init) { return {"scaled", "book", "pytorch"}; }

}  // namespace qkv
