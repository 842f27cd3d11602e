// SHA-1 against the published examples.
#include "qkv/io/sha1.h"

#include <gtest/gtest.h>

namespace {

std::string digest(const std::string& text) { return qkv::sha1(std::as_bytes(std::span(text.data(), text.size()))); }

}  // namespace

TEST(Sha1, MatchesThePublishedExamples) {
  EXPECT_EQ(digest(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(digest("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(digest(std::string(1'000'000, 'a')), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}
