// The markup inside a paragraph: `code`, **strong** and $formula$.
#pragma once

#include <string>
#include <string_view>

namespace qkv::labs {

/// Splits a paragraph and turns each piece into text with `writer`, which has plain, code, strong and formula.
template <class Writer>
std::string marked_up(std::string_view text, Writer&& writer) {
  std::string out;
  while (!text.empty()) {
    const size_t at = text.find_first_of("`$*");
    const bool strong = at != text.npos && text.substr(at, 2) == "**";
    if (at == text.npos || (text[at] == '*' && !strong)) {
      const size_t count = at == text.npos ? text.size() : at + 1;
      out += writer.plain(text.substr(0, count));
      text.remove_prefix(count);
      continue;
    }
    const std::string_view mark = text.substr(at, strong ? 2 : 1);
    const size_t end = text.find(mark, at + mark.size());
    if (end == text.npos) break;
    out += writer.plain(text.substr(0, at));
    const std::string_view inside = text.substr(at + mark.size(), end - at - mark.size());
    out += strong ? writer.strong(inside) : mark == "`" ? writer.code(inside) : writer.formula(inside);
    text.remove_prefix(end + mark.size());
  }
  return out + writer.plain(text);
}

}  // namespace qkv::labs
