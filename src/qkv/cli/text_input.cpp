// Reads the text files of commands.
#include "qkv/cli/text_input.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>

#include "qkv/cli/command.h"
#include "qkv/core/check.h"
#include "qkv/core/counts.h"
#include "qkv/data/corpus.h"
#include "qkv/data/text.h"
#include "qkv/eval/unicode.h"

namespace qkv::cli {
namespace {

// Reads standard input as read_text reads a file.
std::string standard_input() {
  std::string bytes;
  std::array<char, 1 << 16> part{};
  while (const size_t got = std::fread(part.data(), 1, part.size(), stdin)) bytes.append(part.data(), got);
  require(std::ferror(stdin) == 0, "cannot read standard input");
  check_utf8(bytes, input_name("-"));
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.erase(0, 3);
  require(!bytes.empty(), "standard input: is empty, expected text");
  return bytes;
}

std::vector<std::string> standard_input_lines() {
  const std::string bytes = standard_input();
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = std::min(bytes.find('\n', begin), bytes.size());
    lines.push_back(bytes.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace

Text input_name(const std::string& path) { return path == "-" ? tr("standard input") : verbatim(path); }

std::vector<std::string> read_text_lines(const std::string& path) {
  std::vector<std::string> lines = path == "-" ? standard_input_lines() : read_lines(path);
  for (std::string& line : lines) line.resize(right_stripped(line).size());
  return lines;
}

std::string read_whole_text(const std::string& path) {
  if (path != "-") return read_text(path);
  const std::string bytes = standard_input();
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] != '\r' || i + 1 == bytes.size() || bytes[i + 1] != '\n') text += bytes[i];
  return text;
}

void refuse_overwriting(const std::string& output, std::span<const std::string> inputs) {
  for (const std::string& input : inputs) {
    std::error_code ignored;  // the output may not exist
    if (std::filesystem::equivalent(output, input, ignored))
      throw UsageError(tr("{output}: is an input of this command and cannot also be its output", "output"_a = output));
  }
}

void check_same_lines(const std::string& a, size_t a_lines, const std::string& b, size_t b_lines) {
  require(a_lines == b_lines, "{a} has {a_lines}, but {b} has {b_lines}", "a"_a = input_name(a),
          "a_lines"_a = line_count(a_lines), "b"_a = input_name(b), "b_lines"_a = b_lines);
}

}  // namespace qkv::cli
