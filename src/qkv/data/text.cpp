// UTF-8 and lower case over utf8proc, with a fast path for ASCII; the book's preprocessing.
#include "qkv/data/text.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstring>

#include "qkv/core/check.h"

namespace qkv {
namespace {

constexpr uint64_t kHighBits = 0x8080808080808080;

// Index of the first byte at or after `at` that is not ASCII, or the size.
size_t skip_ascii(std::string_view text, size_t at) {
  for (uint64_t word; at + 8 <= text.size(); at += 8) {
    std::memcpy(&word, text.data() + at, 8);
    if (word & kHighBits) break;
  }
  while (at < text.size() && static_cast<signed char>(text[at]) >= 0) ++at;
  return at;
}

// The character at `at` and its length in bytes; length 0 if it is not UTF-8.
struct Character {
  utf8proc_int32_t code;
  size_t length;
};

Character character_at(std::string_view text, size_t at) {
  utf8proc_int32_t code = 0;
  const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                       static_cast<utf8proc_ssize_t>(text.size() - at), &code);
  return {code, length > 0 ? static_cast<size_t>(length) : 0};
}

void append_lower(std::string& out, std::string_view text, size_t& at) {
  const unsigned char first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) {
    out += static_cast<char>(first >= 'A' && first <= 'Z' ? first + 32 : first);
    ++at;
    return;
  }
  const Character c = character_at(text, at);
  const utf8proc_int32_t lower = c.length ? utf8proc_tolower(c.code) : 0;
  if (c.length == 0 || lower == c.code) {
    out.append(text, at, std::max<size_t>(c.length, 1));
  } else {
    utf8proc_uint8_t bytes[4];
    out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(utf8proc_encode_char(lower, bytes)));
  }
  at += std::max<size_t>(c.length, 1);
}

}  // namespace

size_t find_invalid_utf8(std::string_view text) {
  for (size_t at = skip_ascii(text, 0); at < text.size(); at = skip_ascii(text, at)) {
    const Character c = character_at(text, at);
    if (c.length == 0) return at;
    at += c.length;
  }
  return std::string_view::npos;
}

void check_utf8(std::string_view text, const Text& name) {
  const size_t at = find_invalid_utf8(text);
  if (at == std::string_view::npos) return;
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  const unsigned char byte = static_cast<unsigned char>(text[at]);
  refuse("{name}: line {line}: not UTF-8: byte 0x{byte:02x} at offset {at}", "name"_a = name, "line"_a = line,
         "byte"_a = byte, "at"_a = at);
}

std::string printable(std::string_view text) {
  std::string out;
  size_t invalid = find_invalid_utf8(text);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte != 0x7f && i != invalid) {
      out += text[i];
      continue;
    }
    constexpr const char* kDigits = "0123456789abcdef";
    out += {'\\', 'x', kDigits[byte / 16], kDigits[byte % 16]};
    if (i != invalid) continue;
    const size_t next = find_invalid_utf8(text.substr(i + 1));
    invalid = next == std::string_view::npos ? next : i + 1 + next;
  }
  return out;
}

std::string lowercase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) append_lower(out, text, at);
  return out;
}

std::string preprocess_nmt(std::string_view text) {
  const auto is_sign = [](char c) { return c == ',' || c == '.' || c == '!' || c == '?'; };
  std::string out;
  out.reserve(text.size() + text.size() / 16);
  for (size_t at = 0; at < text.size();) {
    size_t end = at;  // end of a run that only lower-casing can change
    while (end < text.size() && static_cast<signed char>(text[end]) >= 0 && !is_sign(text[end])) ++end;
    if (end > at) {
      const size_t from = out.size();
      out.append(text, at, end - at);
      for (size_t i = from; i < out.size(); ++i)
        out[i] = static_cast<char>(out[i] >= 'A' && out[i] <= 'Z' ? out[i] + 32 : out[i]);
      at = end;
      continue;
    }
    const char c = text[at];
    if (is_sign(c)) {
      if (at > 0 && out.back() != ' ') out += ' ';
      out += c;
      ++at;
    } else if (text.compare(at, 2, "\xC2\xA0") == 0) {
      out += ' ';
      at += 2;
    } else if (text.compare(at, 3, "\xE2\x80\xAF") == 0) {
      out += ' ';
      at += 3;
    } else {
      append_lower(out, text, at);
    }
  }
  return out;
}

std::vector<std::string_view> split_spaces(std::string_view text) {
  std::vector<std::string_view> out;
  for (size_t at = 0;;) {
    const size_t space = std::min(text.find(' ', at), text.size());
    out.push_back(text.substr(at, space - at));
    if (space == text.size()) return out;
    at = space + 1;
  }
}

std::vector<std::string_view> split_blanks(std::string_view text) {
  std::vector<std::string_view> out;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = std::min(text.find_first_not_of(" \t", at), text.size());
    const size_t end = std::min(text.find_first_of(" \t", begin), text.size());
    if (end > begin) out.push_back(text.substr(begin, end - begin));
    at = end;
  }
  return out;
}

std::string unicode_library() { return std::string("utf8proc ") + utf8proc_version(); }

}  // namespace qkv
