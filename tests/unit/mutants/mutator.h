// Damages files at random, the same way every time, and lets a reader loose on them.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "support/files.h"

namespace qkv_test {

/// Changes a few places of some bytes: bits, bytes, numbers, runs that are left out, put in or doubled, words that mean
/// something.
class Mutator {
 public:
  Mutator(uint64_t seed, std::vector<std::string> words) : random_(seed), words_(std::move(words)) {}

  std::string operator()(std::string bytes) {
    for (size_t changes = 1 + below(4) + (below(6) == 0 ? below(12) : 0); changes > 0; --changes) change(bytes);
    return bytes;
  }
  size_t below(size_t end) { return end == 0 ? 0 : static_cast<size_t>(random_() % end); }

 private:
  void change(std::string& bytes) {
    if (bytes.empty()) bytes.push_back(static_cast<char>(below(256)));
    // A file's beginning says how the rest is to be read.
    const size_t at = below(below(3) == 0 ? std::min<size_t>(bytes.size(), 256) : bytes.size());
    switch (below(10)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 2:
        bytes.erase(at, 1 + below(16));
        break;
      case 3:
        bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(64)));
        break;
      case 4:
        put_number(bytes, at);
        break;
      case 5:
        bytes.resize(below(4) == 0 ? at : bytes.size());
        break;
      case 6:
        bytes.insert(at, word());
        break;
      case 7:
        bytes.replace(at, 1 + below(8), word());
        break;
      case 8:
        replace_digits(bytes, at);
        break;
      case 9:
        bytes[at] = "\0 \n\r\t\"'{}[](),:;-0129aNe\xff\x80"[below(25)];
        break;
    }
  }

  std::string word() {
    return words_.empty() ? std::string(1 + below(4), static_cast<char>(below(256))) : words_[below(words_.size())];
  }

  void put_number(std::string& bytes, size_t at) {
    constexpr uint64_t kNumbers[] = {0,          1,          0x7f,       0x80,      0xff,       0xffff,
                                     0x7fffffff, 0x80000000, 0xffffffff, INT64_MAX, UINT64_MAX, 1000000000};
    const uint64_t number = kNumbers[below(std::size(kNumbers))];
    const size_t size = size_t{1} << below(4);
    if (at + size <= bytes.size()) std::memcpy(&bytes[at], &number, size);
  }

  void replace_digits(std::string& bytes, size_t at) {
    const char* const kDigits[] = {
        "0", "1", "-1", "3", "65537", "4294967296", "9223372036854775807", "18446744073709551615", "1e300", "nan"};
    const size_t begin = std::min(bytes.find_first_of("0123456789", at), bytes.size());
    const size_t end = std::min(bytes.find_first_not_of("0123456789", begin), bytes.size());
    if (begin < end) bytes.replace(begin, end - begin, kDigits[below(std::size(kDigits))]);
  }

  std::mt19937_64 random_;
  std::vector<std::string> words_;
};

/// How many files each reader gets: a few hundred, or what QKV_MUTANTS says.
inline int mutants(int usual = 300) {
  const char* asked = std::getenv("QKV_MUTANTS");
  return asked ? std::atoi(asked) * usual / 300 : usual;
}

/// Memory that a reader of small files can never need: past it an allocation fails, and with it the test.
inline void limit_memory() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  rlimit limit{};
  getrlimit(RLIMIT_DATA, &limit);
  limit.rlim_cur = rlim_t{3} << 30;
  ASSERT_EQ(setrlimit(RLIMIT_DATA, &limit), 0);
#endif
}

struct Seeds {
  std::vector<std::string> files;       // sound ones
  std::vector<std::string> words = {};  // that mean something in such a file
};

/// Every mutant, written to `path`, must be read or refused with an Error: no other exception, no crash, no end of
/// memory.
template <class Read>
void survives(const Seeds& seeds, const std::string& path, int count, Read&& read) {
  limit_memory();
  Mutator mutate(1, seeds.words);
  int refused = 0;
  for (const std::string& sound : seeds.files) {
    put_bytes(path, sound);
    ASSERT_EQ(qkv_test::error_of([&] { read(path); }), "no error");
  }
  for (int i = 0; i < count; ++i) {
    put_bytes(path, mutate(seeds.files[mutate.below(seeds.files.size())]));
    refused += qkv_test::error_of([&] { read(path); }) != "no error";
  }
  EXPECT_GT(refused, 0);
  put_bytes(path, seeds.files.back());
}

}  // namespace qkv_test
