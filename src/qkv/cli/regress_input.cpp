// Columns and points for qkv regress.
#include "qkv/cli/regress_input.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "qkv/cli/command.h"
#include "qkv/core/limits.h"
#include "qkv/core/numbers.h"
#include "qkv/io/npy.h"

namespace qkv::cli {
namespace {

/// An .npy of shape (n) or (n, columns) as a table with columns "1", "2", ...
Table npy_table(const std::string& path) {
  const Array array = read_npy(path);
  const Shape& shape = array.shape();
  require(shape.rank() == 1 || shape.rank() == 2, "{path}: expected shape (rows, columns), got {shape}",
          "path"_a = path, "shape"_a = shape);
  const int64_t rows = shape[0], width = shape.rank() == 2 ? shape[1] : 1;
  require(width >= 1, "{path}: has no columns, its shape is {shape}", "path"_a = path, "shape"_a = shape);
  require(width <= limits::kColumns, "{path}: {width} columns are too many, expected at most {columns}",
          "path"_a = path, "width"_a = width, "columns"_a = limits::kColumns);
  Table table;
  table.columns.assign(static_cast<size_t>(width), std::vector<double>(static_cast<size_t>(rows)));
  for (int64_t c = 0; c < width; ++c) table.names.push_back(std::to_string(c + 1));
  const auto fill = [&](auto values) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t c = 0; c < width; ++c)
        table.columns[c][i] = static_cast<double>(values[static_cast<size_t>(i * width + c)]);
  };
  switch (array.dtype()) {
    case Dtype::float32:
      fill(array.values<float>());
      break;
    case Dtype::float64:
      fill(array.values<double>());
      break;
    case Dtype::int32:
      fill(array.values<int32_t>());
      break;
    case Dtype::int64:
      fill(array.values<int64_t>());
      break;
    case Dtype::boolean:
    case Dtype::uint8:
      fill(array.values<uint8_t>());
      break;
  }
  return table;
}

/// The wanted columns of an .npy table; rows that are not finite are refused or dropped.
CsvContent pick(const std::string& path, const Table& table, const std::vector<std::string>& wanted, Missing missing) {
  CsvContent out;
  std::vector<size_t> places;
  for (const std::string& name : wanted) {
    const auto number =
        parse_whole_number(name, 1, static_cast<int64_t>(table.names.size()));  // columns are named by number
    require(number && std::to_string(*number) == name,
            "{path}: there is no column \"{name}\"; the columns are 1 to {names}", "path"_a = path, "name"_a = name,
            "names"_a = table.names.size());
    places.push_back(static_cast<size_t>(*number - 1));
    out.table.names.push_back(name);
  }
  out.table.columns.resize(places.size());
  for (int64_t i = 0; i < table.rows(); ++i) {
    const auto bad =
        std::find_if(places.begin(), places.end(), [&](size_t p) { return !std::isfinite(table.columns[p][i]); });
    if (bad != places.end()) {
      require(missing == Missing::drop_row && std::isnan(table.columns[*bad][i]),
              "{path}: row {i}, column \"{bad}\": expected a number, found {bad_2}", "path"_a = path, "i"_a = i + 1,
              "bad"_a = table.names[*bad], "bad_2"_a = table.columns[*bad][i]);
      ++out.dropped;
      continue;
    }
    for (size_t c = 0; c < places.size(); ++c) out.table.columns[c].push_back(table.columns[places[c]][i]);
  }
  return out;
}

bool is_file(const std::string& text) {
  return text.ends_with(".csv") || text.ends_with(".tsv") || text.ends_with(".npy");
}

std::vector<std::string> column_names(const std::string& path) {
  return path.ends_with(".npy") ? npy_table(path).names : csv_columns(path);
}

CsvContent read_columns(const std::string& path, const std::vector<std::string>& wanted, Missing missing) {
  if (path.ends_with(".npy")) return pick(path, npy_table(path), wanted, missing);
  return read_csv(
      path,
      {.columns = wanted, .missing = missing, .missing_hint = tr("--drop-missing drops rows with missing numbers")});
}

std::vector<double> numbers(const std::string& text) {
  std::vector<double> out;
  for (const std::string& part : split(text, ',')) {
    const auto value = parse_number(part);
    if (!value) throw UsageError(tr("--at: expected numbers or a .csv or .npy file, got \"{text}\"", "text"_a = text));
    out.push_back(*value);
  }
  return out;
}

}  // namespace

report::RegressionData read_regress_data(const std::string& path, std::vector<std::string> x,
                                         std::vector<std::string> y, Missing missing) {
  if (x.empty() || y.empty()) {
    const std::vector<std::string> all = column_names(path);
    require(all.size() >= 2, "{path}: has {columns} column; a regression needs an x and a y", "path"_a = path,
            "columns"_a = all.size());
    if (y.empty()) y = {all.back()};
    if (x.empty())
      for (const std::string& name : all)
        if (std::find(y.begin(), y.end(), name) == y.end()) x.push_back(name);
    require(!x.empty(), "{path}: no column is left for x", "path"_a = path);
  }
  std::vector<std::string> wanted = x;
  wanted.insert(wanted.end(), y.begin(), y.end());
  CsvContent content = read_columns(path, wanted, missing);
  require(content.table.rows() > 0 || content.dropped == 0, "{path}: has no rows left after {dropped} were dropped",
          "path"_a = path, "dropped"_a = content.dropped);
  require(content.table.rows() > 0, "{path}: has no rows", "path"_a = path);
  const auto& names = content.table.names;
  const std::span columns(content.table.columns);
  return {.x_names = {names.begin(), names.begin() + static_cast<std::ptrdiff_t>(x.size())},
          .y_names = {names.begin() + static_cast<std::ptrdiff_t>(x.size()), names.end()},
          .x = Points::from_columns(columns.first(x.size())),
          .y = Points::from_columns(columns.subspan(x.size())),
          .dropped = content.dropped};
}

Points read_points(const std::vector<std::string>& texts, const std::vector<std::string>& x_names) {
  Points out(0, static_cast<int64_t>(x_names.size()));
  const size_t d = x_names.size();
  for (const std::string& text : texts) {
    if (is_file(text)) {
      const std::vector<std::string> all = column_names(text);
      const std::set<std::string_view> known(all.begin(), all.end());
      const auto is_there = [&](const std::string& name) { return known.contains(name); };
      const bool named = std::all_of(x_names.begin(), x_names.end(), is_there);
      require(named || all.size() == d, "{text}: has {columns} columns, x has {d}, and their names differ",
              "text"_a = text, "columns"_a = all.size(), "d"_a = d);
      const Points points =
          Points::from_columns(read_columns(text, named ? x_names : all, Missing::refuse).table.columns);
      out.values.insert(out.values.end(), points.values.begin(), points.values.end());
      out.rows += points.rows;
      continue;
    }
    const std::vector<double> values = numbers(text);
    if (d > 1 && values.size() != d)
      throw UsageError(tr("--at: a point needs {d} numbers, got {values} in \"{text}\"", "d"_a = d,
                          "values"_a = values.size(), "text"_a = text));
    out.values.insert(out.values.end(), values.begin(), values.end());
    out.rows += static_cast<int64_t>(d > 1 ? 1 : values.size());
  }
  return out;
}

}  // namespace qkv::cli
