// The terminal backend: panels beside each other if they fit.
#include "qkv/plot/terminal.h"

#include <algorithm>

#include "qkv/core/check.h"
#include "qkv/plot/terminal_panels.h"
#include "qkv/plot/text.h"

namespace qkv {
namespace plotting {
namespace {

constexpr int kGap = 2, kNarrowestPanel = 22;

TextCanvas panel_block(const TerminalPage& page, size_t index, const PanelRanges& ranges, const ColourRange& colours,
                       int columns) {
  const Panel& panel = page.figure.panels[index];
  if (const Curves* c = std::get_if<Curves>(&panel.content)) return curve_panel(page, panel, *c, ranges, columns);
  if (const Bars* b = std::get_if<Bars>(&panel.content)) return bar_panel(page, panel, *b, ranges.y, columns);
  if (const Histogram* h = std::get_if<Histogram>(&panel.content))
    return bar_panel(page, panel, as_bars(page, *h), ranges.y, columns);
  TextCanvas block = heat_panel(page, panel, std::get<HeatMap>(panel.content), colours, columns);
  if (!page.figure.colours.per_panel || !page.figure.colours.bar) return block;
  const TextCanvas bar = colour_bar_line(page, colours, columns);
  TextCanvas both(std::max(block.width(), bar.width()), block.height() + 1);
  both.copy(block, 0, 0);
  both.copy(bar, 0, block.height());
  return both;
}

TextCanvas beside(const std::vector<TextCanvas>& blocks) {
  int width = -kGap, height = 0;
  for (const TextCanvas& b : blocks) {
    width += b.width() + kGap;
    height = std::max(height, b.height());
  }
  TextCanvas out(width, height);
  int x = 0;
  for (const TextCanvas& b : blocks) {
    out.copy(b, x, 0);
    x += b.width() + kGap;
  }
  return out;
}

TextCanvas below(const std::vector<TextCanvas>& blocks) {
  int width = 0, height = 0;
  for (const TextCanvas& b : blocks) {
    width = std::max(width, b.width());
    height += b.height();
  }
  TextCanvas out(width, height);
  int y = 0;
  for (const TextCanvas& b : blocks) {
    out.copy(b, 0, y);
    y += b.height();
  }
  return out;
}

}  // namespace

std::string TerminalPage::number(std::string label) const {
  if (!ascii) return label;
  std::string out;
  constexpr std::u32string_view raised = U"⁰¹²³⁴⁵⁶⁷⁸⁹";
  for (char32_t p : code_points(label)) {
    if (p == U'−' || p == U'⁻')
      out += '-';
    else if (p == U'∞')
      out += "inf";
    else if (const size_t digit = raised.find(p); digit != raised.npos) {
      if (out.ends_with("x10"))
        out.replace(out.size() - 3, 3, "e");
      else if (out.ends_with("x10-"))
        out.replace(out.size() - 4, 4, "e-");
      else if (out == "10" || out == "10-")
        out = out == "10" ? "1e" : "1e-";
      out += static_cast<char>('0' + digit);
    } else if (p == U'×')
      out += 'x';
    else
      append_utf8(out, p);
  }
  return out;
}

void TerminalPage::draw_header(TextCanvas& canvas, const Panel& panel, int left, int width) const {
  if (titles) {  // a title wider than the content below it may extend to the edge
    const int room = std::max(width, canvas.width() - left);
    const bool too_wide = display_width(panel.title.str()) > room && !panel.short_title.empty();
    const std::string title = (too_wide ? panel.short_title : panel.title).str();
    canvas.centred(left, display_width(title) > width ? room : width, 0, title);
  }
  if (y_labels) canvas.text(0, titles ? 1 : 0, cut(panel.y.label.str(), canvas.width()));
}

}  // namespace plotting

std::string terminal(const Figure& any_language, const TerminalOptions& options) {
  using namespace plotting;
  validate(any_language);
  const Figure figure = translated(any_language, options.language);
  check(options.columns >= 20 && options.columns <= 10000, "[terminal] needs 20 to 10000 columns, got ",
        options.columns);
  TerminalPage page{figure, options.colour == TerminalColour::ascii, options.language};
  page.lines = figure.rows * figure.cols == 1 ? 16 : 11;
  bool heat = false;
  for (const Panel& p : figure.panels) heat |= std::holds_alternative<HeatMap>(p.content);
  const std::vector<PanelRanges> ranges = panel_ranges(figure);
  const std::vector<ColourRange> colours = colour_ranges(figure);
  const int fitting = std::clamp((options.columns + kGap) / (kNarrowestPanel + kGap), 1, figure.cols);
  const int lines = (figure.cols + fitting - 1) / fitting,
            per_line = (figure.cols + lines - 1) / lines;  // 4 panels break as 2 + 2, not 3 + 1
  const int budget = (options.columns - kGap * (per_line - 1)) / per_line;
  std::vector<TextCanvas> parts;
  for (int row = 0; row < figure.rows; ++row) {
    for (int first = 0; first < figure.cols; first += per_line) {
      if (!parts.empty()) parts.emplace_back(0, 1);
      std::vector<TextCanvas> line;
      const size_t from = static_cast<size_t>(row) * figure.cols + first,
                   to = from + std::min(per_line, figure.cols - first);
      page.titles = page.y_labels = false;
      for (size_t i = from; i < to; ++i) {
        page.titles |= !figure.panels[i].title.empty();
        page.y_labels |= !figure.panels[i].y.label.empty();
      }
      for (size_t i = from; i < to; ++i) {
        line.push_back(panel_block(page, i, ranges[i], colours[i], budget));
      }
      parts.push_back(beside(line));
    }
  }
  if (heat && figure.colours.bar && !figure.colours.per_panel) {
    parts.emplace_back(0, 1);
    parts.push_back(colour_bar_line(page, colours[0], options.columns));
  }
  if (!figure.title.empty()) {
    int width = std::min(display_width(figure.title.str()), options.columns);
    for (const TextCanvas& p : parts) width = std::max(width, p.width());
    TextCanvas title(width, 1);
    title.centred(0, width, 0, figure.title.str());
    parts.insert(parts.begin(), title);
  }
  return below(parts).str();
}

}  // namespace qkv
