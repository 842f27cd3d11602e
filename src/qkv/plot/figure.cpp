// Making and checking figures.
#include "qkv/plot/figure.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "qkv/core/check.h"
#include "qkv/plot/axes.h"

namespace qkv {
namespace {

Colour format_colour(char letter) {
  switch (letter) {
    case 'b':
      return {0, 114, 178};
    case 'g':
      return {0, 140, 100};
    case 'r':
      return {200, 50, 43};
    case 'c':
      return {40, 150, 190};
    case 'm':
      return {184, 50, 140};
    case 'y':
      return {200, 150, 0};
    default:
      return {32, 32, 32};
  }
}

template <class T>
void check_tokens(const char* axis, const char* what, const std::vector<T>& tokens, int64_t count) {
  check(tokens.empty() || static_cast<int64_t>(tokens.size()) == count, "[figure] ", tokens.size(), " ", axis,
        " tokens for ", count, " ", what);
}

void check_axis(const char* name, const Axis& axis) {
  for (const std::optional<double>& limit : {axis.low, axis.high}) {
    check(!limit || plotting::drawable(*limit), "[figure] ", name, " limit cannot be drawn: ", limit.value_or(0));
    check(!limit || axis.scale == AxisScale::linear || *limit >= 1e-300, "[figure] ", name, " limit ",
          limit.value_or(0), " cannot be drawn on a log scale");
  }
  check(!axis.low || !axis.high || *axis.low < *axis.high, "[figure] ", name,
        " limits are not in order: ", axis.low.value_or(0), " and ", axis.high.value_or(0));
}

void check_content(const HeatMap& map) {
  check(map.values.rank() == 2, "[figure] a heat map needs a matrix (rows, cols), got ", map.values.shape());
  check_tokens("x", "columns", map.x_tokens, map.values.size(1));
  check_tokens("y", "rows", map.y_tokens, map.values.size(0));
  for (const CellIndex& box : map.boxes)
    check(box.row >= 0 && box.row < map.values.size(0) && box.col >= 0 && box.col < map.values.size(1),
          "[figure] box at (", box.row, ", ", box.col, ") outside a heat map of ", map.values.shape());
  const Tensor& picture = map.picture;
  check(!picture.defined() || (picture.rank() == 3 && (picture.size(2) == 1 || picture.size(2) == 3)),
        "[figure] a picture below cells is (height, width, 1 or 3), got ", picture.shape());
}

void check_content(const Curves& curves) {
  for (const Series& s : curves.series)
    check(s.x.size() == s.y.size(), "[figure] series \"", s.name, "\" has ", s.x.size(), " x and ", s.y.size(),
          " y values");
  for (const Band& b : curves.bands)
    check(b.x.size() == b.low.size() && b.x.size() == b.high.size(), "[figure] band \"", b.name, "\" has ", b.x.size(),
          " x, ", b.low.size(), " low and ", b.high.size(), " high values");
}

void check_content(const Bars& bars) {
  for (const NamedValues& s : bars.series)
    check(s.values.size() == bars.categories.size(), "[figure] bars \"", s.name, "\" have ", s.values.size(),
          " values for ", bars.categories.size(), " categories");
}

void check_content(const Histogram& histogram) {
  check(histogram.bins >= 1 && histogram.bins <= 10000, "[figure] histogram needs 1 to 10000 bins, got ",
        histogram.bins);
}

Figure one_panel(Panel panel) {
  Figure figure;
  figure.panels.push_back(std::move(panel));
  validate(figure);
  return figure;
}

}  // namespace

std::vector<Label> labels(const std::vector<std::string>& words) { return {words.begin(), words.end()}; }

LineStyle line_style(std::string_view format) {
  LineStyle style{.dash = Dash::none};
  std::string_view rest = format;
  if (!rest.empty() && std::string_view("bgrcmyk").find(rest[0]) != std::string_view::npos) {
    style.colour = format_colour(rest[0]);
    rest.remove_prefix(1);
  }
  if (!rest.empty() && rest[0] == 'o') {
    style.circles = true;
    rest.remove_prefix(1);
  }
  if (rest == "-" || (rest.empty() && !style.circles))
    style.dash = Dash::solid;
  else if (rest == "--")
    style.dash = Dash::dashed;
  else if (rest == "-.")
    style.dash = Dash::dash_dot;
  else if (rest == ":")
    style.dash = Dash::dotted;
  else
    check(rest.empty(), "[figure] unknown line format \"", format,
          "\", expected a colour of bgrcmyk, o, and one of - -- -. :");
  return style;
}

Figure heatmaps(const Tensor& values, const Label& x_label, const Label& y_label, const std::vector<Label>& titles,
                const HeatMapOptions& options) {
  check(values.rank() >= 2 && values.rank() <= 4, "[heatmaps] expected (rows, cols, queries, keys), got ",
        values.shape());
  const int64_t rows = values.rank() == 4 ? values.size(0) : 1, cols = values.rank() >= 3 ? values.size(-3) : 1;
  const int64_t nq = values.size(-2), nk = values.size(-1);
  check(rows >= 1 && cols >= 1 && rows * cols <= 4096, "[heatmaps] expected 1 to 4096 panels, got ", rows, " x ", cols);
  check(titles.empty() || static_cast<int64_t>(titles.size()) == cols, "[heatmaps] ", titles.size(), " titles for ",
        cols, " columns of panels");
  Figure figure;
  figure.rows = static_cast<int>(rows);
  figure.cols = static_cast<int>(cols);
  figure.share_x = figure.share_y = true;
  figure.colours = options.colours;
  figure.size = options.size;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      const Tensor matrix =
          values.defined() && values.numel() > 0 ? values.part((i * cols + j) * nq * nk, {nq, nk}) : zeros({nq, nk});
      Panel panel{HeatMap{matrix, options.x_tokens, options.y_tokens, {}, options.cell_values}};
      if (i == 0 && !titles.empty()) panel.title = titles[j];
      if (i == rows - 1) panel.x.label = x_label;
      if (j == 0) panel.y.label = y_label;
      figure.panels.push_back(std::move(panel));
    }
  }
  validate(figure);
  return figure;
}

Figure curves(std::vector<Series> series, Axis x, Axis y) {
  return one_panel({Curves{std::move(series)}, "", std::move(x), std::move(y)});
}

Figure bars(std::vector<Label> categories, std::vector<NamedValues> series, Axis x, Axis y) {
  return one_panel({Bars{std::move(categories), std::move(series)}, "", std::move(x), std::move(y)});
}

Figure histogram(std::vector<NamedValues> samples, Axis x, Axis y, int bins) {
  return one_panel({Histogram{std::move(samples), bins}, "", std::move(x), std::move(y)});
}

Series series(const Label& name, const Tensor& x, const Tensor& y, std::string_view format) {
  check(x.rank() == 1 && x.shape() == y.shape(), "[series] x and y must be vectors of the same length, got ", x.shape(),
        " and ", y.shape());
  Series out{name, {x.data().begin(), x.data().end()}, {y.data().begin(), y.data().end()}, std::nullopt};
  if (!format.empty()) out.style = line_style(format);
  return out;
}

HistogramCounts histogram_counts(const Histogram& histogram) {
  check_content(histogram);
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const NamedValues& s : histogram.samples) {
    for (double v : s.values) {
      if (!plotting::drawable(v)) continue;
      low = std::min(low, v);
      high = std::max(high, v);
    }
  }
  if (!(low <= high)) {
    low = 0;
    high = 1;
  }
  if (high - low <= 1e-12 * std::max(std::abs(low), std::abs(high))) {
    const double half = std::max(0.5, 1e-6 * std::abs(low));
    low -= half;
    high += half;
  }
  HistogramCounts out;
  const double width = (high - low) / histogram.bins;
  for (int i = 0; i <= histogram.bins; ++i) out.edges.push_back(i == histogram.bins ? high : low + i * width);
  for (const NamedValues& s : histogram.samples) {
    std::vector<double>& counts = out.counts.emplace_back(histogram.bins, 0.0);
    for (double v : s.values)
      if (plotting::drawable(v)) ++counts[std::clamp(static_cast<int>((v - low) / width), 0, histogram.bins - 1)];
  }
  return out;
}

Figure translated(Figure figure, Language language) {
  const auto say = [language](Label& label) { label = label.in(language); };
  say(figure.title);
  for (Panel& panel : figure.panels) {
    for (Label* label : {&panel.title, &panel.short_title, &panel.x.label, &panel.y.label}) say(*label);
    if (Curves* c = std::get_if<Curves>(&panel.content)) {
      for (Series& s : c->series) say(s.name);
      for (Band& b : c->bands) say(b.name);
    } else if (Bars* b = std::get_if<Bars>(&panel.content)) {
      for (Label& category : b->categories) say(category);
      for (NamedValues& s : b->series) say(s.name);
    } else if (Histogram* h = std::get_if<Histogram>(&panel.content)) {
      for (NamedValues& s : h->samples) say(s.name);
    }
  }
  return figure;
}

void validate(const Figure& figure) {
  check(figure.rows >= 1 && figure.cols >= 1, "[figure] the grid needs at least one panel, got ", figure.rows, " x ",
        figure.cols);
  check(static_cast<int64_t>(figure.panels.size()) == int64_t{figure.rows} * figure.cols, "[figure] ",
        figure.panels.size(), " panels for a grid of ", figure.rows, " x ", figure.cols);
  for (const Panel& panel : figure.panels) {
    check_axis("x", panel.x);
    check_axis("y", panel.y);
    std::visit([](const auto& content) { check_content(content); }, panel.content);
  }
  const ColourScale& c = figure.colours;
  check(plotting::drawable(c.low.value_or(0)) && plotting::drawable(c.high.value_or(0)),
        "[figure] colour limits cannot be drawn: ", c.low.value_or(0), " and ", c.high.value_or(0));
  check(!c.low || !c.high || *c.low < *c.high, "[figure] colour limits are not in order: ", c.low.value_or(0), " and ",
        c.high.value_or(0));
  if (figure.size)
    check(figure.size->width >= 0.5 && figure.size->height >= 0.5 && figure.size->width <= 100 &&
              figure.size->height <= 100,
          "[figure] size must be 0.5 to 100 inches per side, got ", figure.size->width, " x ", figure.size->height);
  check(!figure.id.empty(), "[figure] id is empty");
  for (char c : figure.id)
    check((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_',
          "[figure] id may hold letters, digits, - and _, got \"", figure.id, "\"");
}

}  // namespace qkv
