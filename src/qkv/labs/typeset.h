// Numbers in running text and in tables, as a book sets them.
#pragma once

#include <string>
#include <string_view>

#include "qkv/labs/lab.h"

namespace qkv::labs {

/// The text with a true minus sign before negative numbers, and 1.2554996e-08 as 1.26 × 10⁻⁸: a power of ten has at
/// most three digits before it, and from 10⁻³ to 10⁴ none is needed. `code` and $formula$ stay as they are.
std::string typeset(std::string_view text);
Text typeset(const Text& text);

/// Whether every cell of a column is a number, with or without a unit: it is set flush right. The head does not count.
bool is_number_column(const Table& table, size_t column, Language language);

}  // namespace qkv::labs
