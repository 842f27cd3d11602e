// Layout: preferred sizes, margins from label sizes, then the frames.
#include "qkv/plot/layout.h"

#include <algorithm>
#include <cmath>

#include "qkv/plot/text.h"

namespace qkv::plotting {
namespace {

constexpr double kPad = 8, kGap = 14, kBarWidth = 11, kBarGap = 12, kLongestLabel = 130, kPixelsPerInch = 96;

struct Size {
  double width, height;
};

// ---- tick labels ----

// Labels at cell centres under a horizontal axis: level if they fit, else at 45 degrees, else upright and thinned.
AxisMarks cell_marks_x(const std::vector<std::string>& labels, double length) {
  AxisMarks out;
  const size_t n = labels.size();
  if (n == 0) return out;
  const double cell = length / static_cast<double>(n);
  double widest = 0, pair = 0;
  std::vector<double> widths;
  for (const std::string& label : labels) {
    widths.push_back(text_width(label, kFont));
    widest = std::max(widest, widths.back());
    if (widths.size() > 1) pair = std::max(pair, (widths.back() + widths[widths.size() - 2]) / 2);
  }
  const bool level = pair + 5 <= cell && widest <= std::max(kLongestLabel, cell);
  out.angle = level ? 0 : cell >= kFont * 1.35 ? 45 : 90;
  const size_t every = out.angle == 90 ? static_cast<size_t>(std::ceil(kFont * 1.1 / cell)) : 1;
  for (size_t i = 0; i < n; i += every) {
    const std::string label = level ? labels[i] : shortened(labels[i], kFont, kLongestLabel);
    const double w = text_width(label, kFont), centre = (static_cast<double>(i) + 0.5) * cell;
    out.marks.push_back({centre / length, label});
    if (out.angle == 0) {
      out.before = std::max(out.before, w / 2 - centre);
      out.after = std::max(out.after, w / 2 - (length - centre));
      out.depth = kFont * 1.1;
    } else if (out.angle == 45) {
      out.before = std::max(out.before, w * 0.71 + 2 - centre);
      out.depth = std::max(out.depth, (w + kFont) * 0.71);
    } else {
      out.depth = std::max(out.depth, w);
    }
  }
  out.depth += kTickLength + 3;
  return out;
}

AxisMarks cell_marks_y(const std::vector<std::string>& labels, double length) {
  AxisMarks out;
  if (labels.empty()) return out;
  const double cell = length / static_cast<double>(labels.size());
  const size_t every = std::max<size_t>(1, static_cast<size_t>(std::ceil(kFont * 1.05 / cell)));
  for (size_t i = 0; i < labels.size(); i += every) {
    const std::string label = shortened(labels[i], kFont, kLongestLabel);
    out.marks.push_back({(static_cast<double>(i) + 0.5) * cell / length, label});
    out.depth = std::max(out.depth, text_width(label, kFont));
  }
  out.depth += kTickLength + 3;
  return out;
}

void measure_x(AxisMarks& out, double length) {
  out.depth = kTickLength + 3 + kFont * 1.1;
  for (const Mark& m : out.marks) {
    const double w = text_width(m.label, kFont);
    out.before = std::max(out.before, w / 2 - m.place * length);
    out.after = std::max(out.after, w / 2 - (1 - m.place) * length);
  }
}

void measure_y(AxisMarks& out) {
  for (const Mark& m : out.marks) out.depth = std::max(out.depth, text_width(m.label, kFont));
  out.depth += kTickLength + 3;
  out.before = out.after = kFont * 0.4;
}

bool overlaps(const std::vector<Mark>& marks, double length) {
  for (size_t i = 1; i < marks.size(); ++i) {
    const double room = std::abs(marks[i].place - marks[i - 1].place) * length;
    if ((text_width(marks[i].label, kFont) + text_width(marks[i - 1].label, kFont)) / 2 + 7 > room) return true;
  }
  return false;
}

AxisMarks index_marks(int64_t count, double length, bool horizontal) {
  AxisMarks out;
  for (int most = std::max(1, static_cast<int>(length / 20)); most >= 1; --most) {
    out.marks.clear();
    for (int64_t i : index_ticks(count, std::min(most, 10)))
      out.marks.push_back({(static_cast<double>(i) + 0.5) / static_cast<double>(count), std::to_string(i)});
    if (!horizontal || !overlaps(out.marks, length)) break;
  }
  if (horizontal)
    measure_x(out, length);
  else
    measure_y(out);
  return out;
}

AxisMarks number_marks(const Range& range, double length, bool horizontal) {
  AxisMarks out;
  for (int most = std::clamp(static_cast<int>(length / (horizontal ? 40 : 26)), 2, 8); most >= 1; --most) {
    out.marks.clear();
    for (const Tick& t : nice_ticks(range, most)) {
      const double place = range.fraction(t.value);
      out.marks.push_back({horizontal ? place : 1 - place, t.label});
    }
    if (!horizontal || !overlaps(out.marks, length)) break;
  }
  for (double v : minor_ticks(range)) out.minor.push_back(horizontal ? range.fraction(v) : 1 - range.fraction(v));
  if (horizontal)
    measure_x(out, length);
  else
    measure_y(out);
  return out;
}

void plan_marks(const Panel& panel, PanelPlan& plan, Size frame) {
  if (const HeatMap* map = std::get_if<HeatMap>(&panel.content)) {
    plan.x_marks = map->x_tokens.empty() ? index_marks(map->values.size(1), frame.width, true) : cell_marks_x(map->x_tokens, frame.width);
    plan.y_marks =
        map->y_tokens.empty() ? index_marks(map->values.size(0), frame.height, false) : cell_marks_y(map->y_tokens, frame.height);
    return;
  }
  const Bars* bars = std::get_if<Bars>(&panel.content);
  plan.x_marks = bars ? cell_marks_x(bars->categories, frame.width) : number_marks(plan.x, frame.width, true);
  plan.y_marks = number_marks(plan.y, frame.height, false);
}

// ---- colour bars ----

double bar_label_width(const ColourRange& range, double height) {
  double widest = range.has_nan ? text_width("NaN", kFont) : 0;
  for (const Tick& t : bar_ticks(range, height)) widest = std::max(widest, text_width(t.label, kFont));
  return widest;
}

double bar_space(const ColourRange& range, double height) { return kBarGap + kBarWidth + kTickLength + 3 + bar_label_width(range, height); }

double bar_height(double grid_height) { return std::min(grid_height, std::max(0.7 * grid_height, 110.0)); }

// A bar beside each heat map: when scales differ, and when other panels would stand between the maps and one bar.
bool own_bars(const Figure& figure) {
  bool mixed = false;
  for (const Panel& p : figure.panels) mixed |= !std::holds_alternative<HeatMap>(p.content);
  return figure.colours.bar && (figure.colours.per_panel || mixed);
}

// ---- sizes ----

Size preferred(const Figure& figure, const HeatMap& map) {
  const double rows = static_cast<double>(std::max<int64_t>(map.values.size(0), 1)),
               cols = static_cast<double>(std::max<int64_t>(map.values.size(1), 1));
  const double target = figure.cols * figure.rows == 1 ? 230 : figure.cols <= 2 ? 180 : 128;
  const bool tokens = !map.x_tokens.empty() || !map.y_tokens.empty();
  const double longest = std::max(rows, cols);
  const double least = map.cell_values ? 30 : tokens ? (longest <= 40 ? 19 : 12) : 0;
  double cell = std::clamp(target / longest, least, 40.0);
  if (map.values.numel() > 40000 && figure.panels.size() == 1) cell = 400 / longest;
  cell = std::min(cell, 1400 / longest);
  return {std::max(cols * cell, 36.0), std::max(rows * cell, map.values.numel() == 0 ? 90.0 : 36.0)};
}

Size preferred(const Figure& figure, const Panel& panel) {
  if (const HeatMap* map = std::get_if<HeatMap>(&panel.content)) return preferred(figure, *map);
  double width = figure.cols == 1 ? 300 : figure.cols == 2 ? 240 : 180;
  if (const Bars* bars = std::get_if<Bars>(&panel.content))
    width = std::clamp(static_cast<double>(bars->categories.size() * (bars->series.size() * 14 + 14)), width, 900.0);
  return {width, figure.cols <= 2 ? 190.0 : 145.0};
}

// The frame inside its slot: heat maps keep their cells square unless that would make a sliver.
Size fitted(const Panel& panel, Size slot) {
  const HeatMap* map = std::get_if<HeatMap>(&panel.content);
  if (!map || !map->square_cells || map->values.numel() == 0) return slot;
  const double rows = static_cast<double>(map->values.size(0)), cols = static_cast<double>(map->values.size(1));
  const double cell = std::min(slot.width / cols, slot.height / rows);
  if (cell * cols < 0.16 * slot.width || cell * rows < 0.16 * slot.height || cell * std::min(rows, cols) < 12) return slot;
  return {cell * cols, cell * rows};
}

// Margins of a panel whose frame has that size.
void plan_margins(const Figure& figure, const Panel& panel, PanelPlan& plan, Size frame) {
  plan_marks(panel, plan, frame);
  plan.legend = plan_legend(panel, plan.x, plan.y, frame.width, frame.height);
  const auto beyond = [](const std::string& text, double font, double length) {
    return std::max(0.0, (text_width(text, font) - length) / 2);
  };
  const double x_over = std::max(beyond(panel.x.label, kFont, frame.width), beyond(panel.title, kTitleFont, frame.width));
  const double y_over = beyond(panel.y.label, kFont, frame.height);
  plan.left = (plan.y_labels ? plan.y_marks.depth : 0) + (panel.y.label.empty() ? 0 : kFont * 1.2 + kLabelGap);
  plan.left = std::max({plan.left, plan.x_labels ? plan.x_marks.before : 0, x_over});
  plan.right = std::max(plan.x_labels ? plan.x_marks.after + 1 : 0, x_over);
  plan.top = std::max({panel.title.empty() ? 0 : kTitleFont + 8, plan.y_labels ? plan.y_marks.before : 0, y_over});
  plan.bottom = (plan.x_labels ? plan.x_marks.depth : 0) + (panel.x.label.empty() ? 0 : kFont * 1.2 + 4);
  plan.bottom = std::max({plan.bottom, plan.y_labels ? plan.y_marks.after : 0, y_over});
  if (own_bars(figure) && std::holds_alternative<HeatMap>(panel.content))
    plan.right = std::max(plan.right, bar_space(plan.colours, frame.height));
  if (plan.legend.outside) plan.right = std::max(plan.right, plan.legend.box.width + 8);
}

struct Grid {
  std::vector<double> left, right, top, bottom;  // margins of columns and rows
  double bar = 0, title = 0;
  double across() const { return bar + total(left) + total(right) + kGap * static_cast<double>(left.size() - 1) + 2 * kPad; }
  double down() const { return title + total(top) + total(bottom) + kGap * 0.8 * static_cast<double>(top.size() - 1) + 2 * kPad; }
  static double total(const std::vector<double>& v) {
    double sum = 0;
    for (double x : v) sum += x;
    return sum;
  }
};

Grid measure(const Figure& figure, FigurePlan& plan, Size slot) {
  Grid g;
  g.left.assign(figure.cols, 0);
  g.right = g.left;
  g.top.assign(figure.rows, 0);
  g.bottom = g.top;
  bool heat = false;
  double grid_height = 0;
  for (size_t i = 0; i < plan.panels.size(); ++i) {
    const size_t row = i / figure.cols, col = i % figure.cols;
    PanelPlan& p = plan.panels[i];
    const Size frame = fitted(figure.panels[i], slot);
    plan_margins(figure, figure.panels[i], p, frame);
    g.left[col] = std::max(g.left[col], p.left - (slot.width - frame.width) / 2);
    g.right[col] = std::max(g.right[col], p.right - (slot.width - frame.width) / 2);
    g.top[row] = std::max(g.top[row], p.top - (slot.height - frame.height) / 2);
    g.bottom[row] = std::max(g.bottom[row], p.bottom - (slot.height - frame.height) / 2);
    heat |= std::holds_alternative<HeatMap>(figure.panels[i].content);
    grid_height = std::max(grid_height, frame.height * figure.rows);
  }
  if (!figure.title.empty()) g.title = kFigureTitleFont + 8;
  if (heat && figure.colours.bar && !own_bars(figure)) g.bar = bar_space(plan.colours, bar_height(grid_height));
  return g;
}

void place(const Figure& figure, FigurePlan& plan, const Grid& g, Size slot) {
  double top = 1e9, bottom = 0, right = 0, y = kPad + g.title;
  for (int row = 0; row < figure.rows; ++row) {
    y += g.top[row];
    double x = kPad;
    for (int col = 0; col < figure.cols; ++col) {
      x += g.left[col];
      PanelPlan& p = plan.panels[row * figure.cols + col];
      const Size frame = fitted(figure.panels[row * figure.cols + col], slot);
      p.frame = {std::round(x + (slot.width - frame.width) / 2), std::round(y + (slot.height - frame.height) / 2), std::round(frame.width),
                 std::round(frame.height)};
      if (own_bars(figure) && std::holds_alternative<HeatMap>(figure.panels[row * figure.cols + col].content))
        p.bar = Box{p.frame.x + p.frame.width + kBarGap - 4, p.frame.y, kBarWidth, p.frame.height};
      top = std::min(top, p.frame.y);
      bottom = std::max(bottom, p.frame.y + p.frame.height);
      right = std::max(right, p.frame.x + p.frame.width + p.right);
      x += slot.width + g.right[col] + kGap;
    }
    y += slot.height + g.bottom[row] + kGap * 0.8;
  }
  if (g.bar > 0) {
    const double height = std::round(bar_height(bottom - top));
    plan.bar = Box{right + kBarGap, std::round((top + bottom - height) / 2), kBarWidth, height};
  }
}

}  // namespace

std::vector<Tick> bar_ticks(const ColourRange& range, double height) {
  return nice_ticks({range.low, range.high}, std::clamp(static_cast<int>(height / 20), 2, 6));
}

FigurePlan layout(const Figure& figure) {
  FigurePlan plan;
  const std::vector<PanelRanges> ranges = panel_ranges(figure);
  const std::vector<ColourRange> colours = colour_ranges(figure);
  Size slot{24, 24};
  for (size_t i = 0; i < figure.panels.size(); ++i) {
    PanelPlan& p = plan.panels.emplace_back();
    p.x = ranges[i].x;
    p.y = ranges[i].y;
    p.colours = colours[i];
    p.x_labels = !figure.share_x || i / figure.cols == static_cast<size_t>(figure.rows) - 1;
    p.y_labels = !figure.share_y || i % figure.cols == 0;
    const Size wish = preferred(figure, figure.panels[i]);
    slot.width = std::max(slot.width, wish.width);
    slot.height = std::max(slot.height, wish.height);
  }
  plan.colours = colours[0];
  Grid g = measure(figure, plan, slot);
  if (figure.size) {  // margins depend on the frames and the frames on the margins: a few rounds settle it
    for (int round = 0; round < 4; ++round) {
      slot.width = std::max(24.0, (figure.size->width * kPixelsPerInch - g.across()) / figure.cols);
      slot.height = std::max(24.0, (figure.size->height * kPixelsPerInch - g.down()) / figure.rows);
      g = measure(figure, plan, slot);
    }
  }
  place(figure, plan, g, slot);
  plan.width = std::ceil(std::max(g.across() + figure.cols * slot.width, text_width(figure.title, kFigureTitleFont) + 2 * kPad));
  plan.height = std::ceil(g.down() + figure.rows * slot.height);
  if (figure.size) {  // the size asked for, unless the texts need more
    const double width = figure.size->width * kPixelsPerInch, height = figure.size->height * kPixelsPerInch;
    if (plan.width < width + 4) plan.width = std::round(width);
    if (plan.height < height + 4) plan.height = std::round(height);
  }
  return plan;
}

}  // namespace qkv::plotting
