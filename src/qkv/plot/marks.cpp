// Tick marks of a panel's axes and the space for their labels.
#include <algorithm>
#include <cmath>

#include "qkv/plot/layout.h"
#include "qkv/plot/text.h"

namespace qkv::plotting {
namespace {

constexpr double kLongestLabel = 140;

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

// Numbers along the cells of a heat map; a span that decreases from its first cell to its last reverses the axis.
AxisMarks span_marks(const CellSpan& span, int64_t count, double length, bool horizontal) {
  const double half = count > 1 ? (span.last - span.first) / static_cast<double>(count - 1) / 2 : 0.5;
  const double from = span.first - half, to = span.last + half;
  AxisMarks out = number_marks({std::min(from, to), std::max(from, to)}, length, horizontal);
  if ((from < to) != horizontal)
    for (Mark& m : out.marks) m.place = 1 - m.place;
  return out;
}

}  // namespace

void plan_marks(const Panel& panel, PanelPlan& plan, double width, double height) {
  if (const HeatMap* map = std::get_if<HeatMap>(&panel.content)) {
    const int64_t rows = map->values.size(0), cols = map->values.size(1);
    plan.x_marks = !map->x_tokens.empty() ? cell_marks_x(map->x_tokens, width)
                   : map->x_span          ? span_marks(*map->x_span, cols, width, true)
                                          : index_marks(cols, width, true);
    plan.y_marks = !map->y_tokens.empty() ? cell_marks_y(map->y_tokens, height)
                   : map->y_span          ? span_marks(*map->y_span, rows, height, false)
                                          : index_marks(rows, height, false);
    return;
  }
  if (const Bars* bars = std::get_if<Bars>(&panel.content)) {
    std::vector<std::string> names;
    for (const Label& category : bars->categories) names.push_back(category.str());
    plan.x_marks = cell_marks_x(names, width);
  } else {
    plan.x_marks = number_marks(plan.x, width, true);
  }
  plan.y_marks = number_marks(plan.y, height, false);
}

}  // namespace qkv::plotting
