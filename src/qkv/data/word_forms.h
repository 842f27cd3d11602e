// How the words of a vocabulary are written, so that text that people type finds them: "The cat's NOT here." -> the cat
// 's not here .
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "qkv/data/vocabulary.h"

namespace qkv {

/// What the vocabulary says of the text it was counted on.
struct WordForms {
  WordForms() = default;
  explicit WordForms(const Vocabulary& vocabulary);

  bool lower = false;              // it has letters, and none of them is a capital
  bool apart = false;              // "." or another mark is a word, and no word ends in a mark: punctuation was cut off
  bool plain_apostrophes = false;  // it has ' and no ’

  /// The words of what stands between two blanks: itself if the vocabulary has it, else in the vocabulary's forms.
  std::vector<std::string> words(std::string_view part, const Vocabulary& vocabulary) const;
};

/// How a sentence was written: what its translation gets back where the model's own words have neither.
struct Writing {
  bool capital = false;   // it begins with a capital letter
  bool attached = false;  // punctuation stands where people write it, not between blanks
};

/// The text with its first letter in upper case, "<unk>" apart.
std::string with_capital(std::string text);
/// The first letter is one in upper case.
bool begins_with_capital(std::string_view text);
/// Punctuation alone: "." or "...".
bool is_mark(std::string_view word);

}  // namespace qkv
