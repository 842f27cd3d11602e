// Where everything of a figure goes, in pixels: computed from the sizes of its texts before anything is drawn.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "qkv/plot/axes.h"
#include "qkv/plot/figure.h"

namespace qkv::plotting {

inline constexpr double kFont = 10.5, kLabelGap = 6, kTitleFont = 11.5, kFigureTitleFont = 13, kTickLength = 3.5;

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};

/// Tick marks along one side of a panel.
struct Mark {
  double place;  // 0 at the left or top end of the axis, 1 at the other
  std::string label;
};
struct AxisMarks {
  std::vector<Mark> marks;
  std::vector<double> minor;     // places of short ticks without labels
  int angle = 0;                 // of the labels: 0, 45 or 90 degrees
  double depth = 0;              // pixels from the frame to the far end of the labels
  double before = 0, after = 0;  // pixels by which labels stand out beyond the two ends of the axis
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

struct PanelPlan {
  Box frame;
  Range x, y;
  AxisMarks x_marks, y_marks;
  bool x_labels = true, y_labels = true;            // false inside a grid of shared axes
  double left = 0, right = 0, top = 0, bottom = 0;  // what the panel needs around its frame
  LegendPlan legend;
  ColourRange colours;
  std::optional<Box> bar;  // its own colour bar
};

struct FigurePlan {
  double width = 0, height = 0;
  std::vector<PanelPlan> panels;
  std::optional<Box> bar;  // the shared colour bar
  ColourRange colours;
};

FigurePlan layout(const Figure& figure);

/// Ticks of a colour bar of that height.
std::vector<Tick> bar_ticks(const ColourRange& range, double height);

/// The legend of a panel whose frame has that size: in the emptiest corner, or outside when every corner is busy.
LegendPlan plan_legend(const Panel& panel, const Range& x, const Range& y, double width, double height);

inline constexpr double kLegendLine = 14.5, kLegendSample = 24, kLegendPadding = 5;

}  // namespace qkv::plotting
