// Tables for a terminal.
#pragma once

#include <string>
#include <vector>

namespace qkv::labs {

/// The table, no line wider than `columns`: numbers to the right, words to the left. One that is too wide has its cells
/// broken into lines; when words would have to be broken it goes on below itself, with its first column again.
std::string plain_table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows,
                        int columns, bool colour);

}  // namespace qkv::labs
