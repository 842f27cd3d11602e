// SHA-1 over blocks of 64 bytes.
#include "qkv/io/sha1.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace qkv {
namespace {

using Digest = std::array<uint32_t, 5>;

void add_block(Digest& digest, const unsigned char* block) {
  std::array<uint32_t, 80> w;
  for (size_t i = 0; i < 16; ++i)
    w[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 | uint32_t{block[4 * i + 2]} << 8 |
           block[4 * i + 3];
  for (size_t i = 16; i < 80; ++i) w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  auto [a, b, c, d, e] = digest;
  for (size_t i = 0; i < 80; ++i) {
    const uint32_t f = i < 20 ? (b & c) | (~b & d) : i >= 40 && i < 60 ? (b & c) | (b & d) | (c & d) : b ^ c ^ d;
    const uint32_t k = i < 20 ? 0x5A827999 : i < 40 ? 0x6ED9EBA1 : i < 60 ? 0x8F1BBCDC : 0xCA62C1D6;
    const uint32_t next = std::rotl(a, 5) + f + e + k + w[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  digest[0] += a;
  digest[1] += b;
  digest[2] += c;
  digest[3] += d;
  digest[4] += e;
}

}  // namespace

std::string sha1(std::span<const std::byte> bytes) {
  Digest digest = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  const size_t whole = bytes.size() / 64 * 64, rest = bytes.size() - whole;
  for (size_t at = 0; at < whole; at += 64) add_block(digest, data + at);
  // The rest, a one bit, zeros, and the number of bits in the last eight bytes.
  std::array<unsigned char, 128> tail{};
  if (rest > 0) std::memcpy(tail.data(), data + whole, rest);
  tail[rest] = 0x80;
  const size_t size = rest < 56 ? 64 : 128;
  const uint64_t bits = uint64_t{bytes.size()} * 8;
  for (size_t i = 0; i < 8; ++i) tail[size - 1 - i] = static_cast<unsigned char>(bits >> (8 * i));
  for (size_t at = 0; at < size; at += 64) add_block(digest, tail.data() + at);
  std::string out;
  for (const uint32_t word : digest)
    for (int shift = 28; shift >= 0; shift -= 4) out += "0123456789abcdef"[word >> shift & 15];
  return out;
}

}  // namespace qkv
