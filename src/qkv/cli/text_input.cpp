// Text files that commands read.
#include "qkv/cli/text_input.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>

#include "qkv/cli/command.h"
#include "qkv/core/check.h"
#include "qkv/data/corpus.h"
#include "qkv/data/text.h"
#include "qkv/eval/unicode.h"

namespace qkv::cli {
namespace {

// Standard input as read_lines reads a file.
std::vector<std::string> standard_input_lines() {
  std::string bytes;
  std::array<char, 1 << 16> part{};
  while (const size_t got = std::fread(part.data(), 1, part.size(), stdin)) bytes.append(part.data(), got);
  check(std::ferror(stdin) == 0, "cannot read standard input");
  check_utf8(bytes, "standard input");
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.erase(0, 3);
  check(!bytes.empty(), "standard input: is empty, expected text");
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = std::min(bytes.find('\n', begin), bytes.size());
    lines.push_back(bytes.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace

std::string input_name(const std::string& path) { return path == "-" ? "standard input" : path; }

std::vector<std::string> read_text_lines(const std::string& path) {
  std::vector<std::string> lines = path == "-" ? standard_input_lines() : read_lines(path);
  for (std::string& line : lines) line.resize(right_stripped(line).size());
  return lines;
}

void refuse_overwriting(const std::string& output, std::span<const std::string> inputs) {
  for (const std::string& input : inputs) {
    std::error_code ignored;  // of one that does not exist
    if (std::filesystem::equivalent(output, input, ignored))
      throw UsageError(text(output, ": is read by this command, and cannot be its output too"));
  }
}

void check_same_lines(const std::string& a, size_t a_lines, const std::string& b, size_t b_lines) {
  check(a_lines == b_lines, input_name(a), " has ", a_lines, " lines and ", input_name(b), " ", b_lines,
        ", expected as many");
}

}  // namespace qkv::cli
