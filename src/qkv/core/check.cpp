// How numbers look in messages.
#include "qkv/core/check.h"

#include <array>
#include <charconv>
#include <cmath>

namespace qkv {

namespace {

// The fewest digits that tell the number from its neighbours of the same type.
template <class Number>
void append_number(std::string& out, Number number) {
  if (std::isnan(number)) {  // its sign says nothing
    out += "nan";
    return;
  }
  std::array<char, 32> digits;
  out.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
}

}  // namespace

void append_text(std::string& out, double part) { append_number(out, part); }
void append_text(std::string& out, float part) { append_number(out, part); }

}  // namespace qkv
