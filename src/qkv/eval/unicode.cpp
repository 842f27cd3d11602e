// Unicode over utf8proc, with what Python adds to it.
#include "qkv/eval/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "qkv/core/check.h"

namespace qkv {
namespace {

const utf8proc_uint8_t* bytes(std::string_view text) { return reinterpret_cast<const utf8proc_uint8_t*>(text.data()); }

bool is_ascii(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
}

void append(std::string& out, char32_t c) {
  std::array<utf8proc_uint8_t, 4> code{};
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), code.data());
  out.append(reinterpret_cast<const char*>(code.data()), static_cast<size_t>(length));
}

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

// The bytes of the white space character that begins at `at`, or 0.
size_t space_length(std::string_view text, size_t at) {
  const auto c = static_cast<unsigned char>(text[at]);
  if (c < 0x80) return is_space(c) ? 1 : 0;
  if (c != 0xC2 && c != 0xE1 && c != 0xE2 && c != 0xE3) return 0;  // no other byte begins white space
  utf8proc_int32_t code = 0;
  const auto length = utf8proc_iterate(bytes(text) + at, static_cast<utf8proc_ssize_t>(text.size() - at), &code);
  return length > 0 && is_space(static_cast<char32_t>(code)) ? static_cast<size_t>(length) : 0;
}

// Letters with case, for the rule of the final sigma (Unicode's Cased, except for case-ignorable characters).
bool is_cased(char32_t c) {
  const auto kind = category(c);
  if (kind == UTF8PROC_CATEGORY_LU || kind == UTF8PROC_CATEGORY_LL || kind == UTF8PROC_CATEGORY_LT) return true;
  return c == 0xAA || c == 0xBA || (c >= 0x2160 && c <= 0x217F) || (c >= 0x24B6 && c <= 0x24E9) ||
         (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

// Unicode's Case_Ignorable: marks, formats, modifiers, and punctuation that occurs inside words.
bool is_case_ignorable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      break;
  }
  constexpr std::u32string_view inside_words =
      U"'.:\u00B7\u0387\u055F\u05F4\u2018\u2019\u2024\u2027\uFE13\uFE52\uFE55\uFF07\uFF0E\uFF1A";
  return inside_words.find(c) != std::u32string_view::npos;
}

// A sigma after a cased letter and not before one, skipping ignorable characters.
bool is_final_sigma(std::u32string_view text, size_t at) {
  size_t before = at;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  size_t after = at + 1;
  while (after < text.size() && is_case_ignorable(text[after])) ++after;
  return after == text.size() || !is_cased(text[after]);
}

}  // namespace

std::optional<size_t> invalid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    utf8proc_int32_t code = 0;
    const auto length = utf8proc_iterate(bytes(text) + at, static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    if (length <= 0) return at;
    at += static_cast<size_t>(length);
  }
  return std::nullopt;
}

std::u32string code_points(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    utf8proc_int32_t code = 0;
    const auto length = utf8proc_iterate(bytes(text) + at, static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    require(length > 0, "invalid UTF-8 at byte {at} of a line of {size} bytes", "at"_a = at + 1,
            "size"_a = text.size());
    out += static_cast<char32_t>(code);
    at += static_cast<size_t>(length);
  }
  return out;
}

std::string utf8(std::u32string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char32_t c : text) {
    if (c < 0x80)
      out += static_cast<char>(c);
    else
      append(out, c);
  }
  return out;
}

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

std::vector<std::string_view> split_whitespace(std::string_view text) {
  std::vector<std::string_view> words;
  size_t begin = 0, at = 0;
  while (at < text.size()) {
    const size_t space = space_length(text, at);
    if (space == 0) {
      ++at;
      continue;
    }
    if (at > begin) words.push_back(text.substr(begin, at - begin));
    begin = at += space;
  }
  if (at > begin) words.push_back(text.substr(begin));
  return words;
}

std::string_view right_stripped(std::string_view text) {
  while (!text.empty()) {
    size_t at = text.size() - 1;
    while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    if (space_length(text, at) != text.size() - at) break;
    text = text.substr(0, at);
  }
  return text;
}

std::string_view stripped(std::string_view text) {
  text = right_stripped(text);
  while (!text.empty()) {
    const size_t space = space_length(text, 0);
    if (space == 0) break;
    text.remove_prefix(space);
  }
  return text;
}

std::string full_lower_case(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  if (is_ascii(text)) {
    for (char c : text) out += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    return out;
  }
  const std::u32string from = code_points(text);
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == 0x130)
      out += "i\xCC\x87";
    else if (from[i] == 0x3A3)
      append(out, is_final_sigma(from, i) ? 0x3C2 : 0x3C3);
    else
      append(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(from[i]))));
  }
  return out;
}

bool is_punctuation(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

bool is_symbol(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_SM && kind <= UTF8PROC_CATEGORY_SO;
}

bool is_number(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO;
}

}  // namespace qkv
