// SHA-256 (FIPS 180-4): the digest by which model hubs and `sha256sum` name a file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace qkv {

/// Takes bytes piece by piece.
class Sha256 {
 public:
  void add(std::span<const std::byte> bytes);
  /// The digest as 64 hexadecimal digits; nothing may be added afterwards.
  std::string digest();

 private:
  void add_block(const unsigned char* block);
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> open_ = {};  // the block that is not yet full
  uint64_t bytes_ = 0;
};

/// The digest of a whole file, which is read in pieces.
std::string sha256_of_file(const std::string& path);

}  // namespace qkv
