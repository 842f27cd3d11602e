// Recurrent encoder and decoder for sequences: the baseline without attention (Sutskever et al., 2014; Cho et al.,
// 2014) and the decoder that attends in every step (Bahdanau et al., 2015).
#pragma once

#include <span>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/models/seq2seq_config.h"
#include "qkv/nn/layers.h"

namespace QKV_API qkv {

struct Seq2Seq {
  struct Encoder {
    Embedding embedding;
    Recurrent recurrent;
    Linear words;  // embeddings to values; absent if values are states
    void visit(auto&& f) {
      f("embedding", embedding);
      f("recurrent", recurrent);
      f("words", words);
    }
  };
  /// From the states of both directions to the decoder's first states, one linear layer each; empty unless
  /// bidirectional.
  struct Bridge {
    std::vector<Linear> h, c;
    void visit(auto&& f) {
      f("h", h);
      f("c", c);
    }
  };
  struct Decoder {
    Embedding embedding;
    AnyScorer attention;
    Recurrent recurrent;
    void visit(auto&& f) {
      f("embedding", embedding);
      f("attention", attention);
      f("recurrent", recurrent);
    }
  };

  Seq2SeqConfig config;
  Encoder encoder;
  Bridge bridge;
  Decoder decoder;
  Linear output;  // hidden -> target vocabulary

  Seq2Seq() = default;
  /// Initialised as in the book's PyTorch code: matrices Xavier-uniform, embeddings N(0, 1), biases as the layers do.
  Seq2Seq(const Seq2SeqConfig& config, const VocabularySizes& words, const Rng& rng);

  /// Decoder states with teacher forcing, the input of `output`: source (B, S), source_lens (B) or absent, target_in
  /// (B, T) -> (B, T, hidden). With target_lens (B), steps beyond a row's length are skipped and their states are 0,
  /// which makes no difference to a masked loss. The probe gets the weights of all steps, (B, 1, T, S), at
  /// "decoder.attention".
  Tensor features(const Ids& source, const Ids& source_lens, const Ids& target_in, const Run& run,
                  const Ids& target_lens = {}) const;
  /// output(features): (B, T, target vocabulary).
  Tensor logits(const Ids& source, const Ids& source_lens, const Ids& target_in, const Run& run,
                const Ids& target_lens = {}) const;

  /// The state of decoding: R rows, each a hypothesis of some sentence.
  struct State {
    Few<CellState> layers;          // (R, hidden) each
    Tensor keys, values;            // (R, S, ...), projected once; absent without attention
    Tensor context;                 // (R, encoder width); only without attention
    Ids lens;                       // (R), or absent
    std::vector<int32_t> sentence;  // of every row
    int32_t steps = 0;              // tokens that every row has read
    int64_t rows() const { return static_cast<int64_t>(sentence.size()); }
  };
  /// The state before the first token: one row per sentence. source (B, S), source_lens (B) or absent.
  State start(const Ids& source, const Ids& source_lens, const Run& run) const;
  /// Reads one more token per row: tokens (R) -> logits (R, target vocabulary). The probe gets the weights, (R, 1, 1,
  /// S), at "decoder.attention".
  Tensor step(State& state, const Ids& tokens, const Run& run) const;
  /// Row i becomes the old row rows[i]: selects, repeats, reorders.
  void select(State& state, std::span<const int32_t> rows) const;

  void visit(auto&& f) {
    f("encoder", encoder);
    f("bridge", bridge);
    f("decoder", decoder);
    f("output", output);
  }

 private:
  struct Encoded {
    Tensor states;         // (B, S, encoder width): the keys are computed from them
    Tensor values;         // (B, S, encoder width)
    Tensor context;        // (B, encoder width): the last state of the last layer
    Few<CellState> first;  // states of the decoder's layers
  };
  Encoded encode(const Ids& source, const Ids& source_lens, const Run& run) const;
  Tensor keys_of(const Tensor& states) const;
  Tensor decode_baseline(const Encoded& encoded, const Tensor& embedded, const Run& run, const Ids& target_lens) const;
  Tensor decode_fused(const Encoded& encoded, const Ids& source_lens, const Tensor& embedded, const Run& run,
                      const Ids& target_lens) const;
  Tensor decode_stepwise(const Encoded& encoded, const Ids& source_lens, const Tensor& embedded, const Run& run,
                         const Ids& target_lens) const;
};

}  // namespace qkv
