// The rules of the tokenisers. Each rule is one pass that, like a regular expression's substitution, never reads a
// character twice.
#include "qkv/eval/bleu_tokenizers.h"

#include <algorithm>
#include <array>

#include "qkv/eval/unicode.h"

namespace qkv {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_stop(char c) { return c == '.' || c == ','; }

// ASCII punctuation and symbols except ' , - . (which have their own rules or none).
bool stands_alone(char c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') ||
         (c >= ':' && c <= '@') || c == '/';
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  size_t at = text.find(from);
  if (at == std::string::npos) return;
  std::string out;
  size_t begin = 0;
  for (; at != std::string::npos; at = text.find(from, begin)) {
    out.append(text, begin, at - begin).append(to);
    begin = at + from.size();
  }
  text = out.append(text, begin, std::string::npos);
}

std::string single_spaced(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::string_view word : split_whitespace(text)) {
    if (!out.empty()) out += ' ';
    out += word;
  }
  return out;
}

// Replaces matching pairs of neighbours by the output of `put`; reading continues after the pair.
template <class Matches, class Put, class Char>
std::basic_string<Char> replaced_pairs(std::basic_string_view<Char> text, const Matches& matches, const Put& put) {
  std::basic_string<Char> out;
  out.reserve(text.size() + text.size() / 4 + 8);
  size_t at = 0;
  while (at < text.size()) {
    if (at + 1 < text.size() && matches(text[at], text[at + 1])) {
      put(out, text[at], text[at + 1]);
      at += 2;
    } else {
      out += text[at++];
    }
  }
  return out;
}

template <class Char>
void put_apart_second(std::basic_string<Char>& out, Char a, Char b) {  // "ab" -> "a b "
  for (Char c : {a, Char{' '}, b, Char{' '}}) out += c;
}

template <class Char>
void put_apart_first(std::basic_string<Char>& out, Char a, Char b) {  // "ab" -> " a b"
  for (Char c : {Char{' '}, a, Char{' '}, b}) out += c;
}

// The part of mteval-v13a for Western languages. All its characters are ASCII, so it works on bytes.
std::string western(std::string_view line) {
  std::string text;
  text.reserve(2 * line.size());
  for (char c : line) {
    if (!stands_alone(c))
      text += c;
    else
      text.append({' ', c, ' '});
  }
  using View = std::string_view;
  text = replaced_pairs(
      View(text), [](char a, char b) { return !is_digit(a) && is_stop(b); }, put_apart_second<char>);
  text = replaced_pairs(
      View(text), [](char a, char b) { return is_stop(a) && !is_digit(b); }, put_apart_first<char>);
  text = replaced_pairs(
      View(text), [](char a, char b) { return is_digit(a) && b == '-'; }, put_apart_second<char>);
  return single_spaced(text);
}

std::string mteval_13a(std::string_view line) {
  std::string text(line);
  replace_all(text, "<skipped>", "");
  replace_all(text, "-\n", "");
  replace_all(text, "\n", " ");
  if (text.find('&') != std::string::npos) {
    replace_all(text, "&quot;", "\"");
    replace_all(text, "&amp;", "&");
    replace_all(text, "&lt;", "<");
    replace_all(text, "&gt;", ">");
  }
  return western(" " + text + " ");
}

std::string characters(std::string_view line) {
  std::u32string out;
  for (char32_t c : code_points(line)) {
    if (!out.empty()) out += U' ';
    out += c;
  }
  return utf8(out);
}

std::string international(std::string_view line) {
  using View = std::u32string_view;
  std::u32string text = code_points(line);
  text = replaced_pairs(
      View(text), [](char32_t a, char32_t b) { return !is_number(a) && is_punctuation(b); },
      put_apart_second<char32_t>);
  text = replaced_pairs(
      View(text), [](char32_t a, char32_t b) { return is_punctuation(a) && !is_number(b); }, put_apart_first<char32_t>);
  std::u32string out;
  for (char32_t c : text) {
    if (is_symbol(c))
      out.append({U' ', c, U' '});
    else
      out += c;
  }
  return single_spaced(utf8(out));
}

// The ranges that sacreBLEU actually tests. Two of its entries, meant for planes above the first, are strings of two
// characters in Python and cover 2001-2A6D and 2F81-2FA1 instead; ideographs above the first plane are therefore not
// set apart.
bool is_chinese(char32_t c) {
  constexpr std::array<std::array<char32_t, 2>, 18> ranges = {{{0x3400, 0x4DB5},
                                                               {0x4E00, 0x9FBB},
                                                               {0xF900, 0xFA2D},
                                                               {0xFA30, 0xFA6A},
                                                               {0xFA70, 0xFAD9},
                                                               {0x2001, 0x2A6D},
                                                               {0xFF00, 0xFFEF},
                                                               {0x2E80, 0x2EFF},
                                                               {0x3000, 0x303F},
                                                               {0x31C0, 0x31EF},
                                                               {0x2F00, 0x2FDF},
                                                               {0x2FF0, 0x2FFF},
                                                               {0x3100, 0x312F},
                                                               {0x31A0, 0x31BF},
                                                               {0xFE10, 0xFE1F},
                                                               {0xFE30, 0xFE4F},
                                                               {0x3200, 0x32FF},
                                                               {0x3300, 0x33FF}}};
  return std::any_of(ranges.begin(), ranges.end(), [c](const auto& range) { return c >= range[0] && c <= range[1]; });
}

std::string chinese(std::string_view line) {
  std::u32string out;
  for (char32_t c : code_points(stripped(line))) {
    if (is_chinese(c))
      out.append({U' ', c, U' '});
    else
      out += c;
  }
  return western(utf8(out));
}

}  // namespace

std::string tokenized(std::string_view line, BleuTokenizer tokenizer) {
  switch (tokenizer) {
    case BleuTokenizer::v13a:
      return mteval_13a(line);
    case BleuTokenizer::chars:
      return characters(line);
    case BleuTokenizer::intl:
      return international(line);
    case BleuTokenizer::zh:
      return chinese(line);
    case BleuTokenizer::none:
      break;
  }
  return std::string(line);
}

}  // namespace qkv
