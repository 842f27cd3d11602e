// Cutting sentences into words and joining them again, by rule.
#include <utf8proc.h>

#include <utility>

#include "qkv/data/text.h"

namespace qkv {
namespace {

enum class Kind { letter, digit, blank, other };

Kind kind_of(utf8proc_int32_t code) {
  switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return Kind::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return Kind::digit;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_CC:
      return Kind::blank;
    default:
      return Kind::other;
  }
}

struct Character {
  utf8proc_int32_t code;
  Kind kind;
  size_t begin, length;  // bytes
};

std::vector<Character> characters(std::string_view text) {
  std::vector<Character> out;
  for (size_t at = 0; at < text.size();) {
    utf8proc_int32_t code = 0;
    const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                         static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    if (length > 0)
      out.push_back({code, kind_of(code), at, static_cast<size_t>(length)});
    else
      out.push_back({0xFFFD, Kind::other, at, 1});  // invalid UTF-8 is a sign on its own
    at += out.back().length;
  }
  return out;
}

bool is_apostrophe(utf8proc_int32_t code) { return code == '\'' || code == 0x2019; }
bool is_hyphen(utf8proc_int32_t code) { return code == '-' || code == 0x2010 || code == 0x2011; }
bool in_word(Kind kind) { return kind == Kind::letter || kind == Kind::digit; }

// Cuts a text without blanks at the boundaries of words and signs.
class WordCutter {
 public:
  WordCutter(std::string_view text, int32_t part, std::vector<Word>& out)
      : text_(text), part_(part), out_(out), c_(characters(text)) {}

  void cut() {
    for (size_t i = 0; i < c_.size();) {
      if (c_[i].kind == Kind::blank) {
        ++i;
      } else if (!in_word(c_[i].kind) && !starts_ending(i)) {
        size_t end = i + 1;  // "..." and "--" are one sign
        while (end < c_.size() && c_[end].code == c_[i].code) ++end;
        emit(i, end);
        i = end;
      } else {
        const size_t end = word_end(i);
        emit(i, end);
        i = end;
      }
    }
  }

 private:
  void emit(size_t begin, size_t end) {
    const size_t from = c_[begin].begin, to = c_[end - 1].begin + c_[end - 1].length;
    out_.push_back({std::string(text_.substr(from, to - from)), part_});
  }

  bool between(size_t i, Kind kind) const {
    return i > 0 && i + 1 < c_.size() && c_[i - 1].kind == kind && c_[i + 1].kind == kind;
  }

  // An apostrophe that begins an English ending: 's 't 're 've 'll 'd 'm and then the end of the word.
  bool starts_ending(size_t i) const {
    if (!is_apostrophe(c_[i].code) || !between(i, Kind::letter)) return false;
    size_t end = i + 1;
    while (end < c_.size() && in_word(c_[end].kind)) ++end;
    const size_t from = c_[i + 1].begin, to = c_[end - 1].begin + c_[end - 1].length;
    const std::string_view ending = text_.substr(from, to - from);
    for (const std::string_view known : {"s", "t", "re", "ve", "ll", "d", "m"})
      if (ending == known) return true;
    return false;
  }

  // The end of the word that begins at i: hyphens, and points and commas between digits, stay inside; an apostrophe
  // ends the first half.
  size_t word_end(size_t i) const {
    for (++i; i < c_.size(); ++i) {
      if (in_word(c_[i].kind)) continue;
      const bool joins = i + 1 < c_.size() && in_word(c_[i - 1].kind) && in_word(c_[i + 1].kind);
      if (is_hyphen(c_[i].code) && joins) continue;
      if ((c_[i].code == '.' || c_[i].code == ',') && between(i, Kind::digit)) continue;
      if (is_apostrophe(c_[i].code) && between(i, Kind::letter) && !starts_ending(i)) return i + 1;
      return i;
    }
    return i;
  }

  std::string_view text_;
  int32_t part_;
  std::vector<Word>& out_;
  std::vector<Character> c_;
};

constexpr uint8_t kApart = 0, kLeft = 1, kRight = 2;  // attached to the neighbour on that side

// How signs attach to words; keeps track of open quotation marks.
class Glue {
 public:
  uint8_t of(std::string_view word) {
    const auto starts = [&](std::string_view sign) { return word.starts_with(sign); };
    const bool apostrophe = starts("'") || starts("’");
    if (apostrophe) return kLeft;
    if (word.ends_with("'") || word.ends_with("’")) return kRight;
    if (word == "\"") return (quote_open_ = !quote_open_) ? kRight : kLeft;
    if (word == "„") {
      low_open_ = true;
      return kRight;
    }
    if (word == "“") return std::exchange(low_open_, false) ? kLeft : kRight;
    for (const std::string_view sign : {".", ",", "!", "?", ";", ":", ")", "]", "}", "%", "…", "”", "°"})
      if (starts(sign)) return kLeft;
    for (const std::string_view sign : {"(", "[", "{", "¿", "¡", "$", "£", "#"})
      if (starts(sign)) return kRight;
    return word == "/" ? kLeft | kRight : kApart;
  }

 private:
  bool quote_open_ = false, low_open_ = false;
};

}  // namespace

std::vector<Word> split_words(std::string_view sentence, WordRule rule) {
  std::vector<Word> out;
  const std::string lower = rule == WordRule::lower || rule == WordRule::words ? lowercase(sentence) : std::string();
  const std::vector<std::string_view> parts = split_blanks(lower.empty() ? sentence : std::string_view(lower));
  for (size_t i = 0; i < parts.size(); ++i) {
    const int32_t part = static_cast<int32_t>(i);
    if (rule == WordRule::words) {
      WordCutter(parts[i], part, out).cut();
    } else if (rule == WordRule::book) {
      const std::string prepared = preprocess_nmt(parts[i]);
      for (const std::string_view word : split_blanks(prepared)) out.push_back({std::string(word), part});
    } else {
      out.push_back({std::string(parts[i]), part});
    }
  }
  return out;
}

std::vector<std::string> cut_word(std::string_view part) {
  std::vector<Word> words;
  WordCutter(part, 0, words).cut();
  std::vector<std::string> out;
  for (Word& word : words) out.push_back(std::move(word.text));
  return out;
}

std::string join_as_written(const std::vector<std::string>& words, Spacing spacing) {
  constexpr std::string_view kNarrowBlank = "\xE2\x80\xAF";
  const auto has_blank_before = [&](std::string_view word) {
    return spacing == Spacing::french && (word == "?" || word == "!" || word == ";" || word == ":" || word == "»");
  };
  std::string out;
  Glue glue;
  bool tight = true;  // no space before the first word
  for (const std::string& word : words) {
    const bool opens = spacing == Spacing::french && word == "«";
    const uint8_t sides = glue.of(word);
    if (!tight && has_blank_before(word))
      out += kNarrowBlank;
    else if (!tight && !(sides & kLeft))
      out += ' ';
    out += word;
    if (opens) out += kNarrowBlank;
    tight = opens || sides & kRight;
  }
  return out;
}

std::string join_words(const std::vector<std::string>& words, WordRule rule) {
  if (rule == WordRule::words) return join_as_written(words, Spacing::english);
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

}  // namespace qkv
