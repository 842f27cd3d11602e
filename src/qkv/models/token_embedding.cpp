// Embeddings: a matrix, and positions if they are added.
#include "qkv/models/token_embedding.h"

#include <cmath>

#include "qkv/core/check.h"
#include "qkv/nn/init.h"
#include "qkv/ops/embedding.h"
#include "qkv/tensor/tape.h"

namespace qkv {

TokenEmbedding::TokenEmbedding(int64_t vocabulary, const TransformerConfig& o, const Rng& rng)
    : positions(o.positions, o.max_positions, o.hidden, rng.at("positions"), o.waves),
      factor(o.scale_embeddings ? std::sqrt(static_cast<float>(o.hidden)) : 1),
      dropout(o.dropout) {
  check(vocabulary > 0, "[transformer] a vocabulary needs at least one token, got ", vocabulary);
  float size = 1;
  if (o.init == TransformerConfig::Init::scaled) size = 1 / std::sqrt(static_cast<float>(o.hidden));
  if (o.init == TransformerConfig::Init::gpt2) size = kGpt2Deviation;
  weight = parameter(normal({vocabulary, o.hidden}, rng.at("weight"), 0, size));
}

Tensor TokenEmbedding::operator()(const Ids& ids, int64_t offset, const Run& run) const {
  check(ids.rank() == 2, "[transformer] expected ids of shape (B, n), got ", ids.shape());
  return embedding_scaled_position(weight, ids, factor, positions(ids.size(1), offset), dropout, run);
}

}  // namespace qkv
