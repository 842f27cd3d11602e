// Reading and writing CSV.
#include "qkv/io/csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "qkv/core/check.h"
#include "qkv/core/limits.h"
#include "qkv/core/numbers.h"
#include "qkv/core/suggest.h"
#include "qkv/io/atomic_file.h"
#include "qkv/io/file.h"

namespace qkv {
namespace {

std::string_view trimmed(std::string_view cell) {
  while (!cell.empty() && (cell.front() == ' ' || cell.front() == '\t')) cell.remove_prefix(1);
  while (!cell.empty() && (cell.back() == ' ' || cell.back() == '\t')) cell.remove_suffix(1);
  return cell;
}

bool is_missing(std::string_view cell) {
  std::string lower(cell.substr(0, 5));
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return lower.empty() || lower == "nan" || lower == "na" || lower == "null";
}

/// A finite number that fills the whole cell.
std::optional<double> number(std::string_view cell) {
  if (cell.size() > 1 && cell.front() == '+' && cell[1] != '-') cell.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error == std::errc::result_out_of_range &&
      end == cell.data() + cell.size()) {  // tiny numbers become zero; huge ones are refused
    const size_t e = cell.find_first_of("eE");
    if (e != std::string_view::npos && e + 1 < cell.size() && cell[e + 1] == '-') return 0.0;
    return std::nullopt;
  }
  if (error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// A cell for a message: cut to a length that fits a line, control characters as dots.
std::string shown(std::string_view cell) {
  constexpr size_t kLength = 40;
  size_t length = std::min(cell.size(), kLength);
  while (length < cell.size() && length > 0 && (cell[length] & 0xC0) == 0x80)
    --length;  // not in the middle of a character
  std::string out(cell.substr(0, length));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = '.';
  return length < cell.size() ? out + "..." : out;
}

/// The records of a CSV text, one at a time.
class Records {
 public:
  Records(std::string_view text, const std::string& name) : text_(text), name_(name) {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
    require(!text_.starts_with("\xFF\xFE") && !text_.starts_with("\xFE\xFF"), "{name}: is UTF-16, expected UTF-8",
            "name"_a = name_);
    delimiter_ = find_delimiter();
  }

  /// The next record that is not blank, or false at the end.
  bool next() {
    while (at_ < text_.size()) {
      line_ = next_line_;
      read_record();
      if (count_ > 1 || !trimmed(cell(0)).empty() || quoted_) return true;
    }
    return false;
  }

  size_t size() const { return count_; }
  std::string_view cell(size_t i) const {
    return cells_[i].own.empty() ? cells_[i].view : std::string_view(cells_[i].own);
  }
  int64_t line() const { return line_; }

 private:
  struct Cell {
    std::string_view view;
    std::string own;  // only if quotes had to be unescaped
  };

  char find_delimiter() const {
    bool quoted = false, semicolon = false;
    for (const char c : text_) {
      if (c == '"') quoted = !quoted;
      if (quoted) continue;
      if (c == '\t') return '\t';
      if (c == ';') semicolon = true;
      if (c == '\n' || c == '\r') {
        if (semicolon) break;
        return ',';
      }
    }
    return semicolon ? ';' : ',';
  }

  void read_record() {
    count_ = 0;
    quoted_ = false;
    for (;;) {
      if (count_ == cells_.size()) cells_.emplace_back();
      require(count_ < limits::kColumns, "{name}: line {line} has more than {most} cells", "name"_a = name_,
              "line"_a = line_, "most"_a = limits::kColumns);
      Cell& cell = cells_[count_++];
      cell.own.clear();
      size_t start = at_;
      while (start < text_.size() && text_[start] == ' ') ++start;
      if (start < text_.size() && text_[start] == '"') {
        at_ = start + 1;
        read_quoted(cell);
      } else {
        const char ends[] = {delimiter_, '\r', '\n'};
        const size_t end = std::min(text_.find_first_of(std::string_view(ends, 3), at_), text_.size());
        cell.view = text_.substr(at_, end - at_);
        at_ = end;
      }
      if (at_ < text_.size() && text_[at_] == delimiter_) {
        ++at_;
        if (at_ < text_.size()) continue;
        if (count_ == cells_.size()) cells_.emplace_back();
        cells_[count_].own.clear();
        cells_[count_++].view = {};  // the file ends in a delimiter: one more empty cell
        return;
      }
      if (at_ < text_.size() && text_[at_] == '\r') ++at_;
      if (at_ < text_.size() && text_[at_] == '\n') ++at_;
      ++next_line_;
      return;
    }
  }

  void read_quoted(Cell& cell) {
    quoted_ = true;
    cell.view = {};
    for (;;) {
      const size_t end = text_.find('"', at_);
      require(end != std::string_view::npos, "{name}: line {line}: a quote is opened and never closed",
              "name"_a = name_, "line"_a = line_);
      const std::string_view part = text_.substr(at_, end - at_);
      next_line_ += std::count(part.begin(), part.end(), '\n');
      at_ = end + 1;
      const bool escaped = at_ < text_.size() && text_[at_] == '"';
      if (cell.own.empty() && !escaped)
        cell.view = part;
      else
        cell.own += part;
      if (!escaped) break;
      cell.own += '"';
      ++at_;
    }
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    require(at_ == text_.size() || text_[at_] == delimiter_ || text_[at_] == '\r' || text_[at_] == '\n',
            "{name}: line {line}: expected a separator after a quoted cell, found \"{found}\"", "name"_a = name_,
            "line"_a = next_line_, "found"_a = shown(text_.substr(std::min(at_, text_.size()), 1)));
  }

  std::string_view text_;
  const std::string& name_;
  char delimiter_ = ',';
  size_t at_ = 0, count_ = 0;
  int64_t line_ = 1, next_line_ = 1;
  bool quoted_ = false;
  std::vector<Cell> cells_;
};

/// Positions of the wanted columns among the names.
std::vector<size_t> places(const std::vector<std::string>& wanted, const std::vector<std::string>& names,
                           const std::string& file) {
  std::vector<size_t> out;
  if (wanted.empty()) {
    for (size_t i = 0; i < names.size(); ++i) out.push_back(i);
    return out;
  }
  std::unordered_map<std::string_view, size_t> first_of;  // a table may have very many columns, all of them wanted
  std::unordered_set<std::string_view> twice;
  for (size_t i = 0; i < names.size(); ++i)
    if (!first_of.emplace(names[i], i).second) twice.insert(names[i]);
  for (const std::string& want : wanted) {
    require(!twice.contains(want), "{file}: two columns are called \"{want}\": name it by its number", "file"_a = file,
            "want"_a = shown(want));
    const auto found = first_of.find(want);
    size_t place = found == first_of.end() ? names.size() : found->second, counted = 0;
    const auto [end, error] = std::from_chars(want.data(), want.data() + want.size(), counted);
    if (found == first_of.end() && error == std::errc() && end == want.data() + want.size() && counted >= 1 &&
        counted <= names.size())
      place = counted - 1;
    if (place == names.size()) {
      constexpr size_t kListed = 20;
      std::string list;
      for (size_t i = 0; i < std::min(names.size(), kListed); ++i)
        list += text(i ? ", " : "", "\"", shown(names[i]), "\"");
      const std::string near = nearest_word(want, names);
      throw Error(names.size() > kListed
                      ? tr("{file}: there is no column \"{want}\"; the columns are {list} and {more} more",
                           "file"_a = file, "want"_a = shown(want), "list"_a = list, "more"_a = names.size() - kListed)
                      : tr("{file}: there is no column \"{want}\"; the columns are {list}", "file"_a = file,
                           "want"_a = shown(want), "list"_a = list),
                  near.empty() ? Text() : tr("did you mean \"{near}\"?", "near"_a = shown(near)));
    }
    out.push_back(place);
  }
  return out;
}

struct Header {
  std::vector<std::string> names;
  bool present = false;
};

/// Reads the first record.
Header read_header(Records& records, const std::string& name) {
  require(records.next(), "{name}: is empty", "name"_a = name);
  Header out;
  for (size_t i = 0; i < records.size(); ++i) {
    const std::string_view cell = trimmed(records.cell(i));
    out.present = out.present || (!is_missing(cell) && !number(cell));
    out.names.emplace_back(cell);
  }
  if (!out.present)
    for (size_t i = 0; i < out.names.size(); ++i) out.names[i] = std::to_string(i + 1);
  return out;
}

Text not_a_number(const std::string& name, int64_t line, const std::string& column, std::string_view cell) {
  return tr("{name}: line {line}, column \"{column}\": expected a number, found \"{cell}\"", "name"_a = name,
            "line"_a = line, "column"_a = shown(column), "cell"_a = shown(cell));
}

std::string whole_file(const std::string& path) {
  const InputFile file(path);
  require(file.size() <= limits::kTextBytes, "{path}: has {size} bytes, at most {most} are read as CSV",
          "path"_a = path, "size"_a = grouped(file.size()), "most"_a = grouped(limits::kTextBytes));
  std::string text(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

void append_number(std::string& out, double value) {
  std::array<char, 32> digits;
  out.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
}

void append_name(std::string& out, const std::string& name) {
  if (name.find_first_of(",;\t\"\r\n") == std::string::npos && trimmed(name) == name) {
    out += name;
    return;
  }
  out += '"';
  for (const char c : name) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  out += '"';
}

}  // namespace

CsvContent parse_csv(std::string_view text, const std::string& name, const CsvOptions& options) {
  Records records(text, name);
  const auto [names, header] = read_header(records, name);
  const size_t width = names.size();
  const std::vector<size_t> place = places(options.columns, names, name);
  CsvContent out;
  for (const size_t p : place) out.table.names.push_back(names[p]);
  out.table.columns.resize(place.size());
  std::vector<double> row(place.size());
  for (bool more = header ? records.next() : true; more; more = records.next()) {
    require(records.size() == width, "{name}: line {line} has {cells} cells, the first line has {width}",
            "name"_a = name, "line"_a = records.line(), "cells"_a = records.size(), "width"_a = width);
    bool missing = false;
    for (size_t c = 0; c < place.size(); ++c) {
      const std::string_view cell = trimmed(records.cell(place[c]));
      if (is_missing(cell)) {
        if (options.missing == Missing::refuse)
          throw Error(cell.empty()
                          ? tr("{name}: line {line}, column \"{column}\": expected a number, the cell is empty",
                               "name"_a = name, "line"_a = records.line(), "column"_a = shown(names[place[c]]))
                          : not_a_number(name, records.line(), names[place[c]], cell),
                      options.missing_hint);
        missing = true;
        continue;
      }
      const std::optional<double> value = number(cell);
      if (!value) throw Error(not_a_number(name, records.line(), names[place[c]], cell));
      row[c] = *value;
    }
    if (missing)
      ++out.dropped;
    else
      for (size_t c = 0; c < place.size(); ++c) out.table.columns[c].push_back(row[c]);
  }
  return out;
}

CsvContent read_csv(const std::string& path, const CsvOptions& options) {
  return parse_csv(whole_file(path), path, options);
}

std::vector<std::string> csv_columns(const std::string& path) {
  const std::string text = whole_file(path);
  Records records(text, path);
  return read_header(records, path).names;
}

std::string csv_text(const Table& table) {
  check(table.names.size() == table.columns.size(), "[csv] ", table.names.size(), " names for ", table.columns.size(),
        " columns");
  std::string out;
  for (size_t c = 0; c < table.names.size(); ++c) {
    if (c) out += ',';
    append_name(out, table.names[c]);
    check(static_cast<int64_t>(table.columns[c].size()) == table.rows(), "[csv] column \"", table.names[c], "\" has ",
          table.columns[c].size(), " rows, the first has ", table.rows());
  }
  out += '\n';
  for (size_t i = 0; i < static_cast<size_t>(table.rows()); ++i) {
    for (size_t c = 0; c < table.columns.size(); ++c) {
      if (c) out += ',';
      if (!std::isnan(table.columns[c][i]))
        append_number(out, table.columns[c][i]);
      else if (table.columns.size() == 1)
        out += "NaN";  // an empty line would be skipped as blank
    }
    out += '\n';
  }
  return out;
}

void write_csv(const std::string& path, const Table& table) { write_file(path, csv_text(table)); }

}  // namespace qkv
