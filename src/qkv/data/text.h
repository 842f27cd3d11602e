// Text: UTF-8 checks, Unicode lower case, and the rules that cut a sentence into words.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/language.h"

namespace QKV_API qkv {

/// The position of the first byte that is not part of a UTF-8 character, or npos.
size_t find_invalid_utf8(std::string_view text);
/// Fails if the text is not UTF-8; the error has the name, the line (counted from 1) and the byte offset.
void check_utf8(std::string_view text, const Text& name);

/// Control characters and invalid UTF-8 as \xNN, so that names from files stay on one line and cannot control the
/// terminal.
std::string printable(std::string_view text);

/// Every character in lower case by Unicode's one-to-one mapping: "Ça" -> "ça", "ŒUF" -> "œuf". Invalid UTF-8 is kept.
std::string lowercase(std::string_view text);

/// The book's preprocess_nmt: U+202F and U+00A0 become spaces, everything is lower-cased, and each , . ! ? not preceded
/// by a space gets a space before it, also after a tab or a line end; the first character of the text never does.
std::string preprocess_nmt(std::string_view text);

/// Cut at every single space, so that two in a row give an empty word, as does "" (the Chinese edition).
std::vector<std::string_view> split_spaces(std::string_view text);
/// The parts between spaces and tabs, none of them empty.
std::vector<std::string_view> split_blanks(std::string_view text);

/// How a sentence is cut into words.
enum class WordRule {
  book,    // preprocess_nmt, then between blanks: "Don't go!" -> don't go !
  spaces,  // between blanks, unchanged
  lower,   // the same in lower case
  words,   // lower case; letters and digits apart from punctuation: "L'homme (20%)." -> l' homme ( 20 % ) .
};
constexpr std::array<std::string_view, 4> names(WordRule) { return {"book", "spaces", "lower", "words"}; }

/// A word of a sentence, and the index of the blank-separated part it comes from.
struct Word {
  std::string text;
  int32_t part = 0;
};

/// The words of a sentence. None is empty.
std::vector<Word> split_words(std::string_view sentence, WordRule rule);
/// The words and signs of a text without blanks, cut like WordRule::words but not lower-cased.
std::vector<std::string> cut_word(std::string_view part);
/// Joins words into a sentence: with spaces, or for WordRule::words as people write them.
std::string join_words(const std::vector<std::string>& words, WordRule rule);

/// How a language spaces its punctuation: French has a narrow blank (U+202F) before ? ! ; and :, and inside « ».
enum class Spacing { english, french };
/// Joins words into a sentence with normal punctuation: "l' eau est ici ." -> "l'eau est ici."
std::string join_as_written(const std::vector<std::string>& words, Spacing spacing);

/// "utf8proc 2.8.0".
std::string unicode_library();

}  // namespace qkv
