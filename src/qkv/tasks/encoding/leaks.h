// Proves by perturbation that what an encoder makes of a text depends on that text alone, and on all of it.
#pragma once

#include <span>
#include <string>

#include "qkv/core/api.h"
#include "qkv/tasks/encoding/sentence_encoder.h"

namespace QKV_API qkv {

struct EncoderLeakReport {
  struct Tried {
    int64_t tried = 0, compared = 0;
    double largest = 0;  // difference of a state, NaN if one is NaN
    bool passed() const { return tried > 0 && largest == 0; }
  };
  Tried padding;  // tokens after the text, which its lengths hide
  Tried mates;    // other texts of a batch, and their order
  /// Tokens that were changed, and how many of these changes had an effect on every other state of the text.
  int64_t controls = 0, noticed = 0;
  bool passed() const { return padding.passed() && mates.passed() && noticed == controls; }
};

EncoderLeakReport encoder_leaks(const SentenceEncoder& encoder, std::span<const std::vector<int32_t>> texts,
                                const Rng& rng);

/// Texts of 1 to 24 random tokens between the tokens that surround every text.
std::vector<std::vector<int32_t>> random_encoder_texts(const SentenceEncoder& encoder, int64_t count, const Rng& rng);

}  // namespace qkv
