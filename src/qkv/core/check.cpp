// How numbers look in messages.
#include "qkv/core/check.h"

#include <array>
#include <charconv>

namespace qkv {

void append_text(std::string& out, double part) {
  std::array<char, 32> digits;
  auto end = std::to_chars(digits.data(), digits.data() + digits.size(), part).ptr;
  out.append(digits.data(), end);
}

}  // namespace qkv
