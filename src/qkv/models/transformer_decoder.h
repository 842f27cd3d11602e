// The Transformer's decoder: with an encoder's outputs it translates, on its own it is a language model. It runs on
// whole sequences for training, and with a cache for writing one token at a time.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/models/token_embedding.h"
#include "qkv/models/transformer_stack.h"

namespace QKV_API qkv {

struct StepWeights;  // models/step_weights.h

/// The state of decoding: R rows, each a partial output. Every token that a row has read has a slot with its keys and
/// values; rows that share a past share its slots, so that reordering does not move any of them.
struct DecoderState {
  std::vector<KeyValues> self;    // per block, (room for slots, key_heads D)
  std::vector<KeyValues> cross;   // per block, (B S, key_heads D), projected once; empty without an encoder
  Ids lens;                       // (B) of the encoder's outputs, or absent
  int64_t source_length = 0;      // S
  std::vector<int32_t> sentence;  // per row: which of the B sentences it attends to
  std::vector<int32_t> lengths;   // per row: tokens it has read
  std::vector<int32_t> slots;     // (R, longest row): the slots of a row's tokens, then unused
  int64_t written = 0;            // slots in use
  /// The weights at start(): after more training, or with another kernel target, call start() again.
  std::shared_ptr<const StepWeights> weights;
  int64_t rows() const { return static_cast<int64_t>(sentence.size()); }
  int64_t longest() const;
};

struct TransformerDecoder {
  TokenEmbedding embedding;
  TransformerStack stack;
  Linear output;                  // width -> vocabulary
  bool advance_positions = true;  // false: while decoding every token is at position 0, as in the book's prediction

  TransformerDecoder() = default;
  TransformerDecoder(const TransformerConfig& config, int64_t vocabulary, Cross cross, const Rng& rng);
  /// The input of `output`: ids (B, n), memory (unused without cross-attention) -> (B, n, width). With the causal mask
  /// no output depends on a later id. Probe: "0.self", "0.cross", ...
  Tensor features(const Ids& ids, const Memory& memory, const Run& run, const Mask& mask = Mask::causal()) const;
  /// (B, n, vocabulary).
  Tensor logits(const Ids& ids, const Memory& memory, const Run& run, const Mask& mask = Mask::causal()) const {
    return output(features(ids, memory, run, mask));
  }

  /// `rows` rows that have read nothing. With cross-attention row b attends to states[b] of (rows, m, width), up to
  /// lens[b]. `ready`: weights of an earlier state of this decoder, which has not been trained since.
  DecoderState start(int64_t rows, const Tensor& states = {}, const Ids& lens = {},
                     const std::shared_ptr<const StepWeights>& ready = {}) const;
  /// Reads the first tokens of every row in one pass: ids (R, n), of which row r has the first lens[r], at least one
  /// (absent: all) -> logits (R, vocabulary) after each row's last token. The state must not have read anything. Not
  /// recorded.
  Tensor prefill(DecoderState& state, const Ids& ids, const Ids& lens, const Run& run) const;
  /// Reads one more token per row: tokens (R) -> logits (R, vocabulary), equal to those of the whole prefix up to
  /// rounding. Not recorded.
  Tensor step(DecoderState& state, const Ids& tokens, const Run& run) const;
  /// Row i becomes the old row rows[i]: selects, repeats, reorders.
  void select(DecoderState& state, std::span<const int32_t> rows) const;

  void visit(auto&& f) {
    f("embedding", embedding);
    stack.visit(f);
    f("output", output);
  }
};

}  // namespace qkv
