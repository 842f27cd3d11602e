// Breaks text into lines.
#include "qkv/labs/wrap.h"

#include <algorithm>

#include "qkv/plot/text.h"

namespace qkv::labs {
namespace {

constexpr std::string_view kClosing = "，。、；：！？）】》”’」』%…", kOpening = "（【《“‘「『";

// Bytes of the character or escape code at the front.
size_t unit_length(std::string_view text) {
  if (text.starts_with("\x1b[")) {
    const size_t end = text.find('m');
    return end == text.npos ? text.size() : end + 1;
  }
  size_t length = 1;
  while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) ++length;
  return length;
}

int unit_columns(std::string_view unit) { return unit.starts_with('\x1b') ? 0 : plotting::display_width(unit); }

// Collects characters into words and words into lines.
class Lines {
 public:
  explicit Lines(int columns) : columns_(std::max(columns, 1)) {}

  void add(std::string_view unit) {
    if (unit == "\n") return end_line();
    const int wide = unit_columns(unit);
    const bool closing = kClosing.find(unit) != kClosing.npos;
    // A space ends a word; wide characters stand alone, but a closing mark stays with what it closes.
    if (unit == " " || (!closing && !after_opening_ && (wide > 1 || after_wide_))) end_word();
    word_ += unit;
    word_columns_ += wide;
    if (wide == 0) return;
    after_opening_ = kOpening.find(unit) != kOpening.npos;
    after_wide_ = wide > 1;
  }

  std::vector<std::string> finished() {
    end_line();
    return std::move(lines_);
  }

 private:
  void break_line() {
    while (line_.ends_with(' ')) line_.pop_back();
    lines_.push_back(std::move(line_));
    line_.clear();
    line_columns_ = 0;
  }
  void end_line() {
    end_word();
    break_line();
    after_wide_ = after_opening_ = false;
  }
  void end_word() {
    if (line_columns_ > 0 && line_columns_ + word_columns_ > columns_) {
      break_line();
      if (word_.starts_with(' ')) {
        word_.erase(0, 1);
        --word_columns_;
      }
    }
    for (std::string_view rest = word_; !rest.empty();) {
      const std::string_view unit = rest.substr(0, unit_length(rest));
      if (line_columns_ > 0 && line_columns_ + unit_columns(unit) > columns_) break_line();  // a word wider than a line
      line_ += unit;
      line_columns_ += unit_columns(unit);
      rest.remove_prefix(unit.size());
    }
    word_.clear();
    word_columns_ = 0;
  }

  int columns_, line_columns_ = 0, word_columns_ = 0;
  std::string line_, word_;
  std::vector<std::string> lines_;
  bool after_wide_ = false, after_opening_ = false;
};

}  // namespace

int columns_of(std::string_view utf8) {
  int columns = 0;
  for (; !utf8.empty(); utf8.remove_prefix(unit_length(utf8)))
    columns += unit_columns(utf8.substr(0, unit_length(utf8)));
  return columns;
}

std::vector<std::string> wrapped_lines(std::string_view utf8, int columns) {
  Lines lines(columns);
  for (; !utf8.empty(); utf8.remove_prefix(unit_length(utf8))) lines.add(utf8.substr(0, unit_length(utf8)));
  return lines.finished();
}

std::string wrapped(std::string_view utf8, int columns, int indent) {
  std::string out = wrapped_lines(utf8, columns)[0];
  std::string_view rest = utf8.substr(out.size());
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  if (rest.starts_with('\n')) rest.remove_prefix(1);
  if (rest.empty()) return out;
  for (const std::string& line : wrapped_lines(rest, columns - indent))
    out += "\n" + std::string(static_cast<size_t>(indent), ' ') + line;
  return out;
}

}  // namespace qkv::labs
