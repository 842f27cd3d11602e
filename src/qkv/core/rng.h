// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011).
// There is no hidden state: the same Rng always gives the same numbers, and child streams are named.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "qkv/core/api.h"

namespace QKV_API qkv {

using PhiloxKey = std::array<uint32_t, 2>;
using PhiloxCounter = std::array<uint32_t, 4>;

/// The four random words for a counter and a key.
constexpr std::array<uint32_t, 4> philox(PhiloxCounter c, PhiloxKey k) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c[0], p1 = uint64_t{0xCD9E8D57} * c[2];
    c = {uint32_t(p1 >> 32) ^ c[1] ^ k[0], uint32_t(p1), uint32_t(p0 >> 32) ^ c[3] ^ k[1], uint32_t(p0)};
    k[0] += 0x9E3779B9;
    k[1] += 0xBB67AE85;
  }
  return c;
}

/// A word as a float in [0, 1), with 24 bits.
constexpr float unit_float(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

/// A named stream of random words: key from (seed, path), counter (step, shard, index / 4).
class Rng {
 public:
  explicit Rng(uint64_t seed = 0);

  /// The child stream with that name or number.
  Rng at(std::string_view name) const;
  Rng at(uint64_t number) const;
  /// The same stream at a training step / in a shard of the batch: both are part of the counter.
  Rng at_step(uint64_t step) const {
    Rng r = *this;
    r.step_ = static_cast<uint32_t>(step);
    return r;
  }
  Rng at_shard(uint32_t shard) const {
    Rng r = *this;
    r.shard_ = shard;
    return r;
  }

  PhiloxKey key() const { return {static_cast<uint32_t>(key_), static_cast<uint32_t>(key_ >> 32)}; }
  uint32_t step() const { return step_; }
  uint32_t shard() const { return shard_; }

  /// Word number i of the stream.
  uint32_t word(uint64_t i) const {
    return philox({step_, shard_, static_cast<uint32_t>(i / 4), static_cast<uint32_t>(i >> 34)}, key())[i % 4];
  }
  /// Number i of the stream: uniform in [0, 1), standard normal (Box-Muller), or an integer below n.
  float uniform(uint64_t i) const { return unit_float(word(i)); }
  float normal(uint64_t i) const;
  uint64_t below(uint64_t n, uint64_t i) const;

 private:
  uint64_t key_;
  uint32_t step_ = 0, shard_ = 0;
};

}  // namespace qkv
