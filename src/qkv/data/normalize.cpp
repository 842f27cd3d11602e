// Normal forms over utf8proc, with a fast path for ASCII.
#include "qkv/data/normalize.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "qkv/data/text.h"

namespace qkv {
namespace {

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) >= 0; });
}

bool is_blank(utf8proc_int32_t code) {
  switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return true;
    default:
      return (code >= '\t' && code <= '\r') || code == 0x85;
  }
}

// The text with every Unicode blank as a space; invalid UTF-8 is kept.
std::string with_spaces(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    utf8proc_int32_t code = 0;
    const auto got = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                                      static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    const size_t length = got > 0 ? static_cast<size_t>(got) : 1;
    if (got > 0 && is_blank(code))
      out += ' ';
    else
      out.append(text, at, length);
    at += length;
  }
  return out;
}

}  // namespace

std::string composed(std::string_view text, Normalization form) {
  if (form == Normalization::none || is_ascii(text)) return std::string(text);
  auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  if (form == Normalization::nfkc) options = static_cast<utf8proc_option_t>(options | UTF8PROC_COMPAT);
  utf8proc_uint8_t* bytes = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                 static_cast<utf8proc_ssize_t>(text.size()), &bytes, options);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(bytes, &std::free);
  if (size < 0) return std::string(text);
  return {reinterpret_cast<const char*>(bytes), static_cast<size_t>(size)};
}

NormalizedSentence normalized(std::string_view sentence, Normalization form) {
  NormalizedSentence out;
  const auto is_empty = [](std::string_view text) {
    return with_spaces(text).find_first_not_of(' ') == std::string::npos;
  };
  if (is_empty(sentence)) return out;
  const std::vector<std::string_view> parts = split_blanks(sentence);
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string part =
        form == Normalization::none ? std::string(parts[i]) : with_spaces(composed(parts[i], form));
    for (const std::string_view word : split_blanks(part)) {
      if (!out.text.empty()) out.text += ' ';
      out.text += word;
      out.part_of_word.push_back(static_cast<int32_t>(i));
    }
  }
  return out;
}

}  // namespace qkv
