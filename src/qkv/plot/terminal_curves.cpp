// Curves, bars and histograms in a terminal.
#include <algorithm>
#include <cmath>

#include "qkv/plot/terminal_panels.h"
#include "qkv/plot/text.h"

namespace qkv::plotting {
namespace {

constexpr std::string_view kLineGlyphs = "*+x#%@&~";

// Dots of a panel of curves: Braille has 2 x 4 per cell, ASCII one.
class DotField {
 public:
  DotField(int columns, int lines, bool ascii)
      : columns_(columns),
        lines_(lines),
        ascii_(ascii),
        bits_(static_cast<size_t>(columns) * lines),
        glyphs_(bits_.size()),
        inks_(bits_.size()) {}

  double width() const { return columns_ * (ascii_ ? 1 : 2) - 1; }
  double height() const { return lines_ * (ascii_ ? 1 : 4) - 1; }

  void dot(double x, double y, Colour ink, char32_t glyph) {
    const int px = static_cast<int>(std::lround(x)), py = static_cast<int>(std::lround(y));
    if (px < 0 || py < 0 || px > width() || py > height()) return;
    constexpr unsigned char masks[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    const size_t cell =
        ascii_ ? static_cast<size_t>(py) * columns_ + px : static_cast<size_t>(py / 4) * columns_ + px / 2;
    bits_[cell] |= ascii_ ? 1 : masks[py % 4][px % 2];
    if (glyph) glyphs_[cell] = glyph;
    inks_[cell] = ink;
  }

  // A segment clipped to the field (Liang and Barsky, 1984); `walked` continues the dash pattern.
  void segment(double x1, double y1, double x2, double y2, const LineStyle& style, char32_t glyph, double& walked) {
    double from = 0, to = 1;
    const double dx = x2 - x1, dy = y2 - y1;
    const double p[] = {-dx, dx, -dy, dy}, q[] = {x1 + 0.4, width() + 0.4 - x1, y1 + 0.4, height() + 0.4 - y1};
    for (int i = 0; i < 4; ++i) {
      if (p[i] == 0 && q[i] < 0) return;
      if (p[i] < 0) from = std::max(from, q[i] / p[i]);
      if (p[i] > 0) to = std::min(to, q[i] / p[i]);
    }
    if (from > to) return;
    const double length = std::max(std::abs(dx), std::abs(dy)) * (to - from);
    const int steps = std::max(1, static_cast<int>(std::ceil(length)));
    for (int i = 0; i <= steps; ++i) {
      const double t = from + (to - from) * i / steps;
      if (ascii_ || drawn(style.dash, walked + length * i / steps)) dot(x1 + dx * t, y1 + dy * t, *style.colour, glyph);
    }
    walked += length;
  }

  void draw(TextCanvas& canvas, const TerminalPage& page, int left, int top) const {
    for (int y = 0; y < lines_; ++y)
      for (int x = 0; x < columns_; ++x) {
        const size_t cell = static_cast<size_t>(y) * columns_ + x;
        if (!bits_[cell]) continue;
        const char32_t glyph = glyphs_[cell] ? glyphs_[cell] : static_cast<char32_t>(0x2800 + bits_[cell]);
        canvas.put(left + x, top + y, glyph, page.ink(inks_[cell]));
      }
  }

 private:
  static bool drawn(Dash dash, double at) {
    switch (dash) {
      case Dash::dashed:
        return std::fmod(at, 7) < 4.5;
      case Dash::dash_dot:
        return std::fmod(at, 10) < 5 || (std::fmod(at, 10) >= 7 && std::fmod(at, 10) < 8);
      case Dash::dotted:
        return std::fmod(at, 3) < 1;
      default:
        return true;
    }
  }
  int columns_, lines_;
  bool ascii_;
  std::vector<unsigned char> bits_;
  std::vector<char32_t> glyphs_;
  std::vector<Colour> inks_;
};

struct Sample {
  std::string mark, name;
  Colour ink;
};

// Adds a sample to the legend, on a new line if the last one is full.
void draw_samples(std::vector<std::vector<Sample>>& lines, const Sample& sample, int columns, int& used) {
  const int width = display_width(sample.mark) + 1 + display_width(sample.name) + 2;
  if (lines.empty() || used + width - 2 > columns) {
    lines.emplace_back();
    used = 0;
  }
  lines.back().push_back(sample);
  used += width;
}

void draw_legend(TextCanvas& canvas, const TerminalPage& page, const std::vector<std::vector<Sample>>& lines, int left,
                 int top) {
  for (size_t i = 0; i < lines.size(); ++i) {
    int x = left;
    for (const Sample& s : lines[i]) {
      canvas.text(x, top + static_cast<int>(i), s.mark, page.ink(s.ink));
      x += display_width(s.mark) + 1;
      canvas.text(x, top + static_cast<int>(i), s.name);
      x += display_width(s.name) + 2;
    }
  }
}

char32_t point_glyph(bool ascii) { return ascii ? U'o' : U'•'; }

void draw_dots(DotField& field, const Curves& curves, const PanelRanges& r, bool ascii) {
  const auto x_at = [&](double v) { return std::clamp(r.x.fraction(v), -1e6, 1e6) * field.width(); };
  const auto y_at = [&](double v) { return (1 - std::clamp(r.y.fraction(v), -1e6, 1e6)) * field.height(); };
  const auto line = [&](const std::vector<double>& xs, const std::vector<double>& ys, const LineStyle& style,
                        char32_t glyph) {
    double walked = 0;
    for (size_t i = 0; i < xs.size(); ++i) {
      const double x = x_at(xs[i]), y = y_at(ys[i]);
      if (!std::isfinite(x + y)) continue;
      if (style.circles) field.dot(x, y, *style.colour, point_glyph(ascii));
      if (style.dash == Dash::none || i == 0) continue;
      const double x0 = x_at(xs[i - 1]), y0 = y_at(ys[i - 1]);
      if (std::isfinite(x0 + y0)) field.segment(x0, y0, x, y, style, glyph, walked);
    }
  };
  for (size_t i = 0; i < curves.bands.size(); ++i) {
    const LineStyle style{.colour = curves.bands[i].colour.value_or(palette(i)), .dash = Dash::dotted};
    line(curves.bands[i].x, curves.bands[i].low, style, ascii ? U'.' : 0);
    line(curves.bands[i].x, curves.bands[i].high, style, ascii ? U'.' : 0);
  }
  for (bool points : {true, false})
    for (size_t i = 0; i < curves.series.size(); ++i) {
      const LineStyle style = resolved_style(curves.series[i], i);
      if ((style.dash == Dash::none) == points)
        line(curves.series[i].x, curves.series[i].y, style,
             ascii ? static_cast<char32_t>(kLineGlyphs[i % kLineGlyphs.size()]) : 0);
    }
}

std::vector<std::vector<Sample>> legend_of(const TerminalPage& page, const Curves& curves, int columns) {
  std::vector<std::vector<Sample>> lines;
  int used = 0;
  for (size_t i = 0; i < curves.series.size(); ++i) {
    if (curves.series[i].name.empty()) continue;
    const LineStyle style = resolved_style(curves.series[i], i);
    std::string mark;
    if (page.ascii)
      mark = style.dash == Dash::none ? "o" : std::string(1, kLineGlyphs[i % kLineGlyphs.size()]);
    else
      mark = style.dash == Dash::none     ? "•"
             : style.dash == Dash::solid  ? "──"
             : style.dash == Dash::dashed ? "╌╌"
             : style.dash == Dash::dotted ? "··"
                                          : "─·";
    draw_samples(lines, {mark, page.cut(curves.series[i].name.str(), columns - 3), *style.colour}, columns, used);
  }
  for (size_t i = 0; i < curves.bands.size(); ++i)
    if (!curves.bands[i].name.empty())
      draw_samples(lines,
                   {page.ascii ? "." : "··", page.cut(curves.bands[i].name.str(), columns - 3),
                    curves.bands[i].colour.value_or(palette(i))},
                   columns, used);
  return lines;
}

void draw_axes(TextCanvas& canvas, const TerminalPage& page, const PanelRanges& r, const std::vector<Tick>& y_ticks,
               int left, int top, int area) {
  const char32_t wall = page.ascii ? U'|' : U'│', floor = page.ascii ? U'-' : U'─';
  for (int y = 0; y < page.lines; ++y) canvas.put(left - 1, top + y, wall);
  for (int x = 0; x < area; ++x) canvas.put(left + x, top + page.lines, floor);
  canvas.put(left - 1, top + page.lines, page.ascii ? U'+' : U'└');
  for (const Tick& t : y_ticks) {
    const int y = top + static_cast<int>(std::lround((1 - r.y.fraction(t.value)) * (page.lines - 1)));
    const std::string label = page.number(t.label);
    canvas.text(left - 1 - display_width(label), y, label);
    canvas.put(left - 1, y, page.ascii ? U'+' : U'┤');
  }
  int free = 0;
  for (const Tick& t : nice_ticks(r.x, std::clamp(area / 9, 2, 8))) {
    const std::string label = page.number(t.label);
    const int x = left + static_cast<int>(std::lround(r.x.fraction(t.value) * (area - 1))),
              width = display_width(label);
    const int from = std::min(x - width / 2, canvas.width() - width);
    canvas.put(x, top + page.lines, page.ascii ? U'+' : U'┴');
    if (from < free) continue;
    canvas.text(from, top + page.lines + 1, label);
    free = from + width + 1;
  }
}

}  // namespace

TextCanvas curve_panel(const TerminalPage& page, const Panel& panel, const Curves& curves, const PanelRanges& ranges,
                       int columns) {
  const std::vector<Tick> y_ticks = nice_ticks(ranges.y, std::max(2, page.lines / 3));
  int left = 1;
  for (const Tick& t : y_ticks) left = std::max(left, 1 + display_width(page.number(t.label)));
  const int area = std::max(4, std::min(columns, 78) - left);
  const std::vector<std::vector<Sample>> legend = legend_of(page, curves, area);
  const int top = page.header(), label = panel.x.label.empty() ? 0 : 1;
  TextCanvas canvas(std::min(columns, left + area), top + page.lines + 2 + label + static_cast<int>(legend.size()));
  page.draw_header(canvas, panel, left, area);
  DotField field(area, page.lines, page.ascii);
  draw_dots(field, curves, ranges, page.ascii);
  field.draw(canvas, page, left, top);
  draw_axes(canvas, page, ranges, y_ticks, left, top, area);
  if (label) canvas.centred(left, area, top + page.lines + 2, panel.x.label.str());
  draw_legend(canvas, page, legend, left, top + page.lines + 2 + label);
  return canvas;
}

Bars as_bars(const TerminalPage& page, const Histogram& histogram) {
  const HistogramCounts h = histogram_counts(histogram);
  Bars bars;
  for (size_t i = 0; i + 1 < h.edges.size(); ++i)
    bars.categories.push_back(page.number(short_number(h.edges[i])) + " .. " +
                              page.number(short_number(h.edges[i + 1])));
  for (size_t s = 0; s < h.counts.size(); ++s) bars.series.push_back({histogram.samples[s].name, h.counts[s]});
  return bars;
}

TextCanvas bar_panel(const TerminalPage& page, const Panel& panel, const Bars& bars, const Range& values, int columns) {
  int labels = 0, numbers = 0;
  for (const Label& c : bars.categories) labels = std::max(labels, display_width(c.str()));
  labels = std::min(labels, columns / 3);
  for (const NamedValues& s : bars.series)
    for (double v : s.values) numbers = std::max(numbers, display_width(page.number(short_number(v))));
  const int left = labels + 1, area = std::max(1, std::min(columns, 78) - left - numbers - 1);
  std::vector<std::vector<Sample>> legend;
  int used = 0;
  constexpr std::string_view ascii_fill = "#=+:%o";
  const auto glyph = [&](size_t s) {
    return page.ascii ? static_cast<char32_t>(ascii_fill[s % ascii_fill.size()]) : s % 2 == 1 ? U'▒' : U'█';
  };
  for (size_t s = 0; s < bars.series.size(); ++s) {
    if (bars.series[s].name.empty()) continue;
    std::string mark;
    append_utf8(mark, glyph(s));
    draw_samples(legend, {mark + mark, page.cut(bars.series[s].name.str(), area - 3), palette(s)}, area, used);
  }
  // The axis label, above the categories: on its own line if it is long.
  const int name_columns = display_width(panel.x.label.str());
  const int label = name_columns == 0 || (page.y_labels && name_columns < left) ? 0 : 1, top = page.header() + label;
  const int lines = static_cast<int>(bars.categories.size() * bars.series.size());
  TextCanvas canvas(std::min(columns, left + area + numbers + 1), top + lines + static_cast<int>(legend.size()));
  if (page.titles) canvas.centred(left, area, 0, panel.title.str());
  if (page.y_labels) canvas.text(left, top - 1, page.cut(panel.y.label.str(), canvas.width() - left));
  canvas.text(0, page.titles ? 1 : 0, page.cut(panel.x.label.str(), label ? canvas.width() : labels));
  const double base = std::clamp(values.scale == AxisScale::log ? 0.0 : values.fraction(0), 0.0, 1.0);
  for (size_t c = 0; c < bars.categories.size(); ++c) {
    const int first = top + static_cast<int>(c * bars.series.size());
    const std::string name = page.cut(bars.categories[c].str(), labels);
    canvas.text(labels - display_width(name), first, name);
    for (size_t s = 0; s < bars.series.size(); ++s) {
      const double v = bars.series[s].values[c], place = std::clamp(values.fraction(v), 0.0, 1.0);
      int end = left + static_cast<int>(std::lround(base * area));
      if (std::isfinite(place)) {
        const int from = left + static_cast<int>(std::lround(std::min(base, place) * area));
        end = left + static_cast<int>(std::lround(std::max(base, place) * area));
        for (int x = from; x < end; ++x) canvas.put(x, first + static_cast<int>(s), glyph(s), page.ink(palette(s)));
      }
      canvas.text(std::max(end, left) + 1, first + static_cast<int>(s), page.number(short_number(v)));
    }
  }
  draw_legend(canvas, page, legend, left, top + lines);
  return canvas;
}

}  // namespace qkv::plotting
