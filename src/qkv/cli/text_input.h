// Input files of commands, mostly text.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "qkv/core/language.h"

namespace qkv::cli {

/// "standard input" for "-", else the path.
Text input_name(const std::string& path);

/// The lines of a file, gzipped or not, or of standard input if the path is "-", without white space at their ends. An
/// empty file is an error, and so is a line that is not UTF-8; the error gives its number.
std::vector<std::string> read_text_lines(const std::string& path);

/// The whole text of a file, gzipped or not, or of standard input if the path is "-", with \n as line end.
std::string read_whole_text(const std::string& path);

/// Throws UsageError if the output is one of the input files.
void refuse_overwriting(const std::string& output, std::span<const std::string> inputs);

/// Fails unless both have the same number of lines; the error gives both numbers.
void check_same_lines(const std::string& a, size_t a_lines, const std::string& b, size_t b_lines);

}  // namespace qkv::cli
