// Heat maps and colour bars in a terminal.
#include <algorithm>
#include <cmath>

#include "qkv/plot/heat.h"
#include "qkv/plot/terminal_panels.h"
#include "qkv/plot/text.h"

namespace qkv::plotting {
namespace {

constexpr int64_t kMostLines = 50;
constexpr std::string_view kRamp = " .:-=+*#%@";

// How cells become characters: each has `wide` columns and `tall` lines, or two rows share a line if `halves`.
struct HeatGrid {
  Matrix cells;
  int64_t rows_each = 1, cols_each = 1;  // rows and columns of the tensor per cell
  int wide = 1, tall = 1;
  bool halves = false;
  int label_columns = 0;
  bool x_tokens = false, upright = false;
  int width() const { return static_cast<int>(cells.cols) * wide; }
  int lines() const { return static_cast<int>(halves ? (cells.rows + 1) / 2 : cells.rows * tall); }
};

int widest(const std::vector<std::string>& labels, int most) {
  int columns = 0;
  for (const std::string& label : labels) columns = std::max(columns, display_width(label));
  return std::min(columns, most);
}

// The width of the numbers beside the rows.
int index_width(const TerminalPage& page, const HeatMap& map, int64_t rows) {
  if (!map.y_span) return static_cast<int>(std::to_string(std::max<int64_t>(rows - 1, 0)).size());
  int columns = 1;
  for (const CellTick& t : cell_ticks(rows, map.y_span, 10))
    columns = std::max(columns, display_width(page.number(t.label)));
  return columns;
}

HeatGrid plan_grid(const TerminalPage& page, const HeatMap& map, int columns) {
  HeatGrid g;
  const int64_t rows = map.values.size(0), cols = map.values.size(1);
  const bool y_tokens = !map.y_tokens.empty() && rows <= kMostLines;
  g.label_columns = 1 + (y_tokens ? widest(map.y_tokens, std::min(18, columns / 3)) : index_width(page, map, rows));
  const int64_t room = std::max(1, columns - g.label_columns);
  const int64_t most_rows = page.ascii || y_tokens ? kMostLines : 2 * kMostLines;
  const int64_t factor = std::max((cols + room - 1) / room, (rows + most_rows - 1) / most_rows);
  g.cols_each = cols > room ? factor : 1;
  g.rows_each = rows > most_rows || (cols > room && rows > room) ? factor : 1;
  g.cells = averaged(map.values, (rows + g.rows_each - 1) / g.rows_each, (cols + g.cols_each - 1) / g.cols_each);
  const int64_t space = room / g.cells.cols;  // columns available per cell
  const int token = map.x_tokens.empty() || g.cols_each > 1 ? 0 : widest(map.x_tokens, 12);
  if (map.cell_values && space >= 6) {
    g.wide = token > 5 && token + 1 <= space ? token + 1 : 6;
  } else if (token > 0 && token + 1 <= space && token <= 7) {
    g.wide = std::max(token + 1, 2);
    g.tall = static_cast<int>(std::clamp<int64_t>(g.wide / 2, 1, std::max<int64_t>(1, 24 / g.cells.rows)));
  } else if (space >= 2) {
    g.wide = space >= 4 && g.cells.rows <= 6 ? 4 : 2;
    g.tall = g.wide / 2;
    if (g.cells.rows > 40 && !page.ascii && !y_tokens) g.wide = g.tall = 1;
  }
  g.halves = g.wide == 1 && !page.ascii && !y_tokens;
  g.x_tokens = token > 0 && g.wide >= 2;
  g.upright = g.x_tokens && token + 1 > g.wide;
  return g;
}

std::optional<Colour> cell_colour(const ColourRange& range, float value) {
  const double t = range.fraction(value);
  return std::isnan(t) ? kNanColour : colour_at(range.map, t);
}

char32_t ramp(const ColourRange& range, float value) {
  const double t = range.fraction(value);
  return std::isnan(t) ? U'?'
                       : static_cast<char32_t>(kRamp[static_cast<size_t>(std::lround(std::clamp(t, 0.0, 1.0) * 9))]);
}

void draw_cells(TextCanvas& canvas, const TerminalPage& page, const HeatGrid& g, const ColourRange& range, int top) {
  for (int line = 0; line < g.lines(); ++line) {
    for (int64_t c = 0; c < g.cells.cols; ++c) {
      const int64_t row = g.halves ? 2 * line : line / g.tall;
      const float upper = g.cells.at(row, c);
      for (int k = 0; k < g.wide; ++k) {
        const int x = g.label_columns + static_cast<int>(c) * g.wide + k;
        if (page.ascii)
          canvas.put(x, top + line, ramp(range, upper));
        else if (!g.halves)
          canvas.put(x, top + line, U'▀', cell_colour(range, upper), cell_colour(range, upper));
        else if (row + 1 < g.cells.rows)
          canvas.put(x, top + line, U'▀', cell_colour(range, upper), cell_colour(range, g.cells.at(row + 1, c)));
        else
          canvas.put(x, top + line, U'▀', cell_colour(range, upper));
      }
    }
  }
}

// Numbers inside cells, and brackets around boxed ones.
void draw_marks(TextCanvas& canvas, const TerminalPage& page, const HeatMap& map, const HeatGrid& g,
                const ColourRange& range, int top) {
  const auto ink = [&](float value) -> std::optional<Colour> {
    if (page.ascii) return {};
    return luminance(*cell_colour(range, value)) < 0.3 ? Colour{255, 255, 255} : Colour{0, 0, 0};
  };
  const auto ground = [&](float value) { return page.ascii ? std::nullopt : cell_colour(range, value); };
  if (map.cell_values && g.wide >= 6) {
    for (int64_t i = 0; i < g.cells.rows; ++i)
      for (int64_t j = 0; j < g.cells.cols; ++j) {
        const float v = g.cells.at(i, j);
        const std::vector<char32_t> digits = code_points(cut_to(page.number(cell_number(v)), g.wide, "~"));
        int x = g.label_columns + static_cast<int>(j) * g.wide + (g.wide - static_cast<int>(digits.size())) / 2;
        for (int k = 0; page.ascii && k < g.wide; ++k)
          canvas.put(g.label_columns + static_cast<int>(j) * g.wide + k, top + static_cast<int>(i) * g.tall, U' ');
        for (char32_t d : digits) canvas.put(x++, top + static_cast<int>(i) * g.tall, d, ink(v), ground(v));
      }
  }
  if (g.wide < 2) return;
  for (const CellIndex& box : map.boxes) {
    const int64_t i = box.row / g.rows_each, j = box.col / g.cols_each;
    const float v = g.cells.at(i, j);
    const int x = g.label_columns + static_cast<int>(j) * g.wide, y = top + static_cast<int>(i) * g.tall + g.tall / 2;
    canvas.put(x, y, U'[', ink(v), ground(v));
    canvas.put(x + g.wide - 1, y, U']', ink(v), ground(v));
  }
}

void draw_row_labels(TextCanvas& canvas, const TerminalPage& page, const HeatMap& map, const HeatGrid& g, int top) {
  const auto put = [&](int line, const std::string& label) {
    const std::string cut = page.cut(label, g.label_columns - 1);
    canvas.text(g.label_columns - 1 - display_width(cut), top + line, cut);
  };
  if (!map.y_tokens.empty() && g.rows_each == 1 && !g.halves) {
    for (size_t i = 0; i < map.y_tokens.size(); ++i) put(static_cast<int>(i) * g.tall + g.tall / 2, map.y_tokens[i]);
    return;
  }
  for (const CellTick& t :
       cell_ticks(map.values.size(0), map.y_span, std::clamp(g.lines() / 2, 1, map.y_span ? 10 : 50))) {
    const int64_t row = t.cell / g.rows_each;
    put(static_cast<int>(g.halves ? row / 2 : row * g.tall + g.tall / 2), page.number(t.label));
  }
}

int foot_lines(const HeatMap& map, const HeatGrid& g) { return g.upright ? widest(map.x_tokens, 12) : 1; }

void draw_column_labels(TextCanvas& canvas, const TerminalPage& page, const HeatMap& map, const HeatGrid& g, int top) {
  if (!g.x_tokens) {
    int free = 0;
    for (const CellTick& t : cell_ticks(map.values.size(1), map.x_span, std::max(1, g.width() / 4))) {
      const std::string label = page.number(t.label);
      const int x = g.label_columns + static_cast<int>(t.cell / g.cols_each) * g.wide + (g.wide - 1) / 2,
                width = display_width(label);
      if (x >= free && x + width <= canvas.width()) canvas.text(x, top, label);
      free = x + width + 1;
    }
    return;
  }
  for (size_t i = 0; i < map.x_tokens.size(); ++i) {
    const int x = g.label_columns + static_cast<int>(i) * g.wide;
    if (!g.upright) {
      canvas.centred(x, g.wide, top, map.x_tokens[i]);
      continue;
    }
    int y = top - 1;  // one character per line, combining marks with their letter
    for (char32_t p : code_points(page.cut(map.x_tokens[i], 12)))
      canvas.put(x + (g.wide - 1) / 2, display_width(p) == 0 ? y : ++y, p);
  }
}

}  // namespace

TextCanvas heat_panel(const TerminalPage& page, const Panel& panel, const HeatMap& map, const ColourRange& colours,
                      int columns) {
  if (map.values.numel() == 0) {
    TextCanvas canvas(std::min(columns, 24), page.header() + 1);
    page.draw_header(canvas, panel, 0, canvas.width());
    canvas.text(0, page.header(), tr("(empty)").in(page.language));
    return canvas;
  }
  const HeatGrid g = plan_grid(page, map, columns);
  const int texts = std::max({display_width(panel.x.label.str()),
                              page.y_labels ? display_width(panel.y.label.str()) - g.label_columns : 0,
                              display_width(panel.title.str())});
  const int width = std::min(columns, g.label_columns + std::max(g.width(), std::min(texts, 40)));
  const int top = page.header(), foot = foot_lines(map, g);
  TextCanvas canvas(width, top + g.lines() + foot + (panel.x.label.empty() ? 0 : 1));
  page.draw_header(canvas, panel, g.label_columns, g.width());
  draw_cells(canvas, page, g, colours, top);
  draw_marks(canvas, page, map, g, colours, top);
  draw_row_labels(canvas, page, map, g, top);
  draw_column_labels(canvas, page, map, g, top + g.lines());
  if (!panel.x.label.empty())
    canvas.centred(g.label_columns, std::max(g.width(), width - g.label_columns), top + g.lines() + foot,
                   panel.x.label.str());
  return canvas;
}

TextCanvas colour_bar_line(const TerminalPage& page, const ColourRange& range, int columns) {
  const std::string low = page.number(short_number(range.low)), high = page.number(short_number(range.high));
  const int ends = display_width(low) + display_width(high) + 2, nan = range.has_nan ? (page.ascii ? 7 : 6) : 0;
  const int steps = std::max(2, std::min(page.ascii ? 20 : 32, columns - ends - nan));
  TextCanvas canvas(std::min(columns, ends + steps + nan), 1);
  int x = display_width(low) + 1;
  canvas.text(0, 0, low);
  for (int i = 0; i < steps; ++i, ++x) {
    const double t = i / (steps - 1.0);
    if (page.ascii)
      canvas.put(x, 0, static_cast<char32_t>(kRamp[static_cast<size_t>(std::lround(t * 9))]));
    else
      canvas.put(x, 0, U'▀', colour_at(range.map, t), colour_at(range.map, t));
  }
  canvas.text(x + 1, 0, high);
  x += 1 + display_width(high);
  if (range.has_nan && page.ascii) canvas.text(x + 1, 0, "?: NaN");
  if (range.has_nan && !page.ascii) {
    canvas.put(x + 1, 0, U'█', kNanColour);
    canvas.text(x + 3, 0, "NaN");
  }
  return canvas;
}

}  // namespace qkv::plotting
