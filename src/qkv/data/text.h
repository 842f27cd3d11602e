// Text: UTF-8 that is checked, Unicode lower case, and the ways to cut a sentence into words.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

/// Where the first byte stands that is no part of a UTF-8 character, or npos.
size_t find_invalid_utf8(std::string_view text);
/// Fails with the name, the line (counted from 1) and the byte offset of what is not UTF-8.
void check_utf8(std::string_view text, const std::string& name);

/// Control characters, and bytes that are not UTF-8, as \xNN, so that names from files stay on their line and cannot
/// steer a terminal.
std::string printable(std::string_view text);

/// Every character in lower case by Unicode's one-to-one mapping: "Ça" -> "ça", "ŒUF" -> "œuf". What is not UTF-8 stays
/// as it is.
std::string lowercase(std::string_view text);

/// The book's preprocess_nmt: U+202F and U+00A0 become spaces, all is lower-cased, and each of , . ! ? that stands
/// behind anything but a space gets a space in front. A tab or a line end counts as anything; the first character of
/// the text never gets one.
std::string preprocess_nmt(std::string_view text);

/// Cut at every single space, so that two in a row give an empty word and "" gives one (the Chinese edition).
std::vector<std::string_view> split_spaces(std::string_view text);
/// The parts between spaces and tabs, none of them empty.
std::vector<std::string_view> split_blanks(std::string_view text);

/// What a word is.
enum class WordRule {
  book,    // preprocess_nmt, then between blanks: "Don't go!" -> don't go !
  spaces,  // between blanks, as it stands
  lower,   // the same in lower case
  words,   // lower case; letters and digits apart from punctuation: "L'homme (20%)." -> l' homme ( 20 % ) .
};
constexpr std::array<std::string_view, 4> names(WordRule) { return {"book", "spaces", "lower", "words"}; }

/// A word of a sentence, and which of its parts between blanks it comes from, counted from 0.
struct Word {
  std::string text;
  int32_t part = 0;
};

/// The words of a sentence. None is empty.
std::vector<Word> split_words(std::string_view sentence, WordRule rule);
/// The words and signs of what stands between two blanks, as WordRule::words cuts them but in the case they have.
std::vector<std::string> cut_word(std::string_view part);
/// A sentence of words: joined by spaces; for WordRule::words as they are written.
std::string join_words(const std::vector<std::string>& words, WordRule rule);

/// Where a language has its punctuation: French writes a narrow blank (U+202F) before ? ! ; and :, and inside « ».
enum class Spacing { english, french };
/// A sentence of words with its punctuation where it is written: "l' eau est ici ." -> "l'eau est ici."
std::string join_as_written(const std::vector<std::string>& words, Spacing spacing);

/// "utf8proc 2.8.0".
std::string unicode_library();

}  // namespace qkv
