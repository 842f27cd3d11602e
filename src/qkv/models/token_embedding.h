// Token embeddings with their positions.
#pragma once

#include "qkv/core/api.h"
#include "qkv/models/transformer_config.h"

namespace QKV_API qkv {

/// Token embeddings, times sqrt(width) unless the configuration says otherwise, with positions and dropout.
struct TokenEmbedding {
  Tensor weight;  // (vocabulary, width)
  AddedPositions positions;
  float factor = 1;  // of the embeddings
  float dropout = 0;

  TokenEmbedding() = default;
  TokenEmbedding(int64_t vocabulary, const TransformerConfig& config, const Rng& rng);
  /// ids (B, n) at positions `offset`, offset + 1, ... -> (B, n, width).
  Tensor operator()(const Ids& ids, int64_t offset, const Run& run) const;
  void visit(auto&& f) {
    f("weight", weight);
    f("positions", positions.table);
  }
};

}  // namespace qkv
