// Diagrams: boxes and arrows as SVG with real text.
#include "qkv/plot/diagram.h"

#include <gtest/gtest.h>

#include "unit/plot/svg_reader.h"

namespace qkv {
namespace {

Diagram two_boxes() {
  DiagramPen pen(200, 100, "two <boxes>");
  const size_t a = pen.box(10, 30, 40, 40, "a & b", Part::query, "#there"), b = pen.circle(150, 50, 20, "c");
  pen.join(a, b);
  return pen.done();
}

TEST(Diagram, HasItsWordsAsTextAndItsLinks) {
  const std::string drawn = svg(two_boxes());
  EXPECT_NE(drawn.find(">a &amp; b</text>"), drawn.npos);
  EXPECT_NE(drawn.find("<a href=\"#there\">"), drawn.npos);
  EXPECT_NE(drawn.find("aria-label=\"two &lt;boxes&gt;\""), drawn.npos);
  EXPECT_EQ(drawn, svg(two_boxes())) << "the same diagram, the same bytes";
}

TEST(Diagram, JoinsBoxesAtTheirBorders) {
  const Diagram d = two_boxes();
  ASSERT_EQ(d.arrows.size(), 1u);
  const std::vector<Place>& points = d.arrows[0].points;
  EXPECT_DOUBLE_EQ(points[0].x, 50);
  EXPECT_DOUBLE_EQ(points[0].y, 50);
  EXPECT_DOUBLE_EQ(points[1].x, 130);
  EXPECT_DOUBLE_EQ(points[1].y, 50);
}

TEST(Diagram, KnowsWhetherWordsFit) {
  EXPECT_TRUE(fits(two_boxes(), Language::en));
  DiagramPen narrow(100, 100, "narrow");
  narrow.box(0, 0, 20, 20, "far too many words");
  EXPECT_FALSE(fits(narrow.done(), Language::en));
  DiagramPen low(100, 100, "low");
  low.box(0, 0, 90, 20, "one\ntwo\nthree");
  EXPECT_FALSE(fits(low.done(), Language::en));
}

}  // namespace
}  // namespace qkv
