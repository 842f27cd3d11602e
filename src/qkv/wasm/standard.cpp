// Numbers as text and back, where the standard library cannot: fmt writes the shortest digits, strtod reads.
#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

namespace std {
namespace {

to_chars_result put(char* first, char* last, const std::string& text) {
  if (last - first < static_cast<ptrdiff_t>(text.size())) return {last, errc::value_too_large};
  return {std::copy(text.begin(), text.end(), first), errc()};
}

// The shorter of 12300 and 1.23e+04; as they are where both are equally long.
template <class Number>
to_chars_result shortest(char* first, char* last, Number value) {
  if (!std::isfinite(value)) return put(first, last, std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
  if (value == 0) return put(first, last, std::signbit(value) ? "-0" : "0");
  const auto parts = fmt::detail::dragonbox::to_decimal(std::abs(value));
  const std::string digits = std::to_string(parts.significand);
  const int count = static_cast<int>(digits.size()), exponent = parts.exponent + count - 1;  // d.ddd x 10^exponent
  std::string plain, powers = digits.substr(0, 1);
  if (count > 1) powers += "." + digits.substr(1);
  powers += fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  if (exponent < 0)
    plain =
        exponent < -40 ? std::string(64, '0') : "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  else if (exponent >= count - 1)
    plain = exponent > 40 ? std::string(64, '0') : fmt::format("{:.0f}", std::abs(value));
  else
    plain =
        digits.substr(0, static_cast<size_t>(exponent + 1)) + "." + digits.substr(static_cast<size_t>(exponent + 1));
  const std::string& shorter = plain.size() <= powers.size() ? plain : powers;
  return put(first, last, (value < 0 ? "-" : "") + shorter);
}

// A number as the C++ standard has it: no blanks, no plus sign, no hexadecimal digits.
template <class Number>
from_chars_result read(const char* first, const char* last, Number& value, Number (*convert)(const char*, char**)) {
  const char* at = first;
  if (at < last && *at == '-') ++at;
  const auto digit = [&](const char* c) { return c < last && *c >= '0' && *c <= '9'; };
  const char* const body = at;
  if (digit(at) || (at < last && *at == '.' && digit(at + 1))) {
    while (digit(at)) ++at;
    if (at < last && *at == '.')
      for (++at; digit(at);) ++at;
    if (at < last && (*at == 'e' || *at == 'E')) {
      const char* power = at + 1;
      if (power < last && (*power == '+' || *power == '-')) ++power;
      if (digit(power)) {
        while (digit(power)) ++power;
        at = power;
      }
    }
  } else {
    for (const char* word : {"infinity", "inf", "nan"})
      if (static_cast<size_t>(last - at) >= std::strlen(word) && at == body &&
          std::equal(word, word + std::strlen(word), at, [](char a, char b) { return a == (b | 0x20); }))
        at += std::strlen(word);
    if (at == body) return {first, errc::invalid_argument};
  }
  const std::string text(first, at);
  errno = 0;
  const Number number = convert(text.c_str(), nullptr);
  if (errno == ERANGE && (std::isinf(number) || number == 0)) return {at, errc::result_out_of_range};
  value = number;
  return {at, errc()};
}

}  // namespace

to_chars_result to_chars(char* first, char* last, double value) { return shortest(first, last, value); }
to_chars_result to_chars(char* first, char* last, float value) { return shortest(first, last, value); }
to_chars_result to_chars(char* first, char* last, double value, chars_format, int precision) {
  return put(first, last, fmt::format("{:.{}f}", value, precision));
}
from_chars_result from_chars(const char* first, const char* last, double& value) {
  return read(first, last, value, std::strtod);
}
from_chars_result from_chars(const char* first, const char* last, float& value) {
  return read(first, last, value, std::strtof);
}

}  // namespace std
