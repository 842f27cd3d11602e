// From the data block of a configuration to sentences, tokenizers and pairs of ids.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/data/corpus.h"
#include "qkv/data/tokenizer.h"
#include "qkv/data/translation.h"
#include "qkv/tasks/translation/config.h"

namespace QKV_API qkv {

struct Tokenizers {
  Tokenizer source, target;
  VocabularySizes sizes() const { return {source.size(), target.size()}; }
};

/// Sentences as they were read, for training and, if there are any, for validation; and tokenizers made from the
/// training sentences.
struct TranslationText {
  SentencePairs train, valid;
  Tokenizers tokenizers;
};

/// Reads the data that the configuration names. With a tokenizer folder, the tokenizers are read from there instead of
/// being made.
TranslationText read_translation_text(const TranslationDataConfig& config, uint64_t seed,
                                      const std::string& tokenizer_folder = "");

/// The share of sentences with punctuation attached to a word, as in text that was never tokenised, and an example of
/// such a word.
struct AttachedPunctuation {
  double share = 0;
  std::string example;
};
AttachedPunctuation attached_punctuation(std::span<const std::string> sentences);

/// The "source" and "target" tokenizers of a run, or those of a pretrained folder.
Tokenizers load_tokenizers(const std::string& folder);
void save_tokenizers(const Tokenizers& tokenizers, const std::string& folder);

}  // namespace qkv
