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

}  // namespace

std::optional<int64_t> parse_whole_number(std::string_view text, int64_t low, int64_t high) {
  const auto value = parsed<int64_t>(text);
  return value && *value >= low && *value <= high ? value : std::nullopt;
}

std::optional<double> parse_number(std::string_view text, double low, double high) {
  const auto value = parsed<double>(text);
  return value && std::isfinite(*value) && *value >= low && *value <= high ? value : std::nullopt;
}

Text expected_whole_number(int64_t low, int64_t high) {
  const bool has_low = low != INT64_MIN, has_high = high != INT64_MAX;
  if (has_low && has_high) return tr("a whole number from {low} to {high}", "low"_a = low, "high"_a = high);
  if (has_low) return tr("a whole number of at least {low}", "low"_a = low);
  return has_high ? tr("a whole number of at most {high}", "high"_a = high) : tr("a whole number");
}

Text expected_number(double low, double high) {
  const bool has_low = !std::isinf(low), has_high = !std::isinf(high);
  if (has_low && has_high) return tr("a number from {low} to {high}", "low"_a = text(low), "high"_a = text(high));
  if (has_low) return tr("a number of at least {low}", "low"_a = text(low));
  return has_high ? tr("a number of at most {high}", "high"_a = text(high)) : tr("a number");
}

std::string grouped(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3;) digits.insert(digits.begin() + static_cast<std::ptrdiff_t>(at -= 3), ',');
  return digits;
}

}  // namespace qkv
