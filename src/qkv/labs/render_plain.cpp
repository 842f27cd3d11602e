// Blocks as text for a terminal.
#include <algorithm>

#include "qkv/labs/formula.h"
#include "qkv/labs/markup.h"
#include "qkv/labs/plain_table.h"
#include "qkv/labs/render.h"
#include "qkv/labs/typeset.h"
#include "qkv/labs/wrap.h"
#include "qkv/plot/terminal.h"

namespace qkv::labs {
namespace {

constexpr int kWidestText = 100;  // longer lines are hard to read
constexpr int kMark = 6;          // columns for the mark before a claim or a fact
constexpr const char *kBold = "\x1b[1m", *kDim = "\x1b[2m", *kGreen = "\x1b[32m", *kRed = "\x1b[1;31m",
                     *kCyan = "\x1b[36m", *kPlain = "\x1b[0m";

struct PlainWriter {
  Scripts scripts;
  bool colour;
  std::string plain(std::string_view s) { return std::string(s); }
  std::string code(std::string_view s) { return colour ? kCyan + std::string(s) + kPlain : std::string(s); }
  std::string strong(std::string_view s) { return colour ? kBold + std::string(s) + kPlain : std::string(s); }
  std::string formula(std::string_view s) { return plain_formula(s, scripts); }
};

// Finds whether every formula of a paragraph can use small letters for its scripts: all should look alike.
struct ScriptFinder {
  Scripts* scripts;
  std::string plain(std::string_view) { return ""; }
  std::string code(std::string_view) { return ""; }
  std::string strong(std::string_view) { return ""; }
  std::string formula(std::string_view s) {
    if (scripts_of(s) == Scripts::marked) *scripts = Scripts::marked;
    return "";
  }
};

class PlainPage {
 public:
  PlainPage(Language language, const PlainStyle& style)
      : language_(language), style_(style), text_columns_(std::min(style.columns, kWidestText)) {}

  std::string operator()(const Heading& b) const {
    return "\n" + in(kBold, wrapped("== " + typeset(b.text, language_) + " ==", text_columns_, 3)) + "\n";
  }
  std::string operator()(const Paragraph& b) const { return wrapped(written(b.text), text_columns_) + "\n"; }
  std::string operator()(const Question& b) const {
    return wrapped(in(kBold, tr("Question:").in(language_)) + " " + written(b.text), text_columns_) + "\n";
  }
  std::string operator()(const Answer& b) const {
    return wrapped(in(kBold, tr("In one sentence:").in(language_)) + " " + written(b.text), text_columns_) + "\n";
  }
  std::string operator()(const Sketch& b) const {
    std::string out =
        "\n" +
        wrapped(in(kDim, tr("[diagram {name}]", "name"_a = b.name).in(language_)) + " " + written(b.caption),
                text_columns_, 2) +
        "\n";
    if (!style_.folder.empty()) out += "  " + in(kDim, style_.folder + "/" + b.name + ".svg") + "\n";
    return out;
  }
  std::string operator()(const Formula& b) const {
    return wrapped("    " + plain_formula(b.tex), style_.columns, 8) + "\n";
  }
  std::string operator()(const Output& b) const {
    const std::string text = b.text.in(language_);
    std::string out;
    for (std::string_view rest = text; !rest.empty();) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      out += wrapped(rest.substr(0, end), style_.columns, 4) + "\n";
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return out;
  }
  std::string operator()(const Picture& b) const {
    const std::string name = tr("[figure {name}]", "name"_a = b.name).in(language_);
    std::string out;
    if (style_.figures)
      out += "\n" + terminal(b.figure, {std::clamp(style_.columns, 20, kWidestText),
                                        style_.colour ? TerminalColour::truecolor : TerminalColour::ascii, language_});
    out += wrapped(in(kDim, name) + " " + written(b.caption), text_columns_, 2) + "\n";
    if (!b.explore.empty()) out += wrapped("  " + in(kDim, explored(b.explore)), text_columns_, 2) + "\n";
    if (!style_.folder.empty()) out += "  " + in(kDim, style_.folder + "/" + b.name + ".svg") + "\n";
    return out + (style_.figures ? "\n" : "");
  }
  std::string operator()(const Table& b) const {
    const auto row = [&](const std::vector<Text>& cells) {
      std::vector<std::string> out;
      for (const Text& cell : cells) out.push_back(written(cell));
      return out;
    };
    std::vector<std::vector<std::string>> rows;
    for (const auto& cells : b.rows) rows.push_back(row(cells));
    return plain_table(row(b.head), rows, style_.columns, style_.colour);
  }
  std::string operator()(const Fact& b) const {
    return wrapped("-     " + written(b.text) + (b.measured.empty() ? "" : " " + evidence(b.measured)), text_columns_,
                   kMark) +
           "\n";
  }
  std::string operator()(const Claim& b) const {
    const std::string mark = (b.holds ? tr("ok") : tr("FAILED")).in(language_);
    const int indent = std::max(kMark, columns_of(mark) + 1);
    const std::string gap(static_cast<size_t>(indent - columns_of(mark)), ' ');
    return wrapped(in(b.holds ? kGreen : kRed, mark) + gap + written(b.text) + " " + evidence(b.measured),
                   text_columns_, indent) +
           "\n";
  }

 private:
  // A long address is in the report, to be clicked.
  std::string explored(const std::string& address) const {
    if (address.size() <= kLongestLink)
      return tr("explore: {command}, {link}", "command"_a = "qkv serve", "link"_a = address).in(language_);
    return tr("explore: {command}, {bench} (the whole address is in the HTML report)", "command"_a = "qkv serve",
              "bench"_a = address.substr(0, address.find('?')))
        .in(language_);
  }
  std::string in(const char* code, const std::string& text) const {
    return style_.colour ? code + text + kPlain : text;
  }
  std::string written(const Text& text) const {
    const std::string set = typeset(text, language_);
    Scripts scripts = Scripts::small;
    marked_up(set, ScriptFinder{&scripts});
    return marked_up(set, PlainWriter{scripts, style_.colour});
  }
  std::string evidence(const Text& measured) const { return in(kDim, "[" + typeset(measured, language_) + "]"); }

  Language language_;
  const PlainStyle& style_;
  int text_columns_;
};

}  // namespace

std::string plain(const Block& block, Language language, const PlainStyle& style) {
  return std::visit(PlainPage(language, style), block);
}

std::string plain_title(const Lab& lab, Language language, const PlainStyle& style) {
  const std::string title = wrapped(lab.section + " " + lab.title.in(language), style.columns);
  return (style.colour ? kBold + title + kPlain : title) + "\n";
}

}  // namespace qkv::labs
