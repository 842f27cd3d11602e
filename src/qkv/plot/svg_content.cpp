// Curves, points, bands, bars, histograms and legends in SVG.
#include <algorithm>
#include <cmath>

#include "qkv/plot/heat.h"
#include "qkv/plot/svg_writer.h"

namespace qkv::plotting {
namespace {

struct Point {
  double x, y;
};

Point at(const PanelPlan& plan, double x, double y) {
  const Box& f = plan.frame;
  const double px = f.x + plan.x.fraction(x) * f.width, py = f.y + (1 - plan.y.fraction(y)) * f.height;
  return {std::clamp(px, -1e5, 1e5),
          std::clamp(py, -1e5, 1e5)};  // points far outside are clipped anyway; clamp keeps NaN
}

bool finite(const Point& p) { return std::isfinite(p.x) && std::isfinite(p.y); }

// Thins long lines with ascending x: each half pixel keeps its first, lowest, highest and last point, which looks the
// same.
std::vector<Point> thinned(const std::vector<Point>& points) {
  if (points.size() < 2000 || !std::all_of(points.begin(), points.end(), finite) ||
      !std::is_sorted(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.x < b.x; }))
    return points;
  std::vector<Point> out;
  for (size_t begin = 0; begin < points.size();) {
    size_t end = begin, low = begin, high = begin;
    while (end < points.size() && points[end].x < points[begin].x + 0.5) {
      if (points[end].y < points[low].y) low = end;
      if (points[end].y > points[high].y) high = end;
      ++end;
    }
    if (end == begin) end = begin + 1;
    size_t kept[] = {begin, std::min(low, high), std::max(low, high), end - 1};
    for (int i = 0; i < 4; ++i)
      if (i == 0 || kept[i] != kept[i - 1]) out.push_back(points[kept[i]]);
    begin = end;
  }
  return out;
}

std::string path_of(const std::vector<Point>& points) {
  std::string d;
  bool pen = false;
  for (const Point& p : points) {
    if (finite(p)) d += (pen ? "L" : "M") + svg_number(p.x) + " " + svg_number(p.y);
    pen = finite(p);
  }
  return d;
}

void draw_circle(SvgWriter& w, Point p, const LineStyle& style, double radius) {
  w.open("circle")
      .attribute("cx", p.x)
      .attribute("cy", p.y)
      .attribute("r", radius)
      .attribute("fill", hex(*style.colour))
      .attribute("fill-opacity", style.alpha * 0.55)
      .attribute("stroke", hex(*style.colour))
      .attribute("stroke-opacity", style.alpha)
      .attribute("stroke-width", 0.8)
      .end();
}

void draw_series(SvgWriter& w, const Series& series, const LineStyle& style, const PanelPlan& plan) {
  std::vector<Point> points;
  for (size_t i = 0; i < series.x.size(); ++i) points.push_back(at(plan, series.x[i], series.y[i]));
  if (style.dash != Dash::none) {
    const std::string d = path_of(thinned(points));
    if (!d.empty()) {
      w.open("path")
          .attribute("class", "curve")
          .attribute("d", d)
          .attribute("fill", "none")
          .attribute("stroke", hex(*style.colour))
          .attribute("stroke-width", style.width)
          .attribute("stroke-linejoin", "round");
      if (const std::string dashes = dash_array(style.dash, style.width); !dashes.empty())
        w.attribute("stroke-dasharray", dashes);
      if (style.dash == Dash::dotted) w.attribute("stroke-linecap", "round");
      if (style.alpha < 1) w.attribute("stroke-opacity", style.alpha);
      w.end();
    }
  }
  if (style.circles)
    for (const Point& p : points)
      if (finite(p)) draw_circle(w, p, style, 3);
}

void draw_band(SvgWriter& w, const Band& band, size_t place, const PanelPlan& plan) {
  const std::string colour = hex(band.colour.value_or(palette(place)));
  for (size_t begin = 0; begin < band.x.size();) {  // one polygon per stretch without gaps
    std::vector<Point> outline, back;
    size_t i = begin;
    for (; i < band.x.size(); ++i) {
      const Point low = at(plan, band.x[i], band.low[i]), high = at(plan, band.x[i], band.high[i]);
      if (!finite(low) || !finite(high)) break;
      outline.push_back(high);
      back.push_back(low);
    }
    outline.insert(outline.end(), back.rbegin(), back.rend());
    if (!outline.empty())
      w.open("path")
          .attribute("class", "band")
          .attribute("d", path_of(outline) + "Z")
          .attribute("fill", colour)
          .attribute("fill-opacity", 0.18)
          .end();
    begin = i + 1;
  }
}

void draw(SvgWriter& w, const Curves& curves, const PanelPlan& plan) {
  for (size_t i = 0; i < curves.bands.size(); ++i) draw_band(w, curves.bands[i], i, plan);
  for (size_t i = 0; i < curves.series.size(); ++i) {  // points below lines
    const LineStyle style = resolved_style(curves.series[i], i);
    if (style.dash == Dash::none) draw_series(w, curves.series[i], style, plan);
  }
  for (size_t i = 0; i < curves.series.size(); ++i) {
    const LineStyle style = resolved_style(curves.series[i], i);
    if (style.dash != Dash::none) draw_series(w, curves.series[i], style, plan);
  }
}

// The vertical extent of a bar; on a log scale bars start at the lower limit.
void draw_bar(SvgWriter& w, double left, double right, double value, const PanelPlan& plan, const std::string& fill,
              size_t place) {
  if (!drawable(value)) return;
  const double base = plan.y.scale == AxisScale::log || plan.y.low > 0 ? plan.y.low : std::min(0.0, plan.y.high);
  const Box& f = plan.frame;
  const double a = plan.y.fraction(value), b = plan.y.fraction(base);
  if (!std::isfinite(a)) return;
  const double top = std::clamp(std::max(a, b), -0.1, 1.1), bottom = std::clamp(std::min(a, b), -0.1, 1.1);
  w.rect({left, f.y + (1 - top) * f.height, right - left, (top - bottom) * f.height})
      .attribute("class", "bar")
      .attribute("fill", fill)
      .attribute("stroke", hex(palette(place)))
      .attribute("stroke-width", 0.7)
      .end();
}

void draw(SvgWriter& w, const Bars& bars, const PanelPlan& plan) {
  const Box& f = plan.frame;
  const double group = f.width / static_cast<double>(std::max<size_t>(bars.categories.size(), 1));
  const double width =
      group * (bars.series.size() == 1 ? 0.6 : 0.76) / static_cast<double>(std::max<size_t>(bars.series.size(), 1));
  for (size_t c = 0; c < bars.categories.size(); ++c) {
    const double start =
        f.x + group * (static_cast<double>(c) + 0.5) - width * static_cast<double>(bars.series.size()) / 2;
    for (size_t s = 0; s < bars.series.size(); ++s) {
      const double left = start + width * static_cast<double>(s), value = bars.series[s].values[c];
      draw_bar(w, left, left + width, value, plan, fill_of(w, s, true), s);
      if (!bars.bar_values || !drawable(value)) continue;
      const std::string label = short_number(value);
      const double font = kCellFont, y = at(plan, 0, value).y + (value < 0 ? 7 : -7);
      if (text_width(label, font) <= width * 1.1 + 4 && y - font / 2 > f.y)
        w.text(left + width / 2, y, label, font, Anchor::middle);
    }
  }
  if (plan.y.low < 0 && plan.y.high > 0)
    w.line(f.x, at(plan, 0, 0).y, f.x + f.width, at(plan, 0, 0).y, w.ink.frame, 0.8);
}

void draw(SvgWriter& w, const Histogram& histogram, const PanelPlan& plan) {
  const HistogramCounts h = histogram_counts(histogram);
  const double n = static_cast<double>(std::max<size_t>(h.counts.size(), 1));
  for (size_t s = 0; s < h.counts.size(); ++s) {
    for (size_t i = 0; i < h.counts[s].size(); ++i) {
      if (h.counts[s][i] <= 0) continue;
      const double a = at(plan, h.edges[i], 1).x, b = at(plan, h.edges[i + 1], 1).x,
                   share = (b - a) * (n == 1 ? 1 : 0.86) / n;
      const double left = a + (b - a - share * n) / 2 + share * static_cast<double>(s);
      draw_bar(w, left, left + share, h.counts[s][i], plan, fill_of(w, s, true), s);
    }
  }
}

}  // namespace

std::string dash_array(Dash dash, double width) {
  const auto list = [&](std::initializer_list<double> lengths) {
    std::string out;
    for (double l : lengths) out += (out.empty() ? "" : " ") + svg_number(l * width / 1.5);
    return out;
  };
  switch (dash) {
    case Dash::dashed:
      return list({6, 3.5});
    case Dash::dash_dot:
      return list({7, 3, 1.6, 3});
    case Dash::dotted:
      return list({0.4, 3.4});
    default:
      return "";
  }
}

std::string fill_of(const SvgWriter& w, size_t place, bool hatch) {
  return hatch && place == 1 ? "url(#" + w.id + "-hatch)" : hex(palette(place));
}

void draw_content(SvgWriter& w, const Figure& figure, size_t index, const PanelPlan& plan, bool heat_as_image) {
  const Panel& panel = figure.panels[index];
  if (const HeatMap* map = std::get_if<HeatMap>(&panel.content)) return draw_heat(w, *map, plan, heat_as_image);
  w.open("g").attribute("clip-path", "url(#" + w.id + "-clip-" + std::to_string(index) + ")").body();
  if (const Curves* c = std::get_if<Curves>(&panel.content)) draw(w, *c, plan);
  if (const Bars* b = std::get_if<Bars>(&panel.content)) draw(w, *b, plan);
  if (const Histogram* h = std::get_if<Histogram>(&panel.content)) draw(w, *h, plan);
  w.close("g");
}

void draw_legend(SvgWriter& w, const Panel& panel, const PanelPlan& plan) {
  const LegendPlan& legend = plan.legend;
  if (legend.entries.empty()) return;
  const Box box{plan.frame.x + legend.box.x, plan.frame.y + legend.box.y, legend.box.width, legend.box.height};
  w.open("g").attribute("class", "legend").body();
  if (!legend.outside && w.paper)
    w.rect(box)
        .attribute("fill", "#fff")
        .attribute("fill-opacity", 0.85)
        .attribute("stroke", "#ccc")
        .attribute("stroke-width", 0.6)
        .attribute("rx", 2)
        .end();
  double y = box.y + kLegendPadding / 2 + kLegendLine / 2;
  const double x = box.x + kLegendPadding;
  for (const LegendEntry& e : legend.entries) {
    if (e.kind == LegendEntry::Kind::line) {
      const LineStyle style = resolved_style(std::get<Curves>(panel.content).series[e.place], e.place);
      if (style.dash != Dash::none) {
        w.open("path")
            .attribute("d", "M" + svg_number(x) + " " + svg_number(y) + "h" + svg_number(kLegendSample))
            .attribute("fill", "none")
            .attribute("stroke", hex(*style.colour))
            .attribute("stroke-width", style.width);
        if (const std::string dashes = dash_array(style.dash, style.width); !dashes.empty())
          w.attribute("stroke-dasharray", dashes);
        if (style.dash == Dash::dotted) w.attribute("stroke-linecap", "round");
        w.end();
      }
      if (style.circles) draw_circle(w, {x + kLegendSample / 2, y}, style, 3);
    } else {
      const bool band = e.kind == LegendEntry::Kind::band;
      const Box swatch{x + 2, y - 4.5, kLegendSample - 4, 9};
      const std::string fill =
          band ? hex(std::get<Curves>(panel.content).bands[e.place].colour.value_or(palette(e.place)))
               : fill_of(w, e.place, true);
      w.rect(swatch).attribute("fill", fill);
      if (band)
        w.attribute("fill-opacity", 0.18);
      else
        w.attribute("stroke", hex(palette(e.place))).attribute("stroke-width", 0.7);
      w.end();
    }
    w.text(x + kLegendSample + kLegendPadding, y, e.name, kFont, Anchor::start);
    y += kLegendLine;
  }
  w.close("g");
}

}  // namespace qkv::plotting
