// Panels of a figure as blocks of terminal cells.
#pragma once

#include "qkv/plot/axes.h"
#include "qkv/plot/terminal.h"
#include "qkv/plot/text_canvas.h"

namespace qkv::plotting {

/// Shared by all panels of a terminal figure.
struct TerminalPage {
  const Figure& figure;
  bool ascii;
  Language language = Language::en;       // of words that the figure does not bring
  bool titles = false, y_labels = false;  // some panel in the row has one, so all leave a line for it
  int lines = 16;                         // height of a panel of curves

  /// A tick label or number in the page's character set.
  std::string number(std::string label) const;
  std::string cut(std::string_view text, int columns) const { return cut_to(text, columns, ascii ? "~" : "…"); }
  /// The colour of a line, or none for the terminal's own colour: in ASCII, and for lines that are nearly black, which
  /// would not show on a dark terminal.
  std::optional<Colour> ink(Colour colour) const {
    return ascii || luminance(colour) < 0.05 ? std::nullopt : std::optional(colour);
  }
  int header() const { return (titles ? 1 : 0) + (y_labels ? 1 : 0); }
  void draw_header(TextCanvas& canvas, const Panel& panel, int left, int width) const;
};

TextCanvas heat_panel(const TerminalPage& page, const Panel& panel, const HeatMap& map, const ColourRange& colours,
                      int columns);
TextCanvas curve_panel(const TerminalPage& page, const Panel& panel, const Curves& curves, const PanelRanges& ranges,
                       int columns);
TextCanvas bar_panel(const TerminalPage& page, const Panel& panel, const Bars& bars, const Range& values, int columns);
/// A histogram as bars, one category per bin.
Bars as_bars(const TerminalPage& page, const Histogram& histogram);
/// One line: low, the colours between, high.
TextCanvas colour_bar_line(const TerminalPage& page, const ColourRange& range, int columns);

}  // namespace qkv::plotting
