// 16-bit numbers, every one of them.
#include "qkv/io/half.h"

#include <gtest/gtest.h>

#include <cmath>

#include "qkv/core/parallel.h"

namespace qkv {
namespace {

// By the definition of binary16.
double defined(uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  const double sign = half & 0x8000 ? -1 : 1;
  if (exponent == 31) return fraction ? NAN : sign * INFINITY;
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

TEST(Half, EveryNumberIsThatOfTheDefinitionEvenWhereDenormalsAreFlushed) {
  flush_denormals();
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float found = float_of_half(static_cast<uint16_t>(bits));
    const double wanted = defined(static_cast<uint16_t>(bits));
    if (std::isnan(wanted)) {
      EXPECT_TRUE(std::isnan(found)) << bits;
    } else {
      EXPECT_EQ(found, static_cast<float>(wanted)) << bits;
      EXPECT_EQ(std::signbit(found), std::signbit(wanted)) << bits;
    }
  }
}

TEST(Half, BfloatIsTheUpperHalfOfAFloat) {
  EXPECT_EQ(float_of_bfloat(0x3f80), 1.0f);
  EXPECT_EQ(float_of_bfloat(0xc049), -3.140625f);
  EXPECT_TRUE(std::isnan(float_of_bfloat(0x7fc1)));
}

}  // namespace
}  // namespace qkv
