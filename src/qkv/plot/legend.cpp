// Finds the position where a legend hides the least.
#include <algorithm>
#include <cmath>

#include "qkv/plot/layout.h"
#include "qkv/plot/text.h"

namespace qkv::plotting {
namespace {

struct Point {
  double x, y;  // fractions of the frame, y from the top
};

void add_segment(std::vector<Point>& ink, Point a, Point b) {
  if (!std::isfinite(a.x + a.y + b.x + b.y)) return;  // a bar that a log scale cannot show
  const int steps = static_cast<int>(std::clamp(std::hypot(b.x - a.x, b.y - a.y) * 80, 1.0, 80.0));
  for (int i = 0; i <= steps; ++i) ink.push_back({a.x + (b.x - a.x) * i / steps, a.y + (b.y - a.y) * i / steps});
}

void add_bar(std::vector<Point>& ink, double left, double right, double top, double bottom) {
  for (int i = 0; i <= 8; ++i)
    add_segment(ink, {left + (right - left) * i / 8, top}, {left + (right - left) * i / 8, bottom});
}

std::vector<Point> ink_of(const Curves& curves, const Range& x, const Range& y) {
  std::vector<Point> ink;
  const auto add_line = [&](const std::vector<double>& xs, const std::vector<double>& ys, bool joined) {
    const size_t every = std::max<size_t>(1, xs.size() / 4000);
    Point last{NAN, NAN};
    for (size_t i = 0; i < xs.size(); i += every) {
      const Point p{x.fraction(xs[i]), 1 - y.fraction(ys[i])};
      if (std::isfinite(p.x + p.y)) {
        if (joined && std::isfinite(last.x + last.y))
          add_segment(ink, last, p);
        else
          ink.push_back(p);
      }
      last = p;
    }
  };
  for (const Series& s : curves.series) add_line(s.x, s.y, !s.style || s.style->dash != Dash::none);
  for (const Band& b : curves.bands) {
    add_line(b.x, b.low, true);
    add_line(b.x, b.high, true);
  }
  return ink;
}

std::vector<Point> ink_of(const Bars& bars, const Range& x, const Range& y) {
  std::vector<Point> ink;
  for (const NamedValues& s : bars.series)
    for (size_t c = 0; c < s.values.size(); ++c)
      if (drawable(s.values[c]))
        add_bar(ink, x.fraction(static_cast<double>(c) + 0.1), x.fraction(static_cast<double>(c) + 0.9),
                1 - y.fraction(s.values[c]), 1);
  return ink;
}

std::vector<Point> ink_of(const Histogram& histogram, const Range& x, const Range& y) {
  std::vector<Point> ink;
  const HistogramCounts h = histogram_counts(histogram);
  for (const std::vector<double>& counts : h.counts)
    for (size_t i = 0; i < counts.size(); ++i)
      if (counts[i] > 0) add_bar(ink, x.fraction(h.edges[i]), x.fraction(h.edges[i + 1]), 1 - y.fraction(counts[i]), 1);
  return ink;
}

std::vector<Point> ink_of(const HeatMap&, const Range&, const Range&) { return {}; }

std::vector<LegendEntry> entries_of(const Panel& panel) {
  std::vector<LegendEntry> out;
  const auto add = [&](const Label& name, size_t place, LegendEntry::Kind kind) {
    if (!name.empty()) out.push_back({name.str(), place, kind});
  };
  if (const Curves* c = std::get_if<Curves>(&panel.content)) {
    for (size_t i = 0; i < c->series.size(); ++i) add(c->series[i].name, i, LegendEntry::Kind::line);
    for (size_t i = 0; i < c->bands.size(); ++i) add(c->bands[i].name, i, LegendEntry::Kind::band);
  } else if (const Bars* b = std::get_if<Bars>(&panel.content)) {
    for (size_t i = 0; i < b->series.size(); ++i) add(b->series[i].name, i, LegendEntry::Kind::fill);
  } else if (const Histogram* h = std::get_if<Histogram>(&panel.content)) {
    for (size_t i = 0; i < h->samples.size(); ++i) add(h->samples[i].name, i, LegendEntry::Kind::fill);
  }
  return out;
}

// Corners first, then the middles of the sides, then the whole frame; of equally good positions the first is used.
std::vector<Point> places(double far_x, double far_y) {
  const double mid_x = far_x / 2, mid_y = far_y / 2;
  std::vector<Point> out = {{far_x, 5},     {5, 5},     {far_x, far_y}, {5, far_y},
                            {mid_x, far_y}, {mid_x, 5}, {far_x, mid_y}, {5, mid_y}};
  for (int down = 0; down <= 8; ++down)
    for (int across = 0; across <= 8; ++across)
      out.push_back({5 + (far_x - 5) * across / 8, 5 + (far_y - 5) * down / 8});
  return out;
}

size_t count_under(const std::vector<Point>& ink, const Box& box, double width, double height) {
  return static_cast<size_t>(std::count_if(ink.begin(), ink.end(), [&](const Point& p) {
    const double px = p.x * width, py = p.y * height;
    return px >= box.x - 3 && px <= box.x + box.width + 3 && py >= box.y - 3 && py <= box.y + box.height + 3;
  }));
}

}  // namespace

LegendPlan plan_legend(const Panel& panel, const Range& x, const Range& y, double width, double height) {
  LegendPlan plan;
  plan.entries = entries_of(panel);
  if (plan.entries.empty()) return plan;
  double widest = 0;
  for (const LegendEntry& e : plan.entries) widest = std::max(widest, text_width(e.name, kFont));
  plan.box.width = kLegendSample + 3 * kLegendPadding + widest;
  plan.box.height = kLegendLine * static_cast<double>(plan.entries.size()) + kLegendPadding;
  const std::vector<Point> ink = std::visit([&](const auto& content) { return ink_of(content, x, y); }, panel.content);
  const double far_x = width - plan.box.width - 5, far_y = height - plan.box.height - 5;
  size_t best = ink.size() + 1;
  for (const Point& place : places(far_x, far_y)) {
    const size_t hidden = count_under(ink, {place.x, place.y, plan.box.width, plan.box.height}, width, height);
    if (hidden >= best) continue;
    best = hidden;
    plan.box.x = place.x;
    plan.box.y = place.y;
  }
  plan.outside = far_x < 5 || far_y < 5 || static_cast<double>(best) > 0.01 * static_cast<double>(ink.size());
  if (plan.outside) {
    plan.box.x = width + 8;
    plan.box.y = 0;
  }
  return plan;
}

}  // namespace qkv::plotting
