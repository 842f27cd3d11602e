// Tables for a terminal: column widths, and cells of several lines.
#include "qkv/labs/plain_table.h"

#include <algorithm>
#include <numeric>

#include "qkv/labs/wrap.h"

namespace qkv::labs {
namespace {

constexpr int kIndent = 2, kGap = 2;
using Cells = std::vector<std::string>;

struct Column {
  int widest = 0;   // of its cells
  int longest = 0;  // of its words: the column cannot be narrower
  bool numbers = true;
};

// The widest piece that wrapping would not break.
int longest_word(const std::string& cell) {
  int longest = 0;
  for (const std::string& line : wrapped_lines(cell, 1 << 20)) {
    std::string word;
    for (const char c : line + " ") {
      if (c != ' ') {
        word += c;
        continue;
      }
      // Lines may break between wide characters: four of them are enough for a column.
      longest = std::max(longest, static_cast<unsigned char>(word.empty() ? 'a' : word[0]) >= 0xE3
                                      ? std::min(columns_of(word), 8)
                                      : columns_of(word));
      word.clear();
    }
  }
  return longest;
}

bool looks_like_a_number(std::string_view cell) {
  for (const std::string_view sign : {"−", "-", "+", "±"})
    if (cell.starts_with(sign)) cell.remove_prefix(sign.size());
  return !cell.empty() && cell[0] >= '0' && cell[0] <= '9' && columns_of(cell) <= 14;
}

std::vector<Column> measure(const Cells& head, const std::vector<Cells>& rows) {
  std::vector<Column> columns(head.size());
  const auto add = [&](const Cells& cells, bool body) {
    for (size_t c = 0; c < cells.size(); ++c) {
      if (c >= columns.size()) columns.emplace_back();
      columns[c].widest = std::max(columns[c].widest, columns_of(cells[c]));
      columns[c].longest = std::max(columns[c].longest, longest_word(cells[c]));
      if (body && !cells[c].empty() && cells[c] != "-" && !looks_like_a_number(cells[c])) columns[c].numbers = false;
    }
  };
  add(head, false);
  for (const Cells& cells : rows) add(cells, true);
  return columns;
}

// Each column is as wide as its cells if there is room; if not, the wide ones shrink as far as their words allow. Empty
// if that is not enough.
std::vector<int> fitted(const std::vector<Column>& columns, const std::vector<size_t>& shown, int room) {
  room -= kGap * (static_cast<int>(shown.size()) - 1);
  const auto at = [&](int cap) {
    std::vector<int> widths;
    for (const size_t c : shown) widths.push_back(std::min(columns[c].widest, std::max(columns[c].longest, cap)));
    return widths;
  };
  for (int cap = room; cap >= 1; --cap) {
    std::vector<int> widths = at(cap);
    if (std::accumulate(widths.begin(), widths.end(), 0) <= room) return widths;
  }
  return {};
}

// Each column shrunk to the widest line that its cells were broken into.
std::vector<int> tightened(const Cells& head, const std::vector<Cells>& rows, const std::vector<size_t>& shown,
                           const std::vector<int>& widths) {
  std::vector<int> out(widths.size(), 0);
  const auto add = [&](const Cells& cells) {
    for (size_t i = 0; i < shown.size(); ++i)
      for (const std::string& line :
           wrapped_lines(shown[i] < cells.size() ? cells[shown[i]] : "", std::max(widths[i], 1)))
        out[i] = std::max(out[i], columns_of(line));
  };
  add(head);
  for (const Cells& cells : rows) add(cells);
  return out;
}

class Writer {
 public:
  Writer(const std::vector<Column>& columns, bool colour) : columns_(columns), colour_(colour) {}

  void part(const Cells& head, const std::vector<Cells>& rows, const std::vector<size_t>& shown,
            const std::vector<int>& widths) {
    if (!out_.empty()) out_ += "\n";
    row(head, shown, widths, true);
    const int total = std::accumulate(widths.begin(), widths.end(), 0) + kGap * (static_cast<int>(widths.size()) - 1);
    out_ += "  " + std::string(static_cast<size_t>(std::max(total, 0)), '-') + "\n";
    for (const Cells& cells : rows) row(cells, shown, widths, false);
  }
  std::string done() { return std::move(out_); }

 private:
  void row(const Cells& cells, const std::vector<size_t>& shown, const std::vector<int>& widths, bool head) {
    std::vector<std::vector<std::string>> lines;
    size_t height = 1;
    for (size_t i = 0; i < shown.size(); ++i) {
      lines.push_back(wrapped_lines(shown[i] < cells.size() ? cells[shown[i]] : "", std::max(widths[i], 1)));
      height = std::max(height, lines.back().size());
    }
    for (size_t y = 0; y < height; ++y) {
      std::string line(kIndent, ' ');
      for (size_t i = 0; i < shown.size(); ++i) {
        const std::string cell = y < lines[i].size() ? lines[i][y] : "";
        const std::string blanks(static_cast<size_t>(std::max(widths[i] - columns_of(cell), 0)), ' ');
        line += (i > 0 ? std::string(kGap, ' ') : "") + (columns_[shown[i]].numbers ? blanks + cell : cell + blanks);
      }
      while (line.ends_with(' ')) line.pop_back();
      out_ += head && colour_ ? "\x1b[1m" + line + "\x1b[0m\n" : line + "\n";
    }
  }

  const std::vector<Column>& columns_;
  bool colour_;
  std::string out_;
};

}  // namespace

std::string plain_table(const Cells& head, const std::vector<Cells>& rows, int columns, bool colour) {
  const std::vector<Column> all = measure(head, rows);
  if (all.empty()) return "";
  const int room = std::max(columns - kIndent, 1);
  Writer writer(all, colour);
  for (size_t next = 0; next < all.size();) {
    // As many columns as fit, always including the first.
    std::vector<size_t> shown;
    if (next > 0) shown.push_back(0);
    const size_t kept = shown.size();
    std::vector<int> widths;
    for (; next < all.size(); ++next) {
      shown.push_back(next);
      const auto wider = fitted(all, shown, room);
      if (wider.empty() && shown.size() > kept + 1) {
        shown.pop_back();
        break;
      }
      widths = wider;
      if (wider.empty()) {  // one column alone is too wide: its words are broken
        widths.assign(shown.size(), room);
        if (kept > 0) {
          widths[0] = std::min(all[0].widest, room / 2);
          widths[1] = std::max(room - widths[0] - kGap, 1);
        }
        ++next;
        break;
      }
    }
    writer.part(head, rows, shown, tightened(head, rows, shown, widths));
  }
  return writer.done();
}

}  // namespace qkv::labs
