// Diagrams as SVG.
#include "qkv/plot/diagram.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "qkv/io/atomic_file.h"
#include "qkv/plot/layout.h"
#include "qkv/plot/text.h"

namespace qkv {
namespace {

using plotting::kFont;
using plotting::svg_number;

struct Paint {
  const char *fill, *stroke;
};

Paint paint(Part part) {
  static constexpr std::array<Paint, 7> all = {{{"#ffffff", "#555b66"},
                                                {"#dbe9fb", "#2c6cb8"},
                                                {"#fde7cf", "#b8650f"},
                                                {"#dcf2e0", "#2c7f45"},
                                                {"#fbdcdc", "#b3362e"},
                                                {"#eceef2", "#555b66"},
                                                {"#ece2f7", "#6b3fa0"}}};
  return all[static_cast<size_t>(part)];
}

constexpr double kLine = 15;  // from one line of words to the next

std::vector<std::string> lines_of(const std::string& words) {
  std::vector<std::string> out(1);
  for (const char c : words)
    if (c == '\n')
      out.emplace_back();
    else
      out.back() += c;
  return out;
}

std::string attribute(const char* name, double value) {
  return std::string(" ") + name + "=\"" + svg_number(value) + "\"";
}

std::string attribute(const char* name, const std::string& value) {
  return std::string(" ") + name + "=\"" + plotting::xml_escaped(value) + "\"";
}

std::string text_svg(double x, double y, const std::string& words, const std::string& rest) {
  const std::vector<std::string> lines = lines_of(words);
  std::string out;
  const double first = y - kLine * static_cast<double>(lines.size() - 1) / 2;
  for (size_t i = 0; i < lines.size(); ++i)
    out += "<text" + attribute("x", x) + attribute("y", first + kLine * static_cast<double>(i) + 0.35 * kFont) + rest +
           ">" + plotting::xml_escaped(plotting::with_minus_signs(lines[i])) + "</text>\n";
  return out;
}

std::string linked(const std::string& link, const std::string& drawn) {
  return link.empty() ? drawn : "<a" + attribute("href", link) + ">\n" + drawn + "</a>\n";
}

std::string box_svg(const DiagramBox& box, Language language) {
  const Paint with = paint(box.part);
  std::string out = "<rect" + attribute("x", box.x) + attribute("y", box.y) + attribute("width", box.width) +
                    attribute("height", box.height) +
                    attribute("rx", box.round ? std::min(box.width, box.height) / 2 : 5.0) +
                    attribute("fill", with.fill) + attribute("stroke", with.stroke) + " stroke-width=\"1.2\"/>\n";
  if (!box.words.empty())
    out += text_svg(box.x + box.width / 2, box.y + box.height / 2, box.words.in(language), " text-anchor=\"middle\"");
  return linked(box.link, out);
}

std::string arrow_svg(const DiagramArrow& arrow) {
  std::string points;
  for (const Place& p : arrow.points) points += (points.empty() ? "" : " ") + svg_number(p.x) + "," + svg_number(p.y);
  const std::string stroke = paint(arrow.part).stroke;
  std::string out = "<polyline" + attribute("points", points) + " fill=\"none\"" + attribute("stroke", stroke) +
                    attribute("stroke-width", arrow.width) +
                    (arrow.dashed ? " stroke-dasharray=\"4 3\"" : std::string()) + "/>\n";
  if (!arrow.head || arrow.points.size() < 2) return out;
  const Place tip = arrow.points.back(), from = arrow.points[arrow.points.size() - 2];
  const double length = std::max(std::hypot(tip.x - from.x, tip.y - from.y), 1e-9);
  const double dx = (tip.x - from.x) / length, dy = (tip.y - from.y) / length, size = 5 + arrow.width;
  const auto corner = [&](double side) {
    return svg_number(tip.x - size * dx - side * 0.5 * size * dy) + "," +
           svg_number(tip.y - size * dy + side * 0.5 * size * dx);
  };
  return out + "<polygon" +
         attribute("points", svg_number(tip.x) + "," + svg_number(tip.y) + " " + corner(1) + " " + corner(-1)) +
         attribute("fill", stroke) + "/>\n";
}

std::string words_svg(const DiagramWords& w, Language language) {
  std::string rest = w.middle ? " text-anchor=\"middle\"" : "";
  if (w.strong) rest += " font-weight=\"bold\"";
  if (w.soft) rest += " fill=\"#5b6472\"";
  return linked(w.link, text_svg(w.x, w.y, w.words.in(language), rest));
}

// The point on the border of a box towards a place.
Place border(const DiagramBox& box, Place to) {
  const double cx = box.x + box.width / 2, cy = box.y + box.height / 2, dx = to.x - cx, dy = to.y - cy;
  if (box.round) {
    const double length = std::max(std::hypot(dx, dy), 1e-9), radius = std::min(box.width, box.height) / 2;
    return {cx + radius * dx / length, cy + radius * dy / length};
  }
  const double reach = std::max(std::abs(dx) / box.width, std::abs(dy) / box.height) * 2;
  return reach < 1e-9 ? Place{cx, cy} : Place{cx + dx / reach, cy + dy / reach};
}

Place middle(const DiagramBox& box) { return {box.x + box.width / 2, box.y + box.height / 2}; }

}  // namespace

std::string svg(const Diagram& diagram, Language language) {
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\"" + attribute("width", diagram.width) +
                    attribute("height", diagram.height) +
                    attribute("viewBox", "0 0 " + svg_number(diagram.width) + " " + svg_number(diagram.height)) +
                    attribute("id", diagram.id) + " role=\"img\"" +
                    attribute("aria-label", diagram.title.in(language)) + attribute("font-size", kFont) +
                    " font-family=\"Helvetica, Arial, 'Liberation Sans', 'Noto Sans CJK SC', 'PingFang SC', "
                    "'Microsoft YaHei', 'DejaVu Sans', sans-serif\" fill=\"#1a1a1a\">\n<rect width=\"100%\" "
                    "height=\"100%\" fill=\"#fff\"/>\n";
  for (const DiagramArrow& arrow : diagram.arrows) out += arrow_svg(arrow);
  for (const DiagramBox& box : diagram.boxes) out += box_svg(box, language);
  for (const DiagramWords& words : diagram.words) out += words_svg(words, language);
  return out + "</svg>\n";
}

void save(const Diagram& diagram, const std::string& path, Language language) {
  write_file(path, svg(diagram, language));
}

bool fits(const Diagram& diagram, Language language) {
  return std::all_of(diagram.boxes.begin(), diagram.boxes.end(), [&](const DiagramBox& box) {
    const std::vector<std::string> lines = lines_of(box.words.in(language));
    return box.words.empty() || (kLine * static_cast<double>(lines.size()) <= box.height + 2 &&
                                 std::all_of(lines.begin(), lines.end(), [&](const std::string& line) {
                                   return plotting::text_width(line, kFont) <= box.width + 1;
                                 }));
  });
}

size_t DiagramPen::box(double x, double y, double width, double height, Label words, Part part, std::string link) {
  diagram_.boxes.push_back({x, y, width, height, std::move(words), part, std::move(link)});
  return diagram_.boxes.size() - 1;
}

size_t DiagramPen::circle(double x, double y, double radius, Label words, Part part, std::string link) {
  diagram_.boxes.push_back(
      {x - radius, y - radius, 2 * radius, 2 * radius, std::move(words), part, std::move(link), true});
  return diagram_.boxes.size() - 1;
}

void DiagramPen::words(double x, double y, Label words, std::string link) {
  diagram_.words.push_back({x, y, std::move(words), true, false, false, std::move(link)});
}

void DiagramPen::strong(double x, double y, Label words) {
  diagram_.words.push_back({x, y, std::move(words), true, true, false, {}});
}

void DiagramPen::soft(double x, double y, Label words) {
  diagram_.words.push_back({x, y, std::move(words), true, false, true, {}});
}

DiagramArrow& DiagramPen::join(size_t from, size_t to, Part part) {
  const DiagramBox &a = at(from), &b = at(to);
  return path({border(a, middle(b)), border(b, middle(a))}, part);
}

DiagramArrow& DiagramPen::path(std::vector<Place> points, Part part) {
  diagram_.arrows.push_back({std::move(points), part});
  return diagram_.arrows.back();
}

}  // namespace qkv
