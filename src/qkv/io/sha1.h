// SHA-1 (FIPS 180-4), to recognise a file by its published digest; not a protection against forgery.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace qkv {

/// The digest as 40 hexadecimal digits.
std::string sha1(std::span<const std::byte> bytes);

}  // namespace qkv
