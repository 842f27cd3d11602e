// Text as Python sees it, for metrics that must agree with sacreBLEU: code points, white space, lower case, categories.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

/// The position of the first byte that is not UTF-8, or nothing.
std::optional<size_t> invalid_utf8(std::string_view text);

/// The code points of a text; invalid UTF-8 is an error.
std::u32string code_points(std::string_view text);
std::string utf8(std::u32string_view text);

/// Whether str.split() and str.strip() treat it as white space.
bool is_space(char32_t c);
/// str.split() without an argument: the words between runs of white space, as views into `text`.
std::vector<std::string_view> split_whitespace(std::string_view text);
/// str.rstrip(), str.strip().
std::string_view right_stripped(std::string_view text);
std::string_view stripped(std::string_view text);

/// str.lower(): full lower-casing, with two code points for U+0130 and final sigma at the end of a word.
std::string full_lower_case(std::string_view text);

/// The general categories P*, S* and N*.
bool is_punctuation(char32_t c);
bool is_symbol(char32_t c);
bool is_number(char32_t c);

}  // namespace qkv
