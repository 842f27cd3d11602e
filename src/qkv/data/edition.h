// The two editions of the book.
#pragma once

#include <array>
#include <string_view>

#include "qkv/core/api.h"

namespace QKV_API qkv {

/// They train on different curves and number their vocabularies in different orders.
enum class Edition { zh, en };
constexpr std::array<std::string_view, 2> names(Edition) { return {"zh", "en"}; }

}  // namespace qkv
