// Encodes lines with the tokenizer of a folder, for bench/peers/tokenizers_equal.py: encode_lines FOLDER MODEL_TYPE
// FILE. Lines end with NUL. Prints the ids of each; with MODEL_TYPE "time", the best of three times instead.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "qkv/core/check.h"
#include "qkv/data/pretrained_tokenizer.h"

namespace {

std::vector<std::string> read_lines(const char* path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  std::vector<std::string> lines;
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = std::min(bytes.find('\0', at), bytes.size());
    lines.push_back(bytes.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

void print_time(const qkv::PretrainedTokenizer& tokenizer, const std::vector<std::string>& lines) {
  double best = 1e9;
  for (int round = 0; round < 3; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (const std::string& line : lines) tokenizer.encode(line);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::printf("%.4f\n", best);
}

}  // namespace

int main(int argc, char** argv) try {
  qkv::check(argc == 4, "usage: encode_lines FOLDER MODEL_TYPE FILE");
  const std::string model_type = argv[2];
  const bool timed = model_type == "time";
  const auto tokenizer = qkv::PretrainedTokenizer::open(argv[1], timed ? "" : model_type);
  const std::vector<std::string> lines = read_lines(argv[3]);
  if (timed) {
    print_time(tokenizer, lines);
    return 0;
  }
  for (const std::string& line : lines) {
    for (const int32_t id : tokenizer.encode(line).ids()) std::printf("%d ", id);
    std::printf("\n");
  }
  return 0;
} catch (const qkv::Error& error) {
  std::fprintf(stderr, "encode_lines: %s\n", error.what());
  return 1;
}
