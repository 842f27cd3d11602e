// The Transformer's decoder: with an encoder's outputs it translates, alone it is a language model. Whole sequences at
// once for training, and a state with a cache for writing token after token.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "qkv/models/token_embedding.h"
#include "qkv/models/transformer_stack.h"

namespace qkv {

struct StepWeights;  // models/step_weights.h

/// Where a decoding stands: R rows, each a partial output. Every token that a row ever read has a slot with its keys
/// and values; rows that share a past share its slots, so that reordering moves none of them.
struct DecoderState {
  std::vector<KeyValues> self;    // of every block, (room for slots, key_heads D)
  std::vector<KeyValues> cross;   // of every block, (B S, key_heads D), projected once; empty without an encoder
  Ids lens;                       // (B) of the encoder's outputs, or absent
  int64_t source_length = 0;      // S
  std::vector<int32_t> sentence;  // of every row: which of the B it reads
  std::vector<int32_t> lengths;   // of every row: tokens it has read
  std::vector<int32_t> slots;     // (R, longest row): those of a row's tokens, then anything
  int64_t written = 0;            // slots that are taken
  std::shared_ptr<const StepWeights>
      weights;  // as start found them: training on, or another kernel target, needs a new start
  int64_t rows() const { return static_cast<int64_t>(sentence.size()); }
  int64_t longest() const;
};

struct TransformerDecoder {
  TokenEmbedding embedding;
  TransformerStack stack;
  Linear output;                  // width -> vocabulary
  bool advance_positions = true;  // false: step by step every token stands at position 0, as in the book's prediction

  TransformerDecoder() = default;
  TransformerDecoder(const TransformerConfig& config, int64_t vocabulary, Cross cross, const Rng& rng);
  /// What `output` reads: ids (B, n), memory unused without cross-attention -> (B, n, width). With the causal mask no
  /// output depends on a later id. Probe: "0.self", "0.cross", ...
  Tensor features(const Ids& ids, const Memory& memory, const Run& run, const Mask& mask = Mask::causal()) const;
  /// (B, n, vocabulary).
  Tensor logits(const Ids& ids, const Memory& memory, const Run& run, const Mask& mask = Mask::causal()) const {
    return output(features(ids, memory, run, mask));
  }

  /// `rows` rows that have read nothing. With cross-attention row b reads states[b] of (rows, m, width), as far as lens
  /// (rows) says.
  DecoderState start(int64_t rows, const Tensor& states = {}, const Ids& lens = {}) const;
  /// Reads the first tokens of every row in one pass: ids (R, n), of which row r has the first lens[r], at least one;
  /// absent: all -> logits (R, vocabulary) after each row's last token. For a state that has read nothing. Not
  /// recorded.
  Tensor prefill(DecoderState& state, const Ids& ids, const Ids& lens, const Run& run) const;
  /// One token more for every row: tokens (R) -> logits (R, vocabulary), those of the whole prefix to rounding. Not
  /// recorded.
  Tensor step(DecoderState& state, const Ids& tokens, const Run& run) const;
  /// Row i becomes what rows[i] was: keeps, repeats, reorders.
  void select(DecoderState& state, std::span<const int32_t> rows) const;

  void visit(auto&& f) {
    f("embedding", embedding);
    stack.visit(f);
    f("output", output);
  }
};

}  // namespace qkv
