// 16-bit numbers of weight files as float32: every one of them is a float.
#pragma once

#include <bit>
#include <cstdint>

namespace qkv {

/// IEEE binary16, subnormal numbers, infinities and NaN included. It does not depend on the treatment of denormals.
inline float float_of_half(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16, exponent = half & 0x7c00u;
  uint32_t bits = (uint32_t{half & 0x7fffu} << 13) + (112u << 23);  // the exponents' biases are 15 and 127
  if (exponent == 0x7c00u) bits += 112u << 23;
  if (exponent == 0) bits = std::bit_cast<uint32_t>(std::bit_cast<float>(bits + (1u << 23)) - 0x1p-14f);
  return std::bit_cast<float>(bits | sign);
}

/// The upper half of a float32.
inline float float_of_bfloat(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

}  // namespace qkv
