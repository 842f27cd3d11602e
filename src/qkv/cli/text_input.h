// Text files that commands read.
#pragma once

#include <string>
#include <vector>

namespace qkv::cli {

/// "standard input" for "-", else the path.
std::string input_name(const std::string& path);

/// The lines of a file, gzipped or not, or of standard input when the path is "-", without white space at their ends.
/// An empty file is an error, and so is a line that is not UTF-8, by its number.
std::vector<std::string> read_text_lines(const std::string& path);

/// Fails unless both have the same number of lines, with both numbers.
void check_same_lines(const std::string& a, size_t a_lines, const std::string& b, size_t b_lines);

}  // namespace qkv::cli
