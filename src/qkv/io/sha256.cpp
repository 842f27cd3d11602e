// SHA-256 over blocks of 64 bytes.
#include "qkv/io/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "qkv/io/file.h"

namespace qkv {
namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<uint32_t, 64> kRounds = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

}  // namespace

void Sha256::add_block(const unsigned char* block) {
  std::array<uint32_t, 64> w;
  for (size_t i = 0; i < 16; ++i)
    w[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 | uint32_t{block[4 * i + 2]} << 8 |
           block[4 * i + 3];
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + w[i - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t t1 =
        h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + kRounds[i] + w[i];
    const uint32_t t2 = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const std::array<uint32_t, 8> sum = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state_[i] += sum[i];
}

void Sha256::add(std::span<const std::byte> bytes) {
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  for (size_t at = 0; at < bytes.size();) {
    const size_t filled = bytes_ % 64, take = std::min(bytes.size() - at, 64 - filled);
    if (take == 64) {
      add_block(data + at);
    } else {
      std::memcpy(open_.data() + filled, data + at, take);
      if (filled + take == 64) add_block(open_.data());
    }
    bytes_ += take;
    at += take;
  }
}

// A one bit, zeros, and the number of bits in the last eight bytes.
std::string Sha256::digest() {
  const uint64_t bits = bytes_ * 8;
  std::array<unsigned char, 72> tail = {0x80};
  const size_t zeros = (119 - bytes_ % 64) % 64;  // after the 0x80
  for (size_t i = 0; i < 8; ++i) tail[1 + zeros + i] = static_cast<unsigned char>(bits >> (56 - 8 * i));
  add(std::as_bytes(std::span(tail).first(9 + zeros)));
  std::string out;
  for (const uint32_t word : state_)
    for (int shift = 28; shift >= 0; shift -= 4) out += "0123456789abcdef"[word >> shift & 15];
  return out;
}

std::string sha256_of_file(const std::string& path) {
  constexpr uint64_t kPiece = 1 << 20;
  const InputFile file(path);
  Sha256 sum;
  std::vector<std::byte> piece(std::min(file.size(), kPiece));
  for (uint64_t at = 0; at < file.size(); at += piece.size()) {
    const std::span<std::byte> part = std::span(piece).first(std::min<uint64_t>(piece.size(), file.size() - at));
    file.read(at, part);
    sum.add(part);
  }
  return sum.digest();
}

}  // namespace qkv
