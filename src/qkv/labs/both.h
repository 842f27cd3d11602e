// One list of values in the words of both languages.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "qkv/core/language.h"

namespace qkv::labs {

/// What fills a field of a text, of the type that decides how it is written.
using Field = std::variant<int64_t, float, double, std::string>;

inline Field field(float value) { return value; }
inline Field field(double value) { return value; }
inline Field field(std::string_view value) { return std::string(value); }
inline Field field(std::integral auto value) { return static_cast<int64_t>(value); }

/// A text with fields for N values, as fmt writes them: "{}", "{:.2f}", or with their numbers, "{1}". More fields do
/// not compile.
template <size_t N>
struct Pattern {
  std::string_view text;
  consteval Pattern(const char* literal) : text(literal) {
    size_t fields = 0;
    for (size_t i = 0; i < text.size(); ++i)
      if (text[i] == '{') text[i + 1] == '{' ? ++i : ++fields;
    if (fields > N) throw "more fields than values";
  }
};

Text filled(std::string_view en, std::string_view zh, const std::vector<Field>& values);

/// both("{} of {}", "{1} 中的 {0}", 3, 4) is {"3 of 4", "4 中的 3"}.
template <class... Values>
Text both(Pattern<sizeof...(Values)> en, Pattern<sizeof...(Values)> zh, const Values&... values) {
  return filled(en.text, zh.text, {field(values)...});
}

}  // namespace qkv::labs
