// Numbers in running text and in tables, as a book typesets them.
#pragma once

#include <string>
#include <string_view>

#include "qkv/labs/lab.h"

namespace qkv::labs {

/// The text with a true minus sign before negative numbers, and 1.2554996e-08 as 1.26 × 10⁻⁸: a power of ten has at
/// most three digits before it, and from 10⁻³ to 10⁴ none is needed. `code` and $formula$ stay as they are.
std::string typeset(std::string_view text);
/// The same of a text in a language, for every kind of output.
std::string typeset(const Text& text, Language language);

/// Whether every cell of a column is a number, with or without a unit: such a column is right-aligned. The head is
/// ignored.
bool is_number_column(const Table& table, size_t column, Language language);

}  // namespace qkv::labs
