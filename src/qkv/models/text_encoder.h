// Text encoders (BERT; Devlin et al., 2019): every token sees all others, and heads read words or classes from the
// states.
#pragma once

#include <optional>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/models/transformer_stack.h"

namespace QKV_API qkv {

struct TextEncoderConfig {
  /// Its max_positions are the rows of the table of positions, its dropout is also that of the embedding.
  TransformerConfig blocks{.norm = NormPlace::post,
                           .activation = Activation::gelu,
                           .positions = PositionKind::learned,
                           .bias = true,
                           .scale_embeddings = false};
  int64_t words = 0;           // rows of the embedding
  int64_t types = 1;           // kinds of tokens: the first and the second text of a pair
  int64_t first_position = 0;  // the row of the first token's position

  /// The most tokens of a text.
  int64_t longest() const { return blocks.max_positions - first_position; }
  ModelFacts facts() const;
};

/// The sum of what a token, its position and its type are, normalised.
struct EncoderEmbedding {
  Tensor words, positions, types;  // (words, width), (positions, width), (types, width)
  LayerNorm norm;
  int64_t first_position = 0;
  float dropout = 0;

  EncoderEmbedding() = default;
  EncoderEmbedding(const TextEncoderConfig& config, const Rng& rng);
  /// ids and types (B, n), types absent: all 0 -> (B, n, width).
  Tensor operator()(const Ids& ids, const Ids& types, const Run& run) const;
  void visit(auto&& f) {
    f("words", words);
    f("positions", positions);
    f("types", types);
    f("norm", norm);
  }
};

struct TextEncoder {
  TextEncoderConfig config;
  EncoderEmbedding embedding;
  TransformerStack stack;

  TextEncoder() = default;
  TextEncoder(const TextEncoderConfig& config, const Rng& rng);
  /// ids (B, n), types (B, n) or absent, lens (B) or absent: keys beyond a row's length are hidden -> (B, n, width).
  /// Probe: "encoder.0.self", ...
  Tensor operator()(const Ids& ids, const Ids& types, const Ids& lens, const Run& run) const;
  void visit(auto&& f) {
    f("embedding", embedding);
    stack.visit(f);
  }
};

/// Scores of words for hidden tokens: output(norm(activation(transform(states)))).
struct WordHead {
  Linear transform;
  Activation activation = Activation::gelu;
  LayerNorm norm;
  Linear output;  // width -> words; its matrix may be that of the embedding

  WordHead() = default;
  WordHead(const TextEncoderConfig& config, const Rng& rng);
  /// The input of the output layer: (..., width) -> (..., width).
  Tensor features(const Tensor& states) const { return norm(transform(states, activation)); }
  /// (..., width) -> (..., words).
  Tensor operator()(const Tensor& states) const { return output(features(states)); }
  void visit(auto&& f) {
    f("transform", transform);
    f("norm", norm);
    f("output", output);
  }
};

/// Scores of classes from the state of the first token: output(dropout(tanh(dense(state)))).
struct ClassHead {
  Linear dense, output;
  float dropout = 0;

  ClassHead() = default;
  ClassHead(const TextEncoderConfig& config, int64_t classes, const Rng& rng);
  /// (B, n, width) -> (B, classes).
  Tensor operator()(const Tensor& states, const Run& run) const;
  void visit(auto&& f) {
    f("dense", dense);
    f("output", output);
  }
};

/// An encoder with the heads that it was trained with.
struct EncoderModel {
  TextEncoder encoder;
  std::optional<WordHead> words;
  std::optional<ClassHead> classes;

  void visit(auto&& f) {
    f("encoder", encoder);
    f("words", words);
    f("classes", classes);
  }
};

}  // namespace qkv
