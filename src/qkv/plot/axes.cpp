// Ranges from data, ticks at round numbers.
#include "qkv/plot/axes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace qkv::plotting {
namespace {

// The smallest and the largest value seen that an axis of this scale can show.
struct Extent {
  AxisScale scale = AxisScale::linear;
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();

  void add(double v) {
    if (!drawable(v) || (scale == AxisScale::log && !(v > 1e-300))) return;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  void add(const std::vector<double>& values) {
    for (double v : values) add(v);
  }
  bool empty() const { return !(low <= high); }
};

// The axis' own limits, else those of the data, with a margin of 4 % if `padded`; never an empty interval.
Range finished(Extent e, const Axis& axis, bool padded) {
  const bool log = axis.scale == AxisScale::log;
  if (e.empty()) {
    e.low = log ? 0.1 : 0;
    e.high = 1;
  }
  const auto widen = [&] {
    if (log) {
      e.low /= 1.5;
      e.high *= 1.5;
    } else {
      const double half = e.low == 0 && e.high == 0 ? 0.5 : 0.05 * std::max(std::abs(e.low), std::abs(e.high));
      e.low -= half;
      e.high += half;
    }
  };
  const double size = std::max(std::abs(e.low), std::abs(e.high));
  if (e.high - e.low <= 1e-9 * size || size == 0)
    widen();
  else if (padded && log) {
    const double pad = std::exp(0.04 * (std::log(e.high) - std::log(e.low)));
    e.low = std::max(e.low / pad, 1e-305);
    e.high = std::min(e.high * pad, 1e305);
  } else if (padded) {
    const double pad = 0.04 * (e.high - e.low);
    e.low -= pad;
    e.high += pad;
  }
  Range r{axis.low.value_or(e.low), axis.high.value_or(e.high), axis.scale};
  if (!(r.low < r.high)) {  // the only given limit is beyond all data
    const double step = log ? 0 : std::max(1.0, std::abs(axis.low ? r.low : r.high) * 0.1);
    if (axis.low)
      r.high = log ? r.low * 10 : r.low + step;
    else
      r.low = log ? r.high / 10 : r.high - step;
  }
  return r;
}

PanelRanges ranges_of(const Panel& p, const HeatMap& map) {
  (void)p;
  return {{0, static_cast<double>(std::max<int64_t>(map.values.size(1), 1))},
          {0, static_cast<double>(std::max<int64_t>(map.values.size(0), 1))}};
}

PanelRanges ranges_of(const Panel& p, const Curves& curves) {
  Extent x{p.x.scale}, y{p.y.scale};
  const auto inside = [](const Axis& axis, double v) {
    return (!axis.low || v >= *axis.low) && (!axis.high || v <= *axis.high);
  };
  for (const Series& s : curves.series) {
    x.add(s.x);
    for (size_t i = 0; i < s.y.size(); ++i)
      if (drawable(s.x[i]) && inside(p.x, s.x[i])) y.add(s.y[i]);
  }
  for (const Band& b : curves.bands) {
    x.add(b.x);
    y.add(b.low);
    y.add(b.high);
  }
  return {finished(x, p.x, true), finished(y, p.y, true)};
}

PanelRanges ranges_of(const Panel& p, const Bars& bars) {
  Extent y{p.y.scale};
  y.add(0);
  for (const NamedValues& s : bars.series) y.add(s.values);
  Range r = finished(y, p.y, true);
  if (bars.bar_values && p.y.scale == AxisScale::linear && !p.y.high)
    r.high += 0.06 * (r.high - r.low);  // room for the numbers
  if (p.y.scale == AxisScale::linear && !p.y.low && y.low >= 0) r.low = 0;
  if (p.y.scale == AxisScale::linear && !p.y.high && y.high <= 0 && y.low < 0) r.high = 0;
  return {{0, static_cast<double>(std::max<size_t>(bars.categories.size(), 1))}, r};
}

PanelRanges ranges_of(const Panel& p, const Histogram& histogram) {
  const HistogramCounts h = histogram_counts(histogram);
  Extent x{p.x.scale}, y{p.y.scale};
  x.add(h.edges);
  y.add(0);
  for (const std::vector<double>& counts : h.counts) y.add(counts);
  if (p.y.scale == AxisScale::log) y.add(0.8);
  Range r = finished(y, p.y, true);
  if (p.y.scale == AxisScale::linear && !p.y.low) r.low = 0;
  return {finished(x, p.x, true), r};
}

std::string fixed(double value, int decimals) {
  std::array<char, 400> digits;
  char* const end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed, decimals).ptr;
  std::string out(digits.data(), end);
  if (out.find_first_not_of("-0.") == std::string::npos && out[0] == '-') out.erase(0, 1);
  return out;
}

std::string with_minus(std::string number) { return number[0] == '-' ? "−" + number.substr(1) : number; }

std::string superscript(int exponent) {
  constexpr const char* digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string out = exponent < 0 ? "⁻" : "";
  for (char c : std::to_string(std::abs(exponent))) out += digits[c - '0'];
  return out;
}

// The smallest 1, 2 or 5 times a power of ten that is not below x.
double nice_step(double x) {
  const double power = std::pow(10, std::floor(std::log10(x)));
  for (double m : {1.0, 2.0, 5.0})
    if (m * power >= x * (1 - 1e-9)) return m * power;
  return 10 * power;
}

std::vector<Tick> linear_ticks(const Range& r, int at_most) {
  std::vector<Tick> out;
  double step = nice_step((r.high - r.low) / (std::max(at_most, 1) + 1));
  for (int tries = 0; tries < 4; ++tries, step = nice_step(step * 1.5)) {
    const double slack = 1e-6, first = std::ceil(r.low / step - slack), last = std::floor(r.high / step + slack);
    if (!(std::abs(first) < 1e15 && std::abs(last) < 1e15))
      break;  // limits so close that neighbouring ticks are the same double
    if (last - first + 1 > at_most && tries < 3) continue;
    for (double i = first; i <= last && out.size() < 1000; ++i)
      out.push_back({i * step, tick_label(i * step, step, std::max(std::abs(r.low), std::abs(r.high)))});
    break;
  }
  return out;
}

std::vector<Tick> log_ticks(const Range& r, int at_most) {
  std::vector<Tick> out;
  const int first = static_cast<int>(std::ceil(std::log10(r.low) - 1e-9)),
            last = static_cast<int>(std::floor(std::log10(r.high) + 1e-9));
  const bool plain = first >= -3 && last <= 3;
  const auto add = [&](double value, int exponent) {
    out.push_back({value, plain ? short_number(value) : "10" + superscript(exponent)});
  };
  const auto add_decades = [&] {
    const int step = std::max(1, (last - first + at_most) / std::max(at_most, 1));
    for (int e = first; e <= last; ++e)
      if ((e - first) % step == 0) add(std::pow(10, e), e);
  };
  if (last - first >= 2) {
    add_decades();
    return out;
  }
  const auto multiples = [&](std::initializer_list<double> of) {
    out.clear();
    for (int e = first - 1; e <= last; ++e)
      for (const double m : of) {
        const double v = m * std::pow(10, e);
        if (v >= r.low * (1 - 1e-9) && v <= r.high * (1 + 1e-9)) out.push_back({v, short_number(v)});
      }
    return out.size() >= 2 && static_cast<int>(out.size()) <= std::max(at_most, 2);
  };
  if (multiples({1, 2, 5})) return out;
  if (static_cast<int>(out.size()) > at_most && last > first) {
    out.clear();
    add_decades();
    if (out.size() >= 2) return out;
  }
  // With little room, twice a power of ten is better than a single tick.
  if (multiples({1, 3}) || multiples({2})) return out;
  return linear_ticks(r, at_most);
}

}  // namespace

double Range::fraction(double value) const {
  if (!drawable(value)) return std::numeric_limits<double>::quiet_NaN();
  if (scale == AxisScale::linear) return (value - low) / (high - low);
  return value > 0 ? (std::log(value) - std::log(low)) / (std::log(high) - std::log(low))
                   : std::numeric_limits<double>::quiet_NaN();
}

std::vector<Tick> nice_ticks(const Range& range, int at_most) {
  return range.scale == AxisScale::log ? log_ticks(range, at_most) : linear_ticks(range, at_most);
}

std::vector<double> minor_ticks(const Range& range) {
  std::vector<double> out;
  if (range.scale == AxisScale::linear || range.high / range.low > 1e7) return out;
  for (int e = static_cast<int>(std::floor(std::log10(range.low))); e <= std::log10(range.high); ++e)
    for (int m = 2; m < 10; ++m)
      if (const double v = m * std::pow(10, e); v >= range.low && v <= range.high) out.push_back(v);
  return out;
}

std::vector<int64_t> index_ticks(int64_t count, int at_most) {
  std::vector<int64_t> out;
  const double least = static_cast<double>(count) / std::max(at_most, 1);
  const int64_t step = least <= 1 ? 1 : std::max<int64_t>(1, std::llround(nice_step(least)));
  for (int64_t i = 0; i < count; i += step) out.push_back(i);
  return out;
}

std::vector<CellTick> cell_ticks(int64_t count, const std::optional<CellSpan>& span, int at_most) {
  std::vector<CellTick> out;
  if (!span || count < 2) {
    for (int64_t i : index_ticks(count, at_most)) out.push_back({i, std::to_string(i)});
    return out;
  }
  for (const Tick& t : nice_ticks({std::min(span->first, span->last), std::max(span->first, span->last)}, at_most))
    out.push_back(
        {std::llround((t.value - span->first) / (span->last - span->first) * static_cast<double>(count - 1)), t.label});
  std::ranges::sort(out, {}, &CellTick::cell);
  return out;
}

std::string tick_label(double value, double step, double largest) {
  const bool zero = std::abs(value) < step * 1e-6;
  if (largest < 1e6 && step >= 0.999e-4)
    return with_minus(
        fixed(zero ? 0 : value, step >= 0.999 ? 0 : static_cast<int>(std::ceil(-std::log10(step) - 1e-6))));
  if (zero) return "0";
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-9));
  const double unit = std::pow(10, exponent), mantissa = value / unit;
  const int decimals = std::clamp(static_cast<int>(std::ceil(exponent - std::log10(step) - 1e-6)), 0, 15);
  return with_minus(fixed(mantissa, decimals)) + "×10" + superscript(exponent);
}

std::string short_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "∞" : "−∞";
  const double size = std::abs(value);
  if (size == 0) return "0";
  if (size >= 1e6 || size < 1e-3) {
    const int exponent = static_cast<int>(std::floor(std::log10(size) + 1e-9));
    std::string mantissa = fixed(value / std::pow(10, exponent), 1);
    if (mantissa.ends_with(".0")) mantissa.resize(mantissa.size() - 2);
    return with_minus(mantissa) + "×10" + superscript(exponent);
  }
  const int decimals = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
  std::string out = fixed(value, decimals);
  if (out.find('.') != std::string::npos) {
    while (out.back() == '0') out.pop_back();
    if (out.back() == '.') out.pop_back();
  }
  return with_minus(out);
}

std::vector<PanelRanges> panel_ranges(const Figure& figure) {
  std::vector<PanelRanges> out;
  for (const Panel& p : figure.panels)
    out.push_back(std::visit([&](const auto& content) { return ranges_of(p, content); }, p.content));
  // Numeric axes with the same scale get one range; an axis of cells or categories keeps its own.
  const auto numeric = [&](size_t i, Range PanelRanges::*axis) {
    const auto& content = figure.panels[i].content;
    return std::holds_alternative<Curves>(content) || std::holds_alternative<Histogram>(content) ||
           (std::holds_alternative<Bars>(content) && axis == &PanelRanges::y);
  };
  const auto unite = [&](Range PanelRanges::*axis, AxisScale scale) {
    Range all{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), scale};
    const auto joins = [&](size_t i) { return numeric(i, axis) && (out[i].*axis).scale == scale; };
    for (size_t i = 0; i < out.size(); ++i) {
      if (!joins(i)) continue;
      all.low = std::min(all.low, (out[i].*axis).low);
      all.high = std::max(all.high, (out[i].*axis).high);
    }
    for (size_t i = 0; i < out.size(); ++i)
      if (joins(i)) out[i].*axis = all;
  };
  for (AxisScale scale : {AxisScale::linear, AxisScale::log}) {
    if (figure.share_x) unite(&PanelRanges::x, scale);
    if (figure.share_y) unite(&PanelRanges::y, scale);
  }
  return out;
}

double ColourRange::fraction(double value) const {
  if (std::isinf(value)) return value > 0 ? 1 : 0;
  return (value - low) / (high - low);
}

std::vector<ColourRange> colour_ranges(const Figure& figure) {
  struct Seen {
    Extent extent;
    bool nan = false;
  };
  std::vector<Seen> seen(figure.panels.size());
  Seen all;
  for (size_t i = 0; i < seen.size(); ++i) {
    const HeatMap* map = std::get_if<HeatMap>(&figure.panels[i].content);
    if (!map) continue;
    for (float v : map->values.data()) {
      seen[i].extent.add(v);
      seen[i].nan |= std::isnan(v);
    }
    all.extent.add(seen[i].extent.low);
    all.extent.add(seen[i].extent.high);
    all.nan |= seen[i].nan;
  }
  const bool both_signs =
      all.extent.high > 0 && all.extent.low < -1e-6 * all.extent.high;  // not just rounding errors around zero
  const ColourMap map = figure.colours.map.value_or(both_signs ? ColourMap::diverging : ColourMap::reds);
  std::vector<ColourRange> out;
  for (const Seen& own : seen) {
    Extent e = figure.colours.per_panel ? own.extent : all.extent;
    if (e.empty()) {
      e.low = 0;
      e.high = 1;
    }
    if (map == ColourMap::diverging) {
      e.high = std::max(std::abs(e.low), std::abs(e.high));
      e.low = -e.high;
    }
    if (map == ColourMap::reds && e.low > 0 && e.low < 0.05 * e.high)
      e.low = 0;            // a scale of weights begins at zero, not at the smallest weight
    if (e.low == e.high) {  // a constant is the far end of a scale that begins at zero
      if (e.low > 0)
        e.low = 0;
      else if (e.low < 0)
        e.high = 0;
      else
        e.high = 1;
    }
    if (e.low == e.high) e.high = 1;
    ColourRange r{figure.colours.low.value_or(e.low), figure.colours.high.value_or(e.high),
                  figure.colours.per_panel ? own.nan : all.nan, map};
    if (!(r.low < r.high)) (figure.colours.low ? r.high : r.low) = figure.colours.low ? r.low + 1 : r.high - 1;
    out.push_back(r);
  }
  return out;
}

Colour palette(size_t place) {
  constexpr Colour colours[] = {{0, 114, 178}, {184, 50, 140}, {0, 140, 100}, {213, 94, 0},
                                {90, 90, 90},  {86, 170, 225}, {200, 150, 0}, {140, 86, 60}};
  return colours[place % std::size(colours)];
}

LineStyle resolved_style(const Series& series, size_t place) {
  constexpr Dash dashes[] = {Dash::solid, Dash::dashed, Dash::dash_dot, Dash::dotted};
  LineStyle style = series.style.value_or(LineStyle{.dash = dashes[place % 4]});
  if (!style.colour) style.colour = palette(place);
  return style;
}

}  // namespace qkv::plotting
