// Tables for a terminal.
#pragma once

#include <string>
#include <vector>

namespace qkv::labs {

/// The table, with no line wider than `columns`; numbers are right-aligned, words left-aligned. If the table is too
/// wide, its cells are broken into lines; if words would have to be broken, it continues below with its first column
/// repeated.
std::string plain_table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows,
                        int columns, bool colour);

}  // namespace qkv::labs
