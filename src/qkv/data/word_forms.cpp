// Looking words up in a vocabulary's spelling.
#include "qkv/data/word_forms.h"

#include <utf8proc.h>

#include <algorithm>

#include "qkv/data/normalize.h"
#include "qkv/data/text.h"

namespace qkv {
namespace {

constexpr std::string_view kCurly = "’";

struct Letter {
  utf8proc_int32_t code = 0;
  size_t begin = 0, length = 0;
};

// Calls f for each character of the text; invalid UTF-8 has length 0.
template <class F>
void each_character(std::string_view text, const F& f) {
  for (size_t at = 0; at < text.size();) {
    utf8proc_int32_t code = 0;
    const auto got = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                      static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    const size_t length = got > 0 ? static_cast<size_t>(got) : 1;
    if (!f(Letter{code, at, got > 0 ? length : 0})) return;
    at += length;
  }
}

bool is_capital(utf8proc_int32_t code) {
  const auto category = utf8proc_category(code);
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LT;
}

bool is_letter(utf8proc_int32_t code) {
  const auto category = utf8proc_category(code);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

Letter first_letter(std::string_view text) {
  Letter out;
  each_character(text, [&](const Letter& c) {
    if (c.length > 0 && is_letter(c.code)) out = c;
    return out.length == 0;
  });
  return out;
}

// Punctuation after a word. A full stop or an apostrophe inside a word does not count.
bool ends_in_mark(std::string_view word) {
  for (const std::string_view mark : {".", ",", "!", "?", ";", ":"})
    if (word.size() > mark.size() && word.ends_with(mark)) return !is_mark(word);
  return false;
}

std::string with_plain_apostrophes(std::string text) {
  for (size_t at = text.find(kCurly); at != std::string::npos; at = text.find(kCurly, at + 1))
    text.replace(at, kCurly.size(), "'");
  return text;
}

// Joins pieces that are one word in the vocabulary: "aujourd'" and "hui".
std::vector<std::string> joined_where_known(const std::vector<std::string>& pieces, const Vocabulary& vocabulary) {
  constexpr size_t kMostPieces = 6;  // per word
  std::vector<std::string> out;
  for (size_t begin = 0, end = 0; begin < pieces.size(); begin = end) {
    std::string longest = pieces[begin], word = pieces[begin];
    end = begin + 1;
    for (size_t next = begin + 1; next < std::min(pieces.size(), begin + kMostPieces); ++next) {
      word += pieces[next];
      if (vocabulary.contains(word)) {
        longest = word;
        end = next + 1;
      }
    }
    out.push_back(std::move(longest));
  }
  return out;
}

}  // namespace

WordForms::WordForms(const Vocabulary& vocabulary) {
  bool letters = false, capitals = false, marks = false, attached = false, plain = false, curly = false;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string& word = vocabulary.token(id);
    if (id == vocabulary.unk() || id == vocabulary.pad() || id == vocabulary.bos() || id == vocabulary.eos()) continue;
    each_character(word, [&](const Letter& c) {
      letters = letters || (c.length > 0 && is_letter(c.code));
      capitals = capitals || (c.length > 0 && is_capital(c.code));
      return true;
    });
    marks = marks || word == "." || word == "," || word == "!" || word == "?";
    attached = attached || ends_in_mark(word);
    plain = plain || word.find('\'') != std::string::npos;
    curly = curly || word.find(kCurly) != std::string::npos;
  }
  lower = letters && !capitals;
  apart = marks && !attached;
  plain_apostrophes = plain && !curly;
}

std::vector<std::string> WordForms::words(std::string_view part, const Vocabulary& vocabulary) const {
  if (vocabulary.contains(part)) return {std::string(part)};
  std::string word = composed(part, Normalization::nfc);
  if (lower) word = lowercase(word);
  if (plain_apostrophes) word = with_plain_apostrophes(std::move(word));
  if (!apart || vocabulary.contains(word)) return {std::move(word)};
  return joined_where_known(cut_word(word), vocabulary);
}

std::string with_capital(std::string text) {
  const Letter letter = first_letter(text);
  if (letter.length == 0 || text.starts_with(kUnknown)) return text;
  utf8proc_uint8_t bytes[4];
  const auto size = utf8proc_encode_char(utf8proc_toupper(letter.code), bytes);
  return text.replace(letter.begin, letter.length, reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
}

bool begins_with_capital(std::string_view text) {
  const Letter letter = first_letter(text);
  return letter.length > 0 && is_capital(letter.code);
}

bool is_mark(std::string_view word) {
  bool marks = !word.empty();
  each_character(word, [&](const Letter& c) {
    const auto category = utf8proc_category(c.code);
    marks = c.length > 0 && category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
    return marks;
  });
  return marks;
}

}  // namespace qkv
