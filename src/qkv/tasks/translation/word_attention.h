// Attention between words: token weights added up to blank-separated words, and word alignments read off them.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/data/tokenizer.h"
#include "qkv/eval/alignment.h"
#include "qkv/tensor/tensor.h"

namespace qkv {

/// attention (steps, maps, T) of a sentence pair, ends included -> (maps, target words, source words): the weights of a
/// source word's tokens added, the mean over a target word's tokens. What goes to <eos> is left out.
Tensor word_attention(const Tensor& attention, const Tokenizer& source_tokenizer, const std::string& source,
                      const Tokenizer& target_tokenizer, const std::string& target);

/// How links are read off the weights. largest: every target word with the source word of its largest weight.
/// competing: the same, but source words are taken in the order of the weights, and a word that is taken is left to its
/// taker if another one has at least `share` of the target word's largest weight: an article that looks at its noun for
/// the gender is linked with the article.
enum class LinkRule { largest, competing };
constexpr std::array<std::string_view, 2> names(LinkRule) { return {"largest", "competing"}; }

/// weights (target words, source words).
Alignment align_words(const Tensor& weights, LinkRule rule = LinkRule::competing, double share = 0.1);

/// "0-0 1-2"; base: the number of the first word.
std::string pharaoh(const Alignment& alignment, int64_t base = 0);

}  // namespace qkv
