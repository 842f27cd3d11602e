// Attention between words: token weights combined for blank-separated words, and word alignments derived from them.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/data/tokenizer.h"
#include "qkv/eval/alignment.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// What is aligned: blank-separated words, or the tokens of the model, for texts that are written without blanks.
enum class AlignmentUnit { words, pieces };
constexpr std::array<std::string_view, 2> names(AlignmentUnit) { return {"words", "pieces"}; }

/// A text as it is aligned, a blank between the units: the text itself, or its tokens.
std::string in_units(AlignmentUnit unit, const Tokenizer& tokenizer, const std::string& text);

/// attention (steps, maps, T) of a sentence pair, with <eos> -> (maps, target words, source words): the sum over a
/// source word's tokens, the mean over a target word's tokens. Weight on <eos> is left out.
Tensor word_attention(const Tensor& attention, const Tokenizer& source_tokenizer, const std::string& source,
                      const Tokenizer& target_tokenizer, const std::string& target,
                      AlignmentUnit unit = AlignmentUnit::words);

/// How links are derived from the weights. largest: every target word is linked to the source word with its largest
/// weight. competing: the same, but links are made in the order of the weights, and a source word is linked again only
/// if no free one has at least `share` of the target word's largest weight. So an article that attends to its noun for
/// the gender is still linked to the article.
enum class LinkRule { largest, competing };
constexpr std::array<std::string_view, 2> names(LinkRule) { return {"largest", "competing"}; }

/// weights (target words, source words).
Alignment align_words(const Tensor& weights, LinkRule rule = LinkRule::competing, double share = 0.1);

/// "0-0 1-2"; base: the number of the first word.
std::string pharaoh(const Alignment& alignment, int64_t base = 0);

}  // namespace qkv
