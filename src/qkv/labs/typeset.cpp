// Finds numbers in text and rewrites them.
#include "qkv/labs/typeset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "qkv/labs/markup.h"
#include "qkv/plot/text.h"

namespace qkv::labs {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

std::string raised(int exponent) {
  constexpr const char* kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string out = exponent < 0 ? "⁻" : "";
  for (char c : std::to_string(std::abs(exponent))) out += kDigits[c - '0'];
  return out;
}

// "1.2554996" and -8 as "1.26 × 10⁻⁸"; `decimals` is the number of decimals given.
std::string power_of_ten(double mantissa, int decimals, int exponent) {
  decimals = std::min(decimals, 2);
  if (exponent >= -3 && exponent <= 4)
    return fmt::format("{:.{}f}", mantissa * std::pow(10, exponent), std::max(0, decimals - exponent));
  std::string digits = fmt::format("{:.{}f}", mantissa, decimals);
  if (digits.starts_with("10")) {
    digits = fmt::format("{:.{}f}", mantissa / 10, decimals);
    ++exponent;
  }
  return (digits == "1" ? "10" : digits + " × 10") + raised(exponent);
}

// Numbers such as 1.2e-07; everything else is copied.
std::string without_e(std::string_view text) {
  std::string out;
  size_t i = 0;
  while (i < text.size()) {
    const bool begins =
        is_digit(text[i]) && (i == 0 || (!is_digit(text[i - 1]) && !is_letter(text[i - 1]) && text[i - 1] != '.'));
    if (!begins) {
      out += text[i++];
      continue;
    }
    size_t end = i, decimals = 0;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (end + 1 < text.size() && text[end] == '.' && is_digit(text[end + 1]))
      for (++end; end < text.size() && is_digit(text[end]); ++end) ++decimals;
    size_t power = end + 1;
    if (power < text.size() && (text[power] == '-' || text[power] == '+')) ++power;
    size_t stop = power;
    while (stop < text.size() && is_digit(text[stop])) ++stop;
    const bool whole = end < text.size() && text[end] == 'e' && stop > power && stop - power <= 3 &&
                       (stop == text.size() || !is_letter(text[stop]));
    if (!whole) {
      out += text.substr(i, end - i);
      i = end;
      continue;
    }
    const int exponent = std::stoi(std::string(text.substr(power, stop - power))) * (text[power - 1] == '-' ? -1 : 1);
    out += power_of_ten(std::stod(std::string(text.substr(i, end - i))), static_cast<int>(decimals), exponent);
    i = stop;
  }
  return out;
}

struct Setter {
  std::string plain(std::string_view s) { return plotting::with_minus_signs(without_e(s)); }
  std::string code(std::string_view s) { return "`" + std::string(s) + "`"; }
  std::string strong(std::string_view s) { return "**" + plain(s) + "**"; }
  std::string formula(std::string_view s) { return "$" + std::string(s) + "$"; }
};

bool takes_no_letters(std::string_view cell) {
  constexpr std::string_view kMarks = "0123456789.,+-/%: ";
  for (char32_t p : plotting::code_points(cell)) {
    const bool mark = p < 0x80 && kMarks.find(static_cast<char>(p)) != kMarks.npos;
    if (!mark && std::u32string_view(U"−×±≈∞⁰¹²³⁴⁵⁶⁷⁸⁹⁻").find(p) == std::u32string_view::npos) return false;
  }
  return true;
}

// "12.5", "−3", "1.2 × 10⁻⁷", "98.5 %", "1.02 ms", and what is written where there is no number.
bool is_number(std::string_view cell) {
  for (std::string_view none : {"", "-", "–", "—", "NaN", "nan", "∞", "inf"})
    if (cell == none) return true;
  for (std::string_view unit :
       {" s", " ms", " µs", " ns", " kB", " MB", " GB", " KiB", " MiB", " GiB", " kg", " cm", "×", "x"})
    if (cell.ends_with(unit)) cell.remove_suffix(unit.size());
  return std::ranges::any_of(cell, is_digit) && takes_no_letters(cell);
}

}  // namespace

std::string typeset(std::string_view text) { return marked_up(text, Setter{}); }

std::string typeset(const Text& text, Language language) { return typeset(text.in(language)); }

bool is_number_column(const Table& table, size_t column, Language language) {
  return !table.rows.empty() && std::ranges::all_of(table.rows, [&](const std::vector<Text>& row) {
    return column < row.size() && is_number(typeset(row[column], language));
  });
}

}  // namespace qkv::labs
