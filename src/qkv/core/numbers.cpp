// Numbers from text and to text.
#include "qkv/core/numbers.h"

#include <charconv>
#include <cmath>

#include "qkv/core/check.h"

namespace qkv {
namespace {

template <class Number>
std::optional<Number> parsed(std::string_view text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

template <class Number>
std::string range_text(bool has_low, Number low, bool has_high, Number high) {
  if (has_low && has_high) return text(" from ", low, " to ", high);
  if (has_low) return text(" of at least ", low);
  return has_high ? text(" of at most ", high) : std::string();
}

}  // namespace

std::optional<int64_t> parse_whole_number(std::string_view text, int64_t low, int64_t high) {
  const auto value = parsed<int64_t>(text);
  return value && *value >= low && *value <= high ? value : std::nullopt;
}

std::optional<double> parse_number(std::string_view text, double low, double high) {
  const auto value = parsed<double>(text);
  return value && std::isfinite(*value) && *value >= low && *value <= high ? value : std::nullopt;
}

std::string expected_whole_number(int64_t low, int64_t high) {
  return "a whole number" + range_text(low != INT64_MIN, low, high != INT64_MAX, high);
}

std::string expected_number(double low, double high) {
  return "a number" + range_text(!std::isinf(low), low, !std::isinf(high), high);
}

std::string grouped(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

}  // namespace qkv
