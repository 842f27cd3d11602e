// Damages a file at every position: each read must give a clean error or a sound result.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "support/files.h"

namespace qkv_test {

/// read(path) parses the file and checks sizes itself; any outcome but qkv::Error and success fails the test.
template <class Read>
void survives_damage(const std::string& good, const std::string& path, Read&& read) {
  int cut_errors = 0, flips = 0;
  const auto attempt = [&](const std::string& bytes) {
    put_bytes(path, bytes);
    const std::string message = error_of([&] { read(path); });
    EXPECT_EQ(message.find('\0'), std::string::npos);
    if (message != "no error") {
      EXPECT_NE(message.find(path), std::string::npos) << message;
    }
    return message != "no error";
  };
  for (size_t length = 0; length < good.size(); ++length) cut_errors += attempt(good.substr(0, length));
  EXPECT_EQ(cut_errors, static_cast<int>(good.size())) << "a truncated file was read as if it were whole";
  for (size_t i = 0; i < good.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = good;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      attempt(bytes);
      ++flips;
    }
  EXPECT_EQ(flips, static_cast<int>(8 * good.size()));
  EXPECT_TRUE(attempt(good + "x")) << "an extra byte was not noticed";
  put_bytes(path, good);
  read(path);
}

}  // namespace qkv_test
