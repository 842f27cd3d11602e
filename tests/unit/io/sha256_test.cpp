// SHA-256 against digests of `sha256sum`.
#include "qkv/io/sha256.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>

namespace qkv {
namespace {

std::string digest(const std::string& text, size_t step) {
  Sha256 sum;
  for (size_t at = 0; at < text.size(); at += step)
    sum.add(std::as_bytes(std::span(text).subspan(at, std::min(step, text.size() - at))));
  return sum.digest();
}

TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(Sha256().digest(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 100),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

// The padding needs one block more from 56 bytes on.
TEST(Sha256, DoesNotDependOnHowTheBytesArrive) {
  for (const size_t size : {55, 56, 63, 64, 65, 119, 120, 1000}) {
    const std::string text(size, 'a');
    for (const size_t step : {1, 7, 64, 100}) EXPECT_EQ(digest(text, step), digest(text, size)) << size << " " << step;
  }
  EXPECT_EQ(digest(std::string(1000, 'a'), 13), "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3");
}

}  // namespace
}  // namespace qkv
