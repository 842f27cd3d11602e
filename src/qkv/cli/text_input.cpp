// Text files that commands read.
#include "qkv/cli/text_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <string_view>

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
  const std::string bytes = all_bytes(path), name = input_name(path);
  check(!bytes.empty(), name, ": is empty, expected text");
  if (const auto bad = invalid_utf8(bytes)) {
    const auto line = 1 + std::count(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(*bad), '\n');
    fail(name, ": line ", line, ": not UTF-8: byte ", fmt::format("{:#04x}", static_cast<unsigned char>(bytes[*bad])), " at offset ", *bad);
  }
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = std::min(bytes.find('\n', begin), bytes.size());
    lines.emplace_back(right_stripped(std::string_view(bytes).substr(begin, end - begin)));
    begin = end + 1;
  }
  return lines;
}

void check_same_lines(const std::string& a, size_t a_lines, const std::string& b, size_t b_lines) {
  check(a_lines == b_lines, input_name(a), " has ", a_lines, " lines and ", input_name(b), " ", b_lines, ", expected as many");
}

}  // namespace qkv::cli
