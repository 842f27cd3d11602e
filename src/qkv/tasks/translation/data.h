// From the data block of a configuration to sentences, tokenizers and pairs of ids.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "qkv/data/corpus.h"
#include "qkv/data/tokenizer.h"
#include "qkv/data/translation.h"
#include "qkv/tasks/translation/config.h"

namespace qkv {

struct Tokenizers {
  Tokenizer source, target;
  VocabularySizes sizes() const { return {source.size(), target.size()}; }
};

/// Sentences as they were read, for training and, where there are any, for validation; and tokenizers of the training
/// side.
struct TranslationText {
  SentencePairs train, valid;
  Tokenizers tokenizers;
};

/// Reads what the configuration names. A model folder has its tokenizers: given one, they are read from there instead
/// of being made.
TranslationText read_translation_text(const TranslationDataConfig& config, uint64_t seed,
                                      const std::string& tokenizer_folder = "");

/// How many of the sentences have a word with punctuation right behind it, as text has that was never cut into tokens,
/// and such a word.
struct AttachedPunctuation {
  double share = 0;
  std::string example;
};
AttachedPunctuation attached_punctuation(std::span<const std::string> sentences);

/// Of a model folder: "source" and "target".
Tokenizers load_tokenizers(const std::string& folder);
void save_tokenizers(const Tokenizers& tokenizers, const std::string& folder);

}  // namespace qkv
