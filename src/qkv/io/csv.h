// CSV: columns of numbers with names, as spreadsheets and NumPy write them.
//
// Read: comma, semicolon or tab (the first of tab, semicolon, comma that the first line has outside quotes), quotes, a
// byte-order mark, any line end, spaces around cells, blank lines. The first line is a header when any of its cells is
// neither a number nor empty; without one the columns are called "1", "2", ...
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/language.h"

namespace QKV_API qkv {

/// Columns of equal length. A missing number is NaN; it is written as an empty cell.
struct Table {
  std::vector<std::string> names;
  std::vector<std::vector<double>> columns;

  int64_t rows() const { return columns.empty() ? 0 : static_cast<int64_t>(columns[0].size()); }
};

/// What to do with a cell that is empty or NaN (NaN, NA or null, in any case).
enum class Missing { refuse, drop_row };

struct CsvOptions {
  /// Names, or numbers counted from 1; the table has these, in this order. Empty: all. Text in other columns is
  /// ignored.
  std::vector<std::string> columns = {};
  Missing missing = Missing::refuse;
  Text missing_hint = {};  // the hint of the error about a missing number: how to drop such rows
};

struct CsvContent {
  Table table;
  int64_t dropped = 0;  // rows with a missing number
};

/// Reads a file. Errors name the file, the line, the column and the cell's text.
CsvContent read_csv(const std::string& path, const CsvOptions& options = {});
/// The same from text; errors use `name` as the file's name.
CsvContent parse_csv(std::string_view text, const std::string& name, const CsvOptions& options = {});

/// The names of a file's columns.
std::vector<std::string> csv_columns(const std::string& path);

/// Header and rows with commas; numbers in the fewest digits that read back as the same double.
std::string csv_text(const Table& table);
/// Writes a file, all or nothing.
void write_csv(const std::string& path, const Table& table);

}  // namespace qkv
