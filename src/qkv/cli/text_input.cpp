// Text files that commands read.
#include "qkv/cli/text_input.h"

#include <array>
#include <cstdio>

#include "qkv/core/check.h"
#include "qkv/eval/unicode.h"
#include "qkv/io/file.h"

namespace qkv::cli {
namespace {

std::string all_bytes(const std::string& path) {
  std::string bytes;
  if (path != "-") {
    const InputFile file(path);
    bytes.resize(file.size());
    file.read(0, std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
    return bytes;
  }
  std::array<char, 1 << 16> part{};
  while (const size_t got = std::fread(part.data(), 1, part.size(), stdin)) bytes.append(part.data(), got);
  check(std::ferror(stdin) == 0, "cannot read standard input");
  return bytes;
}

}  // namespace

std::string input_name(const std::string& path) { return path == "-" ? "standard input" : path; }

std::vector<std::string> read_text_lines(const std::string& path) {
  const std::string bytes = all_bytes(path);
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = std::min(bytes.find('\n', begin), bytes.size());
    const std::string_view line(bytes.data() + begin, end - begin);
    const auto bad = invalid_utf8(line);
    check(!bad, input_name(path), ": line ", lines.size() + 1, " is not UTF-8 at byte ", bad.value_or(0) + 1);
    lines.emplace_back(right_stripped(line));
    begin = end + 1;
  }
  check(!lines.empty(), input_name(path), " is empty, expected lines of text");
  return lines;
}

void check_same_lines(const std::string& a, size_t a_lines, const std::string& b, size_t b_lines) {
  check(a_lines == b_lines, input_name(a), " has ", a_lines, " lines and ", input_name(b), " ", b_lines, ", expected as many");
}

}  // namespace qkv::cli
