// Blocks as text for a terminal.
#include <algorithm>

#include "qkv/labs/formula.h"
#include "qkv/labs/markup.h"
#include "qkv/labs/render.h"
#include "qkv/plot/text.h"

namespace qkv::labs {
namespace {

struct PlainWriter {
  std::string plain(std::string_view s) { return std::string(s); }
  std::string code(std::string_view s) { return std::string(s); }
  std::string strong(std::string_view s) { return std::string(s); }
  std::string formula(std::string_view s) { return plain_formula(s); }
};

// Breaks at spaces, and anywhere between wide characters, so that no line is wider than 96 columns.
std::string wrapped(const std::string& text) {
  constexpr int kWidth = 96;
  std::string out, line, word;
  const auto flush_word = [&] {
    if (plotting::display_width(line) + plotting::display_width(word) > kWidth && !line.empty()) {
      while (!line.empty() && line.back() == ' ') line.pop_back();
      out += line + "\n";
      line.clear();
      while (!word.empty() && word.front() == ' ') word.erase(0, 1);
    }
    line += word;
    word.clear();
  };
  for (size_t i = 0; i < text.size();) {
    size_t length = 1;
    while (i + length < text.size() && (static_cast<unsigned char>(text[i + length]) & 0xC0) == 0x80) ++length;
    const std::string letter = text.substr(i, length);
    if (letter == " " || plotting::display_width(letter) > 1) flush_word();
    word += letter;
    i += length;
  }
  flush_word();
  return out + line;
}

std::string table_text(const Table& table, Language language) {
  std::vector<std::vector<std::string>> rows;
  const auto add_row = [&](const std::vector<Text>& cells) {
    rows.emplace_back();
    for (const Text& cell : cells) rows.back().push_back(marked_up(cell.in(language), PlainWriter{}));
  };
  add_row(table.head);
  for (const auto& cells : table.rows) add_row(cells);
  std::vector<int> widths;
  for (const auto& row : rows)
    for (size_t c = 0; c < row.size(); ++c) {
      if (c >= widths.size()) widths.push_back(0);
      widths[c] = std::max(widths[c], static_cast<int>(plotting::display_width(row[c])));
    }
  std::string out;
  for (size_t r = 0; r < rows.size(); ++r) {
    std::string line = "  ";
    for (size_t c = 0; c < rows[r].size(); ++c)
      line += rows[r][c] + std::string(static_cast<size_t>(widths[c] - static_cast<int>(plotting::display_width(rows[r][c])) + 2), ' ');
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out += line + "\n";
    if (r == 0) {
      int total = 0;
      for (int w : widths) total += w + 2;
      out += "  " + std::string(static_cast<size_t>(std::max(total - 2, 0)), '-') + "\n";
    }
  }
  return out;
}

}  // namespace

std::string plain(const Block& block, Language language) {
  if (auto* b = std::get_if<Heading>(&block)) return "\n== " + b->text.in(language) + " ==\n";
  if (auto* b = std::get_if<Paragraph>(&block)) return wrapped(marked_up(b->text.in(language), PlainWriter{})) + "\n";
  if (auto* b = std::get_if<Formula>(&block)) return "    " + plain_formula(b->tex) + "\n";
  if (auto* b = std::get_if<Output>(&block)) return b->text + (b->text.ends_with('\n') ? "" : "\n");
  if (auto* b = std::get_if<Picture>(&block))
    return wrapped((language == Language::zh ? "[图 " : "[figure ") + b->name + "] " + marked_up(b->caption.in(language), PlainWriter{})) + "\n";
  if (auto* b = std::get_if<Table>(&block)) return table_text(*b, language);
  if (auto* b = std::get_if<Fact>(&block))
    return wrapped("-     " + marked_up(b->text.in(language), PlainWriter{}) + (b->measured.empty() ? "" : " [" + b->measured + "]")) + "\n";
  const auto& claim = std::get<Claim>(block);
  const char* mark = claim.holds ? (language == Language::zh ? "成立 " : "ok    ") : (language == Language::zh ? "不成立 " : "FAILED ");
  return wrapped(mark + marked_up(claim.text.in(language), PlainWriter{}) + " [" + claim.measured + "]") + "\n";
}

}  // namespace qkv::labs
