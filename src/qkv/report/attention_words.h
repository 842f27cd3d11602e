// Attention between words: the maps of tokens, put together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/data/pretrained_tokenizer.h"
#include "qkv/report/attention_maps.h"

namespace QKV_API qkv {
namespace report {

/// Which word every token belongs to, from 0 and in order, and the words.
struct TokenWords {
  std::vector<int32_t> word;
  std::vector<std::string> words;
};

/// The words of an encoded text, as the tokenizer separates them; a token that the tokenizer added is its own word.
TokenWords token_words(const std::string& text, const EncodedText& encoded, const std::vector<std::string>& tokens);
/// By the number of the blank-separated part of a text that each token comes from; tokens after these, and the first
/// `before`, are their own words.
TokenWords token_words(const std::string& text, const std::vector<int32_t>& parts,
                       const std::vector<std::string>& tokens, size_t before);

/// By the marks in tokens as they are shown: one that begins with ▁ begins a word; ␣, ⏎ and tokens like </s> separate
/// words and are their own. Without ▁, ␣ and ⏎, every token is a word.
TokenWords token_words(const std::vector<std::string>& tokens);

/// (..., queries, keys) between tokens -> between words: the mean over the tokens of the query's word of the sum over
/// those of the key's word (Clark et al., 2019). Rows that sum to 1 still do.
Tensor between_words(const Tensor& maps, const TokenWords& queries, const TokenWords& keys);

/// All maps of a sentence pair between words; `input` and `output` are not used for a model that reads one text.
SeenPair by_words(const SeenPair& seen, const TokenWords& source, const TokenWords& input, const TokenWords& output);

}  // namespace report
}  // namespace qkv
