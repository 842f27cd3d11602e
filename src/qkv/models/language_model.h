// Language models: a decoder alone, an encoder alone, or both, by the objective that they are trained with.
#pragma once

#include <optional>

#include "qkv/core/api.h"
#include "qkv/models/language_model_config.h"
#include "qkv/models/transformer.h"

namespace QKV_API qkv {

struct LanguageModel {
  LanguageModelConfig config;
  int64_t tokens = 0;                        // of the tokenizer; special ones follow
  std::optional<TransformerDecoder> single;  // causal and masked: one stack without cross-attention
  std::optional<Transformer> pair;           // spans: encoder and decoder

  LanguageModel() = default;
  LanguageModel(const LanguageModelConfig& config, int64_t tokens, const Rng& rng);

  /// The input of the output layer, causal and masked: ids (B, n) -> (B, n, width). Probe: "decoder.0.self", or
  /// "encoder.0.self" if every token sees all others.
  Tensor features(const Ids& ids, const Run& run) const;
  /// The same for spans: what is left of the text (B, n), and what the decoder has written (B, m) -> (B, m, width).
  Tensor features(const Ids& read, const Ids& written, const Run& run) const;
  const Linear& output() const { return single ? single->output : pair->decoder.output; }

  /// Ids of special tokens.
  int32_t mask() const { return static_cast<int32_t>(tokens); }                     // masked
  int32_t mark(int64_t span) const { return static_cast<int32_t>(tokens + span); }  // spans, from 0
  int32_t begin() const { return static_cast<int32_t>(tokens + config.marks()); }   // spans

  void visit(auto&& f) {
    f("model", single);
    if (pair) pair->visit(f);
  }
};

}  // namespace qkv
