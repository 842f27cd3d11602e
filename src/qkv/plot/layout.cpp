// Layout: the number of panels per row, preferred sizes, margins from label sizes, then the frames.
#include "qkv/plot/layout.h"

#include <algorithm>
#include <cmath>

#include "qkv/plot/text.h"

namespace qkv::plotting {
namespace {

constexpr double kPad = 8, kGap = 14, kBarWidth = 11, kBarGap = 12, kPixelsPerInch = 96;

struct Size {
  double width, height;
};

// ---- colour bars ----

double bar_label_width(const ColourRange& range, double height) {
  double widest = range.has_nan ? text_width("NaN", kFont) : 0;
  for (const Tick& t : bar_ticks(range, height)) widest = std::max(widest, text_width(t.label, kFont));
  return widest;
}

double bar_space(const ColourRange& range, double height) {
  return kBarGap + kBarWidth + kTickLength + 3 + bar_label_width(range, height);
}

double bar_height(double grid_height) { return std::min(grid_height, std::max(0.7 * grid_height, 110.0)); }

// Whether each heat map gets a bar: if scales differ, or if other panels would come between the maps and a shared bar.
bool own_bars(const Figure& figure) {
  bool mixed = false;
  for (const Panel& p : figure.panels) mixed |= !std::holds_alternative<HeatMap>(p.content);
  return figure.colours.bar && (figure.colours.per_panel || mixed);
}

// ---- sizes ----

Size preferred(const Figure& figure, const Arrangement& grid, const HeatMap& map) {
  const double rows = static_cast<double>(std::max<int64_t>(map.values.size(0), 1)),
               cols = static_cast<double>(std::max<int64_t>(map.values.size(1), 1));
  const double target = grid.cols * grid.rows == 1 ? 300 : grid.cols <= 2 ? 230 : 150;
  const double longest = std::max(rows, cols);
  const bool words = !map.x_tokens.empty() || !map.y_tokens.empty();
  const double least = map.cell_values ? 32 : words ? (longest <= 40 ? 20 : 14) : 0;
  double cell = std::clamp(target / longest, least, std::max(least, 44.0));
  if (map.values.numel() > 40000 && figure.panels.size() == 1) cell = 400 / longest;
  cell = std::min(cell, 1400 / longest);
  return {std::max(cols * cell, 36.0), std::max(rows * cell, map.values.numel() == 0 ? 90.0 : 36.0)};
}

Size preferred(const Figure& figure, const Arrangement& grid, const Panel& panel) {
  if (const HeatMap* map = std::get_if<HeatMap>(&panel.content)) return preferred(figure, grid, *map);
  double width = grid.cols == 1 ? 430 : grid.cols == 2 ? 290 : 180;
  if (const Bars* bars = std::get_if<Bars>(&panel.content))
    width = std::clamp(static_cast<double>(bars->categories.size() * (bars->series.size() * 16 + 16)), width, 900.0);
  return {width, grid.cols == 1 ? 250.0 : grid.cols == 2 ? 200.0 : 150.0};
}

// The frame inside its slot: heat maps keep their cells square unless that would make a sliver.
Size fitted(const Panel& panel, Size slot) {
  const HeatMap* map = std::get_if<HeatMap>(&panel.content);
  if (!map || !map->square_cells || map->values.numel() == 0) return slot;
  const double rows = static_cast<double>(map->values.size(0)), cols = static_cast<double>(map->values.size(1));
  const double cell = std::min(slot.width / cols, slot.height / rows);
  if (cell * cols < 0.16 * slot.width || cell * rows < 0.16 * slot.height || cell * std::min(rows, cols) < 12)
    return slot;
  return {cell * cols, cell * rows};
}

// Margins of a panel whose frame has this size.
void plan_margins(const Figure& figure, const Panel& panel, PanelPlan& plan, Size frame) {
  plan_marks(panel, plan, frame.width, frame.height);
  plan.legend = plan_legend(panel, plan.x, plan.y, frame.width, frame.height);
  const auto beyond = [](const std::string& text, double font, double length) {
    return std::max(0.0, (text_width(text, font) - length) / 2);
  };
  const double x_over = std::max(beyond(plan.x_label, kFont, frame.width), beyond(plan.title, kTitleFont, frame.width));
  const double y_over = beyond(plan.y_label, kFont, frame.height);
  plan.left = (plan.y_labels ? plan.y_marks.depth : 0) + (plan.y_label.empty() ? 0 : kFont * 1.2 + kLabelGap);
  plan.left = std::max({plan.left, plan.x_labels ? plan.x_marks.before : 0, x_over});
  plan.right = std::max(plan.x_labels ? plan.x_marks.after + 1 : 0, x_over);
  plan.top = std::max({plan.title.empty() ? 0 : kTitleFont + 8, plan.y_labels ? plan.y_marks.before : 0, y_over});
  plan.bottom = (plan.x_labels ? plan.x_marks.depth : 0) + (plan.x_label.empty() ? 0 : kFont * 1.2 + 4);
  plan.bottom = std::max({plan.bottom, plan.y_labels ? plan.y_marks.after : 0, y_over});
  if (own_bars(figure) && std::holds_alternative<HeatMap>(panel.content))
    plan.right = std::max(plan.right, bar_space(plan.colours, frame.height));
  if (plan.legend.outside) plan.right = std::max(plan.right, plan.legend.box.width + 8);
}

struct Grid {
  std::vector<double> left, right, top, bottom;  // margins of columns and rows
  double bar = 0, title = 0;
  double across() const {
    return bar + total(left) + total(right) + kGap * static_cast<double>(left.size() - 1) + 2 * kPad;
  }
  double down() const {
    return title + total(top) + total(bottom) + kGap * 0.8 * static_cast<double>(top.size() - 1) + 2 * kPad;
  }
  static double total(const std::vector<double>& v) {
    double sum = 0;
    for (double x : v) sum += x;
    return sum;
  }
};

Grid measure(const Figure& figure, FigurePlan& plan, Size slot) {
  const Arrangement& grid = plan.grid;
  Grid g;
  g.left.assign(grid.cols, 0);
  g.right = g.left;
  g.top.assign(grid.rows, 0);
  g.bottom = g.top;
  bool heat = false;
  double grid_height = 0;
  for (size_t i = 0; i < plan.panels.size(); ++i) {
    const int row = grid.row_of(i), col = grid.col_of(i);
    PanelPlan& p = plan.panels[i];
    const Size frame = fitted(figure.panels[i], slot);
    plan_margins(figure, figure.panels[i], p, frame);
    g.left[col] = std::max(g.left[col], p.left - (slot.width - frame.width) / 2);
    g.right[col] = std::max(g.right[col], p.right - (slot.width - frame.width) / 2);
    g.top[row] = std::max(g.top[row], p.top - (slot.height - frame.height) / 2);
    g.bottom[row] = std::max(g.bottom[row], p.bottom - (slot.height - frame.height) / 2);
    heat |= std::holds_alternative<HeatMap>(figure.panels[i].content);
    grid_height = std::max(grid_height, frame.height * grid.rows);
  }
  if (!figure.title.empty()) g.title = kFigureTitleFont + 8;
  if (heat && figure.colours.bar && !own_bars(figure)) g.bar = bar_space(plan.colours, bar_height(grid_height));
  return g;
}

void place(const Figure& figure, FigurePlan& plan, const Grid& g, Size slot) {
  std::vector<double> xs, ys;  // where the slots begin
  double x = kPad, y = kPad + g.title, top = 1e9, bottom = 0;
  for (int col = 0; col < plan.grid.cols; ++col) {
    xs.push_back(x + g.left[col]);
    x = xs.back() + slot.width + g.right[col] + kGap;
  }
  for (int row = 0; row < plan.grid.rows; ++row) {
    ys.push_back(y + g.top[row]);
    y = ys.back() + slot.height + g.bottom[row] + kGap * 0.8;
  }
  for (size_t i = 0; i < plan.panels.size(); ++i) {
    PanelPlan& p = plan.panels[i];
    const Size frame = fitted(figure.panels[i], slot);
    p.frame = {std::round(xs[plan.grid.col_of(i)] + (slot.width - frame.width) / 2),
               std::round(ys[plan.grid.row_of(i)] + (slot.height - frame.height) / 2), std::round(frame.width),
               std::round(frame.height)};
    if (own_bars(figure) && std::holds_alternative<HeatMap>(figure.panels[i].content))
      p.bar = Box{p.frame.x + p.frame.width + kBarGap - 4, p.frame.y, kBarWidth, p.frame.height};
    top = std::min(top, p.frame.y);
    bottom = std::max(bottom, p.frame.y + p.frame.height);
  }
  if (g.bar > 0) {
    const double height = std::round(bar_height(bottom - top));
    plan.bar = Box{xs.back() + slot.width + g.right.back() + kBarGap, std::round((top + bottom - height) / 2),
                   kBarWidth, height};
  }
}

// ---- folding ----

// Which texts a panel shows. If a row was broken, every line has the labels of its row, and every panel its column's
// title.
void plan_texts(const Figure& figure, FigurePlan& plan, size_t index) {
  const size_t cols = static_cast<size_t>(figure.cols);
  const Panel& panel = figure.panels[index];
  const Arrangement& grid = plan.grid;
  PanelPlan& p = plan.panels[index];
  const bool folded = grid.lines > 1, outer = !grid.has_below(index), first = grid.col_of(index) == 0;
  const HeatMap* map = std::get_if<HeatMap>(&panel.content);
  p.x_labels = !figure.share_x || outer ||
               (folded && map && !map->x_tokens.empty());  // words are looked up right below their cells
  p.y_labels = !figure.share_y || first;
  p.title = (panel.title.empty() && folded ? figure.panels[index % cols] : panel).title.str();
  p.x_label = folded && figure.share_x && !outer ? "" : panel.x.label.str();
  const bool row_names = panel.y.label.empty() && folded && figure.share_y && first;
  p.y_label = (row_names ? figure.panels[index / cols * cols] : panel).y.label.str();
  if (p.x_label.empty() && folded && figure.share_x && outer)
    p.x_label = figure.panels[figure.panels.size() - cols + index % cols].x.label.str();
}

// A plan before its frames have positions: figures below each other share their columns.
struct Draft {
  FigurePlan plan;
  Size slot{24, 24};
  Grid grid;
  double width() const { return std::ceil(grid.across() + plan.grid.cols * slot.width); }
};

// The narrowest frame of a panel that can still be read. While a row can be broken, its words keep room to be drawn at
// an angle; a single column cannot be broken any further.
double least_width(const Panel& panel, int cols) {
  const HeatMap* map = std::get_if<HeatMap>(&panel.content);
  if (!map) return cols == 1 ? 120 : cols == 2 ? 265 : 165;
  const bool words = !map->x_tokens.empty() || !map->y_tokens.empty();
  const double cell = map->cell_values ? 32 : !words ? 0 : cols == 1 ? 14 : kFont * 1.4;
  return std::max(cols == 1 ? 120.0 : 110.0, static_cast<double>(map->values.size(1)) * cell);
}

// Makes frames narrower until the figure fits, if possible; heat maps shrink in both directions.
void squeeze(const Figure& figure, Draft& d) {
  const int cols = d.plan.grid.cols;
  double least = 0;
  bool square = true;
  for (const Panel& panel : figure.panels) {
    const HeatMap* map = std::get_if<HeatMap>(&panel.content);
    square &= map && map->square_cells;
    least = std::max(least, least_width(panel, cols));
  }
  Draft narrow = d;
  for (int round = 0; round < 3 && narrow.width() > figure.widest; ++round) {
    const double width = std::max(least, std::floor(narrow.slot.width - (narrow.width() - figure.widest) / cols));
    if (width >= narrow.slot.width) break;
    if (square) narrow.slot.height *= width / narrow.slot.width;
    narrow.slot.width = width;
    narrow.grid = measure(figure, narrow.plan, narrow.slot);
  }
  if (narrow.width() <= figure.widest || cols == 1) d = std::move(narrow);
}

Draft drafted(const Figure& figure, int lines) {
  Draft d;
  d.plan.grid = Arrangement(figure, lines);
  const std::vector<PanelRanges> ranges = panel_ranges(figure);
  const std::vector<ColourRange> colours = colour_ranges(figure);
  for (size_t i = 0; i < figure.panels.size(); ++i) {
    PanelPlan& p = d.plan.panels.emplace_back();
    p.x = ranges[i].x;
    p.y = ranges[i].y;
    p.colours = colours[i];
    plan_texts(figure, d.plan, i);
    const Size wish = preferred(figure, d.plan.grid, figure.panels[i]);
    d.slot.width = std::max(d.slot.width, wish.width);
    d.slot.height = std::max(d.slot.height, wish.height);
  }
  d.plan.colours = colours[0];
  d.grid = measure(figure, d.plan, d.slot);
  if (figure.size) {  // margins and frames depend on each other: a few rounds converge
    for (int round = 0; round < 4; ++round) {
      d.slot.width = std::max(24.0, (figure.size->width * kPixelsPerInch - d.grid.across()) / figure.cols);
      d.slot.height = std::max(24.0, (figure.size->height * kPixelsPerInch - d.grid.down()) / figure.rows);
      d.grid = measure(figure, d.plan, d.slot);
    }
  } else {
    squeeze(figure, d);
  }
  return d;
}

// As few lines as fit on the page. A requested size is kept.
Draft folded(const Figure& figure, int least_lines = 1) {
  Draft d = drafted(figure, least_lines);
  for (int lines = least_lines + 1; !figure.size && d.width() > figure.widest && d.plan.grid.cols > 1; ++lines)
    if (Arrangement(figure, lines).cols < d.plan.grid.cols) d = drafted(figure, lines);
  return d;
}

FigurePlan placed(const Figure& figure, Draft d) {
  FigurePlan& plan = d.plan;
  place(figure, plan, d.grid, d.slot);
  plan.width = std::max(d.width(), std::ceil(text_width(figure.title.str(), kFigureTitleFont) + 2 * kPad));
  plan.height = std::ceil(d.grid.down() + plan.grid.rows * d.slot.height);
  if (figure.size) {  // the requested size, unless the texts need more
    const double width = figure.size->width * kPixelsPerInch, height = figure.size->height * kPixelsPerInch;
    if (plan.width < width + 4) plan.width = std::round(width);
    if (plan.height < height + 4) plan.height = std::round(height);
  }
  return std::move(plan);
}

}  // namespace

Arrangement::Arrangement(const Figure& figure, int lines_of_a_row)
    : cols((figure.cols + lines_of_a_row - 1) / lines_of_a_row), across(figure.cols) {
  lines = (across + cols - 1) / cols;
  rows = figure.rows * lines;
}

bool Arrangement::has_below(size_t index) const {
  const int row = row_of(index) + 1;
  return row < rows && row % lines * cols + col_of(index) < across;
}

std::vector<Tick> bar_ticks(const ColourRange& range, double height) {
  return nice_ticks({range.low, range.high}, std::clamp(static_cast<int>(height / 22), 2, 6));
}

FigurePlan layout(const Figure& figure) { return placed(figure, folded(figure)); }

std::vector<FigurePlan> layout(std::span<const Figure> figures) {
  std::vector<Draft> drafts;
  int lines = 1;
  bool alike = true;  // grids with the same columns
  for (const Figure& figure : figures) {
    drafts.push_back(folded(figure));
    lines = std::max(lines, drafts.back().plan.grid.lines);
    alike &= figure.cols == figures[0].cols && !figure.size;
  }
  if (alike) {
    Grid all = drafts[0].grid;
    double widest = 0, cell = 1e9;
    bool maps = true;  // all heat maps have cells of the same size
    for (size_t i = 0; i < figures.size(); ++i) {
      drafts[i] = folded(figures[i], lines);
      const HeatMap* map = std::get_if<HeatMap>(&figures[i].panels[0].content);
      maps &= map && map->square_cells && map->values.numel() > 0;
      if (maps) cell = std::min(cell, drafts[i].slot.width / static_cast<double>(map->values.size(1)));
    }
    for (size_t i = 0; i < figures.size(); ++i) {
      if (maps) {
        const Tensor& values = std::get<HeatMap>(figures[i].panels[0].content).values;
        drafts[i].slot = {cell * static_cast<double>(values.size(1)), cell * static_cast<double>(values.size(0))};
      }
      widest = std::max(widest, drafts[i].slot.width);
    }
    for (size_t i = 0; i < figures.size(); ++i) {
      Draft& d = drafts[i];
      d.slot.width = widest;
      d.grid = measure(figures[i], d.plan, d.slot);
      if (i == 0) all = d.grid;
      for (size_t c = 0; c < all.left.size() && c < d.grid.left.size(); ++c) {
        all.left[c] = std::max(all.left[c], d.grid.left[c]);
        all.right[c] = std::max(all.right[c], d.grid.right[c]);
      }
      all.bar = std::max(all.bar, d.grid.bar);
    }
    for (Draft& d : drafts) {
      if (d.grid.left.size() == all.left.size()) {
        d.grid.left = all.left;
        d.grid.right = all.right;
      }
      if (d.grid.bar > 0) d.grid.bar = all.bar;
    }
  }
  std::vector<FigurePlan> plans;
  for (size_t i = 0; i < figures.size(); ++i) plans.push_back(placed(figures[i], std::move(drafts[i])));
  return plans;
}

}  // namespace qkv::plotting
