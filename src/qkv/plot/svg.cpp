// The SVG backend: page, axes, titles, colour bars; the data is drawn in svg_content.cpp and svg_heat.cpp.
#include "qkv/plot/svg.h"

#include <algorithm>
#include <cmath>

#include "qkv/core/check.h"
#include "qkv/plot/svg_writer.h"

namespace qkv {
namespace plotting {
namespace {

constexpr int64_t kMostRectangles = 800;
constexpr std::string_view kFontFamily =
    "Helvetica, Arial, 'Liberation Sans', 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', "
    "'DejaVu Sans', sans-serif";

void define_colours(SvgWriter& w, const Figure& figure, ColourMap map) {
  bool heat = false, hatched = false;
  for (const Panel& p : figure.panels) {
    heat |= std::holds_alternative<HeatMap>(p.content);
    if (const Histogram* h = std::get_if<Histogram>(&p.content)) hatched |= h->samples.size() > 1;
    if (const Bars* b = std::get_if<Bars>(&p.content)) hatched |= b->series.size() > 1;
  }
  w.open("defs").body();
  if (heat && figure.colours.bar) {
    w.open("linearGradient")
        .attribute("id", w.id + "-colours")
        .attribute("x1", 0)
        .attribute("y1", 1)
        .attribute("x2", 0)
        .attribute("y2", 0)
        .body();
    for (int i = 0; i <= 20; ++i)
      w.open("stop").attribute("offset", i / 20.0).attribute("stop-color", hex(colour_at(map, i / 20.0))).end();
    w.close("linearGradient");
  }
  if (hatched) {
    const std::string colour = hex(palette(1));
    w.open("pattern")
        .attribute("id", w.id + "-hatch")
        .attribute("width", 5)
        .attribute("height", 5)
        .attribute("patternUnits", "userSpaceOnUse")
        .attribute("patternTransform", "rotate(45)")
        .body();
    w.rect({0, 0, 5, 5}).attribute("fill", colour).attribute("fill-opacity", 0.3).end();
    w.line(2.5, 0, 2.5, 5, colour, 1.6);
    w.close("pattern");
  }
}

void define_clips(SvgWriter& w, const FigurePlan& plan) {
  for (size_t i = 0; i < plan.panels.size(); ++i) {
    w.open("clipPath").attribute("id", w.id + "-clip-" + std::to_string(i)).body();
    w.rect(plan.panels[i].frame).end();
    w.close("clipPath");
  }
  w.close("defs");
}

// Lines of one colour and width: they are one path, which is a fifth of the size of single lines.
class Strokes {
 public:
  void line(double x1, double y1, double x2, double y2) {
    path_ += "M" + svg_number(x1) + " " + svg_number(y1);
    path_ += x1 == x2 ? "V" + svg_number(y2) : "H" + svg_number(x2);
  }
  void draw(SvgWriter& w, std::string_view stroke, double width) const {
    if (path_.empty()) return;
    w.open("path").attribute("d", path_).attribute("stroke", stroke).attribute("stroke-width", width).end();
  }

 private:
  std::string path_;
};

void draw_grid(SvgWriter& w, const PanelPlan& plan, bool vertical) {
  const Box& f = plan.frame;
  w.open("g").attribute("class", "grid");
  if (!w.paper) w.attribute("opacity", 0.18);
  w.body();
  Strokes lines;
  if (vertical)
    for (const Mark& m : plan.x_marks.marks)
      lines.line(f.x + m.place * f.width, f.y, f.x + m.place * f.width, f.y + f.height);
  for (const Mark& m : plan.y_marks.marks)
    lines.line(f.x, f.y + m.place * f.height, f.x + f.width, f.y + m.place * f.height);
  lines.draw(w, w.ink.grid, 0.7);
  w.close("g");
}

void draw_x_axis(SvgWriter& w, const PanelPlan& plan) {
  const Box& f = plan.frame;
  const double base = f.y + f.height;
  Strokes ticks, small;
  for (const Mark& m : plan.x_marks.marks) {
    const double x = f.x + m.place * f.width;
    ticks.line(x, base, x, base + kTickLength);
    if (!plan.x_labels) continue;
    const double y = base + kTickLength + 3;
    if (plan.x_marks.angle == 0)
      w.text(x, y + kFont * 0.5, m.label, kFont, Anchor::middle);
    else
      w.text(x + (plan.x_marks.angle == 45 ? 2 : 0), y + (plan.x_marks.angle == 45 ? 2 : 0), m.label, kFont,
             Anchor::end, plan.x_marks.angle);
  }
  for (double place : plan.x_marks.minor)
    small.line(f.x + place * f.width, base, f.x + place * f.width, base + kTickLength * 0.55);
  ticks.draw(w, w.ink.frame, 0.8);
  small.draw(w, w.ink.frame, 0.6);
  if (!plan.x_label.empty())
    w.text(f.x + f.width / 2, base + (plan.x_labels ? plan.x_marks.depth : 0) + 4 + kFont * 0.6, plan.x_label, kFont,
           Anchor::middle);
}

void draw_y_axis(SvgWriter& w, const PanelPlan& plan) {
  const Box& f = plan.frame;
  Strokes ticks, small;
  for (const Mark& m : plan.y_marks.marks) {
    const double y = f.y + m.place * f.height;
    ticks.line(f.x - kTickLength, y, f.x, y);
    if (plan.y_labels) w.text(f.x - kTickLength - 3, y, m.label, kFont, Anchor::end);
  }
  for (double place : plan.y_marks.minor)
    small.line(f.x - kTickLength * 0.55, f.y + place * f.height, f.x, f.y + place * f.height);
  ticks.draw(w, w.ink.frame, 0.8);
  small.draw(w, w.ink.frame, 0.6);
  if (!plan.y_label.empty())
    w.text(f.x - (plan.y_labels ? plan.y_marks.depth : kTickLength) - kLabelGap - kFont * 0.6, f.y + f.height / 2,
           plan.y_label, kFont, Anchor::middle, 90);
}

void draw_panel(SvgWriter& w, const Figure& figure, size_t index, const PanelPlan& plan, bool heat_as_image) {
  const Panel& panel = figure.panels[index];
  const Box& f = plan.frame;
  w.open("g").attribute("class", "panel").attribute("id", w.id + "-panel-" + std::to_string(index)).body();
  if (const Curves* c = std::get_if<Curves>(&panel.content); c && c->grid) draw_grid(w, plan, true);
  if (std::holds_alternative<Bars>(panel.content) || std::holds_alternative<Histogram>(panel.content))
    draw_grid(w, plan, false);
  draw_content(w, figure, index, plan, heat_as_image);
  draw_x_axis(w, plan);
  draw_y_axis(w, plan);
  w.rect(f)
      .attribute("class", "frame")
      .attribute("fill", "none")
      .attribute("stroke", w.ink.frame)
      .attribute("stroke-width", 0.8)
      .end();
  w.text(f.x + f.width / 2, f.y - 5 - kTitleFont * 0.5, plan.title, kTitleFont, Anchor::middle);
  draw_legend(w, panel, plan);
  if (plan.bar) draw_colour_bar(w, *plan.bar, plan.colours);
  w.close("g");
}

}  // namespace

void draw_colour_bar(SvgWriter& w, const Box& box, const ColourRange& range) {
  w.open("g").attribute("class", "colour-bar").body();
  Box scale = box;
  if (range.has_nan) scale.height -= 20;
  w.rect(scale)
      .attribute("fill", "url(#" + w.id + "-colours)")
      .attribute("stroke", w.ink.frame)
      .attribute("stroke-width", 0.6)
      .end();
  const Range axis{range.low, range.high};
  const double right = box.x + box.width;
  for (const Tick& t : bar_ticks(range, scale.height)) {
    const double y = scale.y + scale.height * (1 - axis.fraction(t.value));
    w.line(right, y, right + kTickLength, y, w.ink.frame, 0.8);
    w.text(right + kTickLength + 3, y, t.label, kFont, Anchor::start);
  }
  if (range.has_nan) {
    const Box swatch{box.x, box.y + box.height - box.width, box.width, box.width};
    w.rect(swatch)
        .attribute("fill", hex(kNanColour))
        .attribute("stroke", w.ink.frame)
        .attribute("stroke-width", 0.6)
        .end();
    w.text(right + kTickLength + 3, swatch.y + swatch.height / 2, "NaN", kFont, Anchor::start);
  }
  w.close("g");
}

namespace {

// The figure as an <svg> element with its top left corner at (x, y).
std::string drawn(const Figure& figure, const FigurePlan& plan, double x, double y) {
  int64_t cells = 0;
  for (const Panel& p : figure.panels)
    if (const HeatMap* map = std::get_if<HeatMap>(&p.content)) cells += map->values.numel();
  SvgWriter w(figure);
  w.open("svg").attribute("xmlns", "http://www.w3.org/2000/svg");
  if (x != 0) w.attribute("x", x);
  if (y != 0) w.attribute("y", y);
  w.attribute("width", plan.width)
      .attribute("height", plan.height)
      .attribute("viewBox", "0 0 " + svg_number(plan.width) + " " + svg_number(plan.height))
      .attribute("role", "img");
  if (!figure.title.empty()) w.attribute("aria-label", xml_escaped(figure.title.str()));
  w.attribute("font-family", kFontFamily).attribute("font-size", kFont).attribute("fill", w.ink.text).body();
  define_colours(w, figure, plan.colours.map);
  define_clips(w, plan);
  if (w.paper) w.rect({0, 0, plan.width, plan.height}).attribute("fill", "#fff").end();
  w.text(plan.width / 2, 8 + kFigureTitleFont * 0.5, figure.title.str(), kFigureTitleFont, Anchor::middle);
  for (size_t i = 0; i < figure.panels.size(); ++i) draw_panel(w, figure, i, plan.panels[i], cells > kMostRectangles);
  if (plan.bar) draw_colour_bar(w, *plan.bar, plan.colours);
  w.close("svg");
  return std::move(w.out);
}

}  // namespace
}  // namespace plotting

std::string svg(const Figure& figure, Language language) {
  validate(figure);
  const Figure said = translated(figure, language);
  return plotting::drawn(said, plotting::layout(said), 0, 0);
}

std::string svg(std::span<const Figure> any_language, Language language) {
  using namespace plotting;
  check(!any_language.empty(), "[svg] there is no figure to draw");
  if (any_language.size() == 1) return svg(any_language[0], language);
  std::vector<Figure> figures;
  for (const Figure& figure : any_language) figures.push_back(translated(figure, language));
  constexpr double kBetween = 16;
  double width = 0, height = -kBetween;
  for (size_t i = 0; i < figures.size(); ++i) {
    validate(figures[i]);
    for (size_t j = 0; j < i; ++j)
      check(figures[j].id != figures[i].id, "[svg] two figures in one picture have the id \"", figures[i].id, "\"");
  }
  const std::vector<FigurePlan> plans = layout(figures);
  for (const FigurePlan& plan : plans) {
    width = std::max(width, plan.width);
    height += plan.height + kBetween;
  }
  SvgWriter w(figures[0]);
  w.open("svg")
      .attribute("xmlns", "http://www.w3.org/2000/svg")
      .attribute("width", width)
      .attribute("height", height)
      .attribute("viewBox", "0 0 " + svg_number(width) + " " + svg_number(height))
      .body();
  if (w.paper) w.rect({0, 0, width, height}).attribute("fill", "#fff").end();
  double y = 0;
  for (size_t i = 0; i < figures.size(); ++i) {
    w.out += drawn(figures[i], plans[i], std::round((width - plans[i].width) / 2), y);
    y += plans[i].height + kBetween;
  }
  w.close("svg");
  return std::move(w.out);
}

}  // namespace qkv
