// Ranges, ticks and numbers of axes.
#pragma once

#include <string>
#include <vector>

#include "qkv/plot/figure.h"

namespace qkv::plotting {

/// Whether a value can be placed on an axis: finite, and far enough from overflow that ranges stay finite.
inline bool drawable(double v) { return v > -1e300 && v < 1e300; }

struct Range {
  double low = 0, high = 1;
  AxisScale scale = AxisScale::linear;

  /// The position of a value: 0 at low, 1 at high; NaN if it has none.
  double fraction(double value) const;
};

struct Tick {
  double value;
  std::string label;
};

/// At most `at_most` ticks inside the range, at multiples of 1, 2 or 5 times a power of ten; on a log scale at powers
/// of ten if the range is wide enough.
std::vector<Tick> nice_ticks(const Range& range, int at_most);

/// On a log scale with few decades, the multiples 2 .. 9 of its powers of ten; else none.
std::vector<double> minor_ticks(const Range& range);

/// At most `at_most` indices 0, step, 2 step ... below count; the step is 1, 2 or 5 times a power of ten.
std::vector<int64_t> index_ticks(int64_t count, int at_most);

/// The labelled cells in a row of `count`, with their labels: indices, or round numbers if the cells span a numeric
/// axis.
struct CellTick {
  int64_t cell;
  std::string label;
};
std::vector<CellTick> cell_ticks(int64_t count, const std::optional<CellSpan>& span, int at_most);

/// A number with the decimals that a step needs: "0.25", "1.2×10⁶", "−3"; `step` 0: four significant digits.
std::string tick_label(double value, double step, double largest);
/// A number for a cell, a bar or a terminal line: at most four significant digits.
std::string short_number(double value);

/// The ranges of a panel's axes: its limits, else its data with a small margin.
struct PanelRanges {
  Range x, y;
};
/// The ranges of every panel, merged where the figure shares an axis.
std::vector<PanelRanges> panel_ranges(const Figure& figure);

/// The values at the two ends of each panel's colour scale; the same for all panels unless the figure wants one scale
/// per panel.
struct ColourRange {
  double low = 0, high = 1;
  bool has_nan = false;
  ColourMap map = ColourMap::reds;
  double fraction(double value) const;  // NaN stays NaN, infinities are mapped to the ends
};
std::vector<ColourRange> colour_ranges(const Figure& figure);

/// The style of series number `place`: its own, else the palette's.
LineStyle resolved_style(const Series& series, size_t place);
Colour palette(size_t place);

}  // namespace qkv::plotting
