// Diagrams: boxes, arrows and words, drawn as SVG with real text.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/plot/figure.h"

namespace QKV_API qkv {

/// What a part of a diagram stands for; each has its colour everywhere.
enum class Part { plain, query, key, value, weight, layer, output };

struct Place {
  double x, y;
};

/// A box with words on up to a few lines, broken at "\n".
struct DiagramBox {
  double x, y, width, height;
  Label words;
  Part part = Part::plain;
  std::string link = {};  // an address such as "#scoring", or nothing
  bool round = false;     // a circle or an oval
};

struct DiagramArrow {
  std::vector<Place> points;
  Part part = Part::plain;
  double width = 1.3;
  bool dashed = false, head = true;
};

/// Words without a box; at the middle of (x, y), or from x on.
struct DiagramWords {
  double x, y;
  Label words;
  bool middle = true, strong = false, soft = false;
  std::string link = {};
};

/// All lengths are in pixels.
struct Diagram {
  double width = 0, height = 0;
  Label title;  // read aloud by screen readers
  std::string id = "diagram";
  std::vector<DiagramArrow> arrows;  // below the boxes
  std::vector<DiagramBox> boxes;
  std::vector<DiagramWords> words;
};

/// As one <svg> element. The same diagram gives the same bytes.
std::string svg(const Diagram& diagram, Language language = Language::en);
/// As a file.
void save(const Diagram& diagram, const std::string& path, Language language = Language::en);
/// Whether the words of every box fit into it, in that language.
bool fits(const Diagram& diagram, Language language);

/// Adds boxes and arrows between them.
class DiagramPen {
 public:
  DiagramPen(double width, double height, Label title) {
    diagram_.width = width;
    diagram_.height = height;
    diagram_.title = std::move(title);
  }
  /// A box by its left upper corner; returns its number.
  size_t box(double x, double y, double width, double height, Label words, Part part = Part::plain,
             std::string link = "");
  /// A circle by its centre.
  size_t circle(double x, double y, double radius, Label words, Part part = Part::plain, std::string link = "");
  void words(double x, double y, Label words, std::string link = "");
  void strong(double x, double y, Label words);
  void soft(double x, double y, Label words);
  /// From the border of one box to that of another, straight.
  DiagramArrow& join(size_t from, size_t to, Part part = Part::plain);
  /// Through these points.
  DiagramArrow& path(std::vector<Place> points, Part part = Part::plain);
  const DiagramBox& at(size_t box) const { return diagram_.boxes.at(box); }
  Diagram done() { return std::move(diagram_); }

 private:
  Diagram diagram_;
};

}  // namespace qkv
