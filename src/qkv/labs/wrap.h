// Text broken into lines for a terminal, by the columns that characters take there: two for wide characters, none for
// escape codes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qkv::labs {

/// Columns that the text takes; escape codes that set colours take none.
int columns_of(std::string_view utf8);

/// The lines of a text, none wider than `columns` (at least 1): broken at spaces, between wide characters (never before
/// a closing mark or after an opening one), and within a word only when it is wider than a line. Line breaks of the
/// text are kept.
std::vector<std::string> wrapped_lines(std::string_view utf8, int columns);

/// The same as one text, with lines after the first indented by `indent` blanks. The first line is assumed to begin at
/// column 0.
std::string wrapped(std::string_view utf8, int columns, int indent = 0);

}  // namespace qkv::labs
