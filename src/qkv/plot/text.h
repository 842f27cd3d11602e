// Text for figures: code points, widths on a page and in a terminal, escaping.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qkv::plotting {

/// The code points of UTF-8 text; invalid bytes and control characters become U+FFFD.
std::vector<char32_t> code_points(std::string_view utf8);
void append_utf8(std::string& out, char32_t point);

/// Columns in a terminal: 0 for combining marks, 2 for Chinese, Japanese, Korean and other wide characters, else 1.
int display_width(char32_t point);
int display_width(std::string_view utf8);

/// A generous estimate of the width of sans-serif text at a font size, in pixels.
double text_width(std::string_view utf8, double font_size);

/// The text cut to a width, with "…" at its end if anything was cut.
std::string shortened(std::string_view utf8, double font_size, double width);

/// The text with a true minus sign instead of a hyphen before every number: "y = -1" becomes "y = −1", "x-2" and
/// "t-test" stay.
std::string with_minus_signs(std::string_view utf8);

/// The text as valid UTF-8, escaped for XML text and quoted attributes.
std::string xml_escaped(std::string_view utf8);

/// A number for an attribute: two decimals at most, no trailing zeros, never "-0".
std::string svg_number(double value);

}  // namespace qkv::plotting
