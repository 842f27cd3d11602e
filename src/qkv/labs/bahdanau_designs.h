// Translators with one decoder, a GRU that attends, and different encoders and output layers: what exercises of chapter
// 9 ask about.
#pragma once

#include <optional>
#include <vector>

#include "qkv/data/translation.h"
#include "qkv/models/transformer.h"
#include "qkv/nn/layers.h"
#include "qkv/nn/recurrent.h"
#include "qkv/train/fit.h"

namespace qkv::labs::bahdanau {

/// What makes the states that the decoder attends to: a GRU, a convolution over three words, or self-attention.
enum class Reading { recurrent, convolution, self_attention };
/// From a state to scores of words: one matrix; the matrix of the target embedding; or one matrix after a layer of tanh
/// over the state and the embedding of the previous word.
enum class Writing { matrix, shared, deep };

struct Design {
  Reading reading = Reading::recurrent;
  Writing writing = Writing::matrix;
  Embedding source, target;
  std::optional<Recurrent> gru;
  std::optional<TransformerEncoder> attention;  // with an embedding of its own
  Tensor convolution;                           // (width, width, 3), or absent
  Linear first, keys;                           // mean state -> first state of the decoder; state -> key
  Tensor W_q, w_v;
  Recurrent decoder;
  Linear inner, output;
  Tensor bias;  // of a shared output

  Design(Reading reading, Writing writing, const VocabularySizes& words, int64_t width, const Rng& rng);
  /// (B, T, target vocabulary), teacher-forced.
  Tensor logits(const TranslationBatch& batch) const;
  void visit(auto&& f) {
    if (reading != Reading::self_attention) f("source", source);
    f("target", target);
    f("gru", gru);
    f("attention", attention);
    f("convolution", convolution);
    f("first", first);
    f("keys", keys);
    f("W_q", W_q);
    f("w_v", w_v);
    f("decoder", decoder);
    f("inner", inner);
    f("output", output);
    f("bias", bias);
  }

 private:
  Tensor states(const TranslationBatch& batch) const;
};

/// Pairs of ids, and the special ids of both sides.
struct IdText {
  std::vector<IdPair> train, fresh;
  VocabularySizes words;
  int32_t pad_source, pad_target, bos;
};

/// What a training came to.
struct Outcome {
  int64_t parameters = 0;
  double first_loss = 0, last_loss = 0;  // nats per token, means over the first and the last epoch
  double nats = 0, exact = 0;            // of fresh pairs: per token, and the share that is written without a mistake
};
Outcome trained_design(Reading reading, Writing writing, const IdText& text, int64_t epochs, const Rng& rng,
                       Observer& observer);

}  // namespace qkv::labs::bahdanau
