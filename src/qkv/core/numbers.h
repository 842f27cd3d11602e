// Numbers as people write and read them: options and configuration files accept the same and give the same errors.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "qkv/core/api.h"
#include "qkv/core/language.h"

namespace QKV_API qkv {

/// The number, if the whole text is a finite number from low to high.
std::optional<int64_t> parse_whole_number(std::string_view text, int64_t low, int64_t high);
std::optional<double> parse_number(std::string_view text, double low = -std::numeric_limits<double>::infinity(),
                                   double high = std::numeric_limits<double>::infinity());

/// What was expected instead: "a whole number from 1 to 1000", "a number of at least 0".
Text expected_whole_number(int64_t low, int64_t high);
Text expected_number(double low, double high);

/// 1234567 -> "1,234,567": how sizes and counts are shown.
std::string grouped(uint64_t number);

}  // namespace qkv
