// How the words of a vocabulary are spelled, so that text as people type it is found: "The cat's NOT here." -> the cat
// 's not here .
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/data/vocabulary.h"

namespace QKV_API qkv {

/// What the vocabulary tells about the text it was built from.
struct WordForms {
  WordForms() = default;
  explicit WordForms(const Vocabulary& vocabulary);

  bool lower = false;              // it has letters, and no capitals
  bool apart = false;              // "." or another mark is a word, and no word ends in one: punctuation was separated
  bool plain_apostrophes = false;  // it has ' and no ’

  /// The words of a text without blanks: the text itself if the vocabulary has it, else words in the vocabulary's
  /// spelling.
  std::vector<std::string> words(std::string_view part, const Vocabulary& vocabulary) const;
};

/// How a sentence was written, so that its translation can be written the same way.
struct Writing {
  bool capital = false;   // it begins with a capital letter
  bool attached = false;  // punctuation is attached to words, not between blanks
};

/// The text with its first letter in upper case, except "<unk>".
std::string with_capital(std::string text);
/// Whether the first letter is upper case.
bool begins_with_capital(std::string_view text);
/// Whether it is only punctuation: "." or "...".
bool is_mark(std::string_view word);

}  // namespace qkv
