// The Transformer (Vaswani et al., 2017): encoder and decoder together, for translation.
#pragma once

#include <span>

#include "qkv/core/api.h"
#include "qkv/models/transformer_decoder.h"

namespace QKV_API qkv {

struct TransformerEncoder {
  TokenEmbedding embedding;
  TransformerStack stack;

  TransformerEncoder() = default;
  TransformerEncoder(const TransformerConfig& config, int64_t vocabulary, const Rng& rng);
  /// ids (B, n), lens (B) or absent: keys beyond a row's length are hidden -> (B, n, width). Probe: "0.self",
  /// "1.self", ...
  Tensor operator()(const Ids& ids, const Ids& lens, const Run& run) const;
  void visit(auto&& f) {
    f("embedding", embedding);
    stack.visit(f);
  }
};

struct Transformer {
  TransformerConfig config;
  TransformerEncoder encoder;
  TransformerDecoder decoder;

  Transformer() = default;
  Transformer(const TransformerConfig& config, const VocabularySizes& words, const Rng& rng);

  /// The input of the output layer, with teacher forcing: source (B, S), source_lens (B) or absent, target_in (B, T) ->
  /// (B, T, width). `mask`: which target tokens a target token sees.
  Tensor features(const Ids& source, const Ids& source_lens, const Ids& target_in, const Run& run,
                  const Mask& mask = Mask::causal()) const;
  /// (B, T, target vocabulary).
  Tensor logits(const Ids& source, const Ids& source_lens, const Ids& target_in, const Run& run) const;

  using State = DecoderState;
  /// One row per source sentence. `ready`: as for TransformerDecoder::start.
  State start(const Ids& source, const Ids& source_lens, const Run& run,
              const std::shared_ptr<const StepWeights>& ready = {}) const;
  Tensor step(State& state, const Ids& tokens, const Run& run) const {
    return decoder.step(state, tokens, run.at("decoder"));
  }
  void select(State& state, std::span<const int32_t> rows) const { decoder.select(state, rows); }

  void visit(auto&& f) {
    f("encoder", encoder);
    f("decoder", decoder);
  }
};

}  // namespace qkv
