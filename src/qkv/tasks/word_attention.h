// Attention between words: token weights added up to blank-separated words, and word alignments read off them.
#pragma once

#include <string>
#include <vector>

#include "qkv/data/tokenizer.h"
#include "qkv/eval/alignment.h"
#include "qkv/tensor/tensor.h"

namespace qkv {

/// attention (steps, maps, T) of a sentence pair, ends included -> (maps, target words, source words): the weights of a source word's
/// tokens added, the mean over a target word's tokens. What goes to <eos> is left out.
Tensor word_attention(const Tensor& attention, const Tokenizer& source_tokenizer, const std::string& source,
                      const Tokenizer& target_tokenizer, const std::string& target);

/// Links every target word with the source word of its largest weight, and with every other that has at least `share` of that weight.
/// weights (target words, source words).
Alignment align_words(const Tensor& weights, double share = 1);

/// "0-0 1-2".
std::string pharaoh(const Alignment& alignment);

}  // namespace qkv
