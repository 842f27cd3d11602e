// Keys of named streams, and distributions derived from the words.
#include "qkv/core/rng.h"

#include <cmath>
#include <numbers>

namespace qkv {
namespace {

// The finaliser of SplitMix64 (Steele, Lea, Flood, 2014): spreads every bit of the key.
constexpr uint64_t mix(uint64_t z) {
  z += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace

Rng::Rng(uint64_t seed) : key_(mix(seed)) {}

Rng Rng::at(std::string_view name) const {
  uint64_t h = 0xCBF29CE484222325;  // FNV-1a
  for (unsigned char c : name) h = (h ^ c) * 0x100000001B3;
  Rng child = *this;
  child.key_ = mix(key_ ^ mix(h));
  return child;
}

Rng Rng::at(uint64_t number) const {
  Rng child = *this;
  child.key_ = mix(key_ + mix(~number));
  return child;
}

float Rng::normal(uint64_t i) const {
  const uint64_t pair = i / 2 * 2;
  const double u = (word(pair) + 1.0) * 0x1p-32, v = word(pair + 1) * 0x1p-32;  // u in (0, 1]
  const double radius = std::sqrt(-2 * std::log(u)), angle = 2 * std::numbers::pi * v;
  return static_cast<float>(radius * (i % 2 ? std::sin(angle) : std::cos(angle)));
}

uint64_t Rng::below(uint64_t n, uint64_t i) const {
  const auto w = philox({step_, shard_, static_cast<uint32_t>(i), static_cast<uint32_t>(i >> 32)}, key());
  const uint64_t bits = uint64_t{w[0]} << 32 | w[1];
  return static_cast<uint64_t>((static_cast<unsigned __int128>(bits) * n) >> 64);
}

}  // namespace qkv
