// The Transformer (Vaswani et al., 2017): encoder, decoder, and both together for translation.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "qkv/attention/multi_head.h"

namespace qkv {

struct StepWeights;  // models/step_weights.h

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
  /// after the factor sqrt(width) are as large as the positions that are added to them, so that positions are heard from the first step on.
  enum class Init { scaled, book, pytorch } init = Init::scaled;
  bool recompute = false;  // training keeps the inputs of the sublayers alone and computes the rest again: far less memory, a third more time
  bool advance_positions = true;  // false: in step-by-step decoding every token stands at position 0, as in the book's prediction
};
constexpr std::array<std::string_view, 3> names(TransformerOptions::Init) { return {"scaled", "book", "pytorch"}; }

/// Self-attention, then the feed-forward network, each with its residual, dropout and norm.
struct EncoderBlock {
  MultiHead self;
  LayerNorm self_norm;
  FeedForward ffn;
  LayerNorm ffn_norm;
  NormPlace norm = NormPlace::post;
  float dropout = 0;

  EncoderBlock() = default;
  EncoderBlock(const TransformerOptions& options, const Rng& rng);
  /// x (B, n, width) -> the same shape.
  Tensor operator()(const Tensor& x, const Mask& mask, const Run& run) const;
  /// The same; a tape keeps the inputs of the two sublayers alone. The block must outlive it.
  Tensor recomputed(const Tensor& x, const Mask& mask, const Run& run) const;
  void visit(auto&& f) {
    f("self", self);
    f("self_norm", self_norm);
    f("ffn", ffn);
    f("ffn_norm", ffn_norm);
  }

 private:
  Tensor self_part(const Tensor& x, const Mask& mask, const Run& run) const;
  Tensor ffn_part(const Tensor& x, const Run& run) const;
};

/// Causal self-attention, attention to the encoder's outputs (unless the decoder stands alone), the feed-forward network.
struct DecoderBlock {
  MultiHead self;
  LayerNorm self_norm;
  std::optional<MultiHead> cross;
  LayerNorm cross_norm;
  FeedForward ffn;
  LayerNorm ffn_norm;
  NormPlace norm = NormPlace::post;
  float dropout = 0;

  DecoderBlock() = default;
  enum class Alone { no, yes };
  DecoderBlock(const TransformerOptions& options, Alone alone, const Rng& rng);
  /// x (B, n, width): the n tokens after those of which `past` has the keys and values; theirs are added to it. Null: there is no past, and
  /// none is kept. memory: the projected encoder outputs, unused when alone.
  Tensor operator()(const Tensor& x, KeyValues* past, const KeyValues& memory, const Mask& memory_mask, const Run& run) const;
  /// The same without a past, from the encoder's outputs as they are; a tape keeps the inputs of the sublayers alone.
  Tensor recomputed(const Tensor& x, const Tensor& memory, const Mask& memory_mask, const Run& run) const;
  void visit(auto&& f) {
    f("self", self);
    f("self_norm", self_norm);
    f("cross", cross);
    if (cross) f("cross_norm", cross_norm);
    f("ffn", ffn);
    f("ffn_norm", ffn_norm);
  }

 private:
  Tensor self_part(const Tensor& x, KeyValues* past, const Run& run) const;
  Tensor cross_part(const Tensor& x, const KeyValues& memory, const Mask& mask, const Run& run) const;
  Tensor ffn_part(const Tensor& x, const Run& run) const;
};

/// Token embeddings times sqrt(width), with positions and dropout.
struct TokenEmbedding {
  Tensor weight;     // (vocabulary, width)
  Tensor positions;  // (max_positions, width), learned; else absent
  Tensor waves;      // the first sinusoidal positions, made once; a constant
  PositionKind kind = PositionKind::sinusoidal;
  float dropout = 0;

  TokenEmbedding() = default;
  TokenEmbedding(int64_t vocabulary, const TransformerOptions& options, const Rng& rng);
  /// ids (B, n) that stand at `offset`, offset + 1, ... -> (B, n, width).
  Tensor operator()(const Ids& ids, int64_t offset, const Run& run) const;
  void visit(auto&& f) {
    f("weight", weight);
    f("positions", positions);
  }
};

struct TransformerEncoder {
  TokenEmbedding embedding;
  std::vector<EncoderBlock> blocks;
  std::optional<LayerNorm> norm;  // of the last output; pre-norm only
  bool recompute = false;

  TransformerEncoder() = default;
  TransformerEncoder(const TransformerOptions& options, const Rng& rng);
  /// ids (B, n), lens (B) or absent: keys beyond a row's length are not seen -> (B, n, width). Probe: "0.self", "1.self", ...
  Tensor operator()(const Ids& ids, const Ids& lens, const Run& run) const;
  void visit(auto&& f) {
    f("embedding", embedding);
    for (size_t i = 0; i < blocks.size(); ++i) f(std::to_string(i), blocks[i]);
    f("norm", norm);
  }
};

/// With an encoder's outputs it translates; alone it is a language model.
struct TransformerDecoder {
  TokenEmbedding embedding;
  std::vector<DecoderBlock> blocks;
  std::optional<LayerNorm> norm;
  bool recompute = false;
  Linear output;  // width -> vocabulary

  TransformerDecoder() = default;
  TransformerDecoder(const TransformerOptions& options, DecoderBlock::Alone alone, const Rng& rng);
  /// What `output` reads: ids (B, n), memory (B, m, width) and its lengths (B), both absent when alone -> (B, n, width). No output depends
  /// on a later id. Probe: "0.self", "0.cross", ...
  Tensor features(const Ids& ids, const Tensor& memory, const Ids& memory_lens, const Run& run) const;
  void visit(auto&& f) {
    f("embedding", embedding);
    for (size_t i = 0; i < blocks.size(); ++i) f(std::to_string(i), blocks[i]);
    f("norm", norm);
    f("output", output);
  }
};

struct Transformer {
  TransformerOptions options;
  TransformerEncoder encoder;
  TransformerDecoder decoder;

  Transformer() = default;
  Transformer(const TransformerOptions& options, const Rng& rng);

  /// What the output layer reads, with teacher forcing: source (B, S), source_lens (B) or absent, target_in (B, T) -> (B, T, width).
  Tensor features(const Ids& source, const Ids& source_lens, const Ids& target_in, const Run& run) const;
  /// (B, T, target vocabulary).
  Tensor logits(const Ids& source, const Ids& source_lens, const Ids& target_in, const Run& run) const;

  /// Where a decoding stands: R rows, each a hypothesis of some sentence. Every token that a row ever read has a slot with its keys and
  /// values; rows that share a past share its slots, so that reordering moves none of them.
  struct State {
    std::vector<KeyValues> self;    // of every block, (room for slots, key_heads D)
    std::vector<KeyValues> cross;   // of every block, (B S, key_heads D), projected once
    Ids lens;                       // (B), or absent
    std::vector<int32_t> sentence;  // of every row
    std::vector<int32_t> slots;     // (R, position): those of a row's tokens
    int64_t written = 0;            // slots that are taken
    int64_t position = 0;           // of the next token
    int64_t source_length = 0;      // S
    std::shared_ptr<const StepWeights> weights;  // as start found them: training on, or another kernel target, needs a new start
    int64_t rows() const { return static_cast<int64_t>(sentence.size()); }
  };
  State start(const Ids& source, const Ids& source_lens, const Run& run) const;
  /// One token more for every row: tokens (R) -> logits (R, target vocabulary), those of the whole prefix to rounding. Not recorded.
  Tensor step(State& state, const Ids& tokens, const Run& run) const;
  /// Row i becomes what rows[i] was: keeps, repeats, reorders.
  void select(State& state, std::span<const int32_t> rows) const;

  void visit(auto&& f) {
    f("encoder", encoder);
    f("decoder", decoder);
  }
};

}  // namespace qkv
