// Numbers from text: the whole text, within limits, and the errors otherwise. Numbers to text.
#include "qkv/core/numbers.h"

#include <gtest/gtest.h>

#include <limits>

using namespace qkv;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Numbers, AreTheWholeTextAndWithinTheLimits) {
  EXPECT_EQ(parse_whole_number("7", 1, 7), 7);
  for (const char* bad : {"0", "8", "", " 7", "7 ", "7.0", "+7", "seven", "99999999999999999999"})
    EXPECT_FALSE(parse_whole_number(bad, 1, 7)) << bad;
  EXPECT_EQ(parse_number("-2.5e1", -kInfinity, kInfinity), -25);
  for (const char* bad : {"nan", "inf", "1e999", "2,5", "", "0x10", "-1"})
    EXPECT_FALSE(parse_number(bad, 0, kInfinity)) << bad;
}

TEST(Numbers, SayWhatWasExpected) {
  EXPECT_EQ(expected_whole_number(1, 1000).in(Language::en), "a whole number from 1 to 1000");
  EXPECT_EQ(expected_whole_number(0, INT64_MAX).in(Language::en), "a whole number of at least 0");
  EXPECT_EQ(expected_whole_number(INT64_MIN, 5).in(Language::en), "a whole number of at most 5");
  EXPECT_EQ(expected_whole_number(INT64_MIN, INT64_MAX).in(Language::en), "a whole number");
  EXPECT_EQ(expected_number(0, 0.5).in(Language::en), "a number from 0 to 0.5");
  EXPECT_EQ(expected_number(0, kInfinity).in(Language::en), "a number of at least 0");
  EXPECT_EQ(expected_number(-kInfinity, kInfinity).in(Language::en), "a number");
}

TEST(Numbers, AreGroupedByThousands) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(123), "123");
  EXPECT_EQ(grouped(1234), "1,234");
  EXPECT_EQ(grouped(49449), "49,449");
  EXPECT_EQ(grouped(123456), "123,456");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(grouped(UINT64_MAX), "18,446,744,073,709,551,615");
}

}  // namespace
