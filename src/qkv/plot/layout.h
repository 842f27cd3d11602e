// The position of every part of a figure, in pixels, computed from the sizes of its texts before anything is drawn.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "qkv/plot/axes.h"
#include "qkv/plot/figure.h"

namespace qkv::plotting {

/// In pixels. A figure no wider than the page is not scaled down, so a reader sees these sizes; no text is smaller than
/// kLeastFont.
inline constexpr double kFont = 12, kTitleFont = 13, kFigureTitleFont = 14.5, kCellFont = 10.5, kLeastFont = 9;
inline constexpr double kLabelGap = 6, kTickLength = 3.5;

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};

/// Tick marks along one side of a panel.
struct Mark {
  double place;  // 0 at the left or top end of the axis, 1 at the right or bottom end
  std::string label;
};
struct AxisMarks {
  std::vector<Mark> marks;
  std::vector<double> minor;     // positions of short ticks without labels
  int angle = 0;                 // of the labels: 0, 45 or 90 degrees
  double depth = 0;              // pixels from the frame to the far end of the labels
  double before = 0, after = 0;  // pixels by which labels extend beyond the two ends of the axis
};

struct LegendEntry {
  std::string name;
  size_t place;
  enum class Kind { line, band, fill } kind;
};

struct LegendPlan {
  std::vector<LegendEntry> entries;
  Box box;               // relative to the frame's top left corner
  bool outside = false;  // to the right of the frame
};

/// The positions of a figure's panels when each of its rows is broken into lines.
struct Arrangement {
  int rows = 1, cols = 1, lines = 1, across = 1;  // across: panels in a row of the figure
  Arrangement() = default;
  Arrangement(const Figure& figure, int lines_of_a_row);
  int row_of(size_t index) const {
    return static_cast<int>(index) / across * lines + static_cast<int>(index) % across / cols;
  }
  int col_of(size_t index) const { return static_cast<int>(index) % across % cols; }
  bool has_below(size_t index) const;
};

struct PanelPlan {
  Box frame;
  std::string title, x_label, y_label;
  Range x, y;
  AxisMarks x_marks, y_marks;
  bool x_labels = true, y_labels = true;            // false inside a grid of shared axes
  double left = 0, right = 0, top = 0, bottom = 0;  // space that the panel needs around its frame
  LegendPlan legend;
  ColourRange colours;
  std::optional<Box> bar;  // its own colour bar
};

struct FigurePlan {
  double width = 0, height = 0;
  Arrangement grid;
  std::vector<PanelPlan> panels;
  std::optional<Box> bar;  // the shared colour bar
  ColourRange colours;
};

/// Rows of panels wider than Figure::widest are broken, and the panels are drawn larger if that gives room.
FigurePlan layout(const Figure& figure);
/// Figures below each other; if they have the same columns, these are aligned.
std::vector<FigurePlan> layout(std::span<const Figure> figures);

/// The ticks of both axes of a frame of this size.
void plan_marks(const Panel& panel, PanelPlan& plan, double width, double height);

/// The ticks of a colour bar of this height.
std::vector<Tick> bar_ticks(const ColourRange& range, double height);

/// The legend of a panel whose frame has this size: in the emptiest corner, or outside if every corner is occupied.
LegendPlan plan_legend(const Panel& panel, const Range& x, const Range& y, double width, double height);

inline constexpr double kLegendLine = 16.5, kLegendSample = 26, kLegendPadding = 5;

}  // namespace qkv::plotting
