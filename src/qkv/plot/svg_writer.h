// A small writer of SVG elements.
#pragma once

#include <string>
#include <string_view>

#include "qkv/plot/layout.h"
#include "qkv/plot/text.h"

namespace qkv::plotting {

/// Colours of everything that is not data.
struct Ink {
  std::string text, frame, grid;
};

enum class Anchor { start, middle, end };

class SvgWriter {
 public:
  explicit SvgWriter(const Figure& figure)
      : id(figure.id),
        ink(figure.theme == Theme::paper ? Ink{"#1a1a1a", "#444", "#e4e4e4"}
                                         : Ink{"currentColor", "currentColor", "currentColor"}),
        paper(figure.theme == Theme::paper) {}

  const std::string id;
  const Ink ink;
  const bool paper;
  std::string out;

  /// <name key="value" ...  with numbers and strings as values; `end` closes it.
  SvgWriter& open(std::string_view name) {
    out += '<';
    out += name;
    return *this;
  }
  SvgWriter& attribute(std::string_view key, double value) { return raw(key, svg_number(value)); }
  SvgWriter& attribute(std::string_view key, std::string_view value) { return raw(key, value); }
  void end() { out += "/>\n"; }
  void body() { out += ">\n"; }
  void close(std::string_view name) {
    out += "</";
    out += name;
    out += ">\n";
  }

  void line(double x1, double y1, double x2, double y2, std::string_view stroke, double width) {
    open("line")
        .attribute("x1", x1)
        .attribute("y1", y1)
        .attribute("x2", x2)
        .attribute("y2", y2)
        .attribute("stroke", stroke)
        .attribute("stroke-width", width)
        .end();
  }
  SvgWriter& rect(const Box& b) {
    return open("rect")
        .attribute("x", b.x)
        .attribute("y", b.y)
        .attribute("width", b.width)
        .attribute("height", b.height);
  }
  /// Text vertically centred at y, rotated anticlockwise by `angle` degrees around (x, y).
  void text(double x, double y, std::string_view content, double font, Anchor anchor, int angle = 0,
            std::string_view fill = "") {
    if (content.empty()) return;
    constexpr const char* anchors[] = {"start", "middle", "end"};
    open("text");
    if (angle == 0)
      attribute("x", x).attribute("y", y + 0.35 * font);
    else {
      attribute("transform",
                "translate(" + svg_number(x) + " " + svg_number(y) + ") rotate(" + std::to_string(-angle) + ")");
      attribute("y", 0.35 * font);
    }
    if (anchor != Anchor::start) attribute("text-anchor", anchors[static_cast<int>(anchor)]);
    if (font != kFont) attribute("font-size", font);
    if (!fill.empty()) attribute("fill", fill);
    out += '>';
    out += xml_escaped(with_minus_signs(content));
    out += "</text>\n";
  }

 private:
  SvgWriter& raw(std::string_view key, std::string_view value) {
    out += ' ';
    out += key;
    out += "=\"";
    out += value;
    out += '"';
    return *this;
  }
};

/// Draw the data of a panel inside its frame.
void draw_content(SvgWriter& w, const Figure& figure, size_t index, const PanelPlan& plan, bool heat_as_image);
/// The colour bar of a range, with its ticks.
void draw_colour_bar(SvgWriter& w, const Box& box, const ColourRange& range);
void draw_legend(SvgWriter& w, const Panel& panel, const PanelPlan& plan);
/// The stroke-dasharray attribute of a dash, or "".
std::string dash_array(Dash dash, double width);
/// The fill of series number `place` of bars or histogram samples: a colour or, for the second, a hatch.
std::string fill_of(const SvgWriter& w, size_t place, bool hatch);

}  // namespace qkv::plotting
