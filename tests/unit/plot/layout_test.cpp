// How panels share a page: folding, readable type, aligned columns.
#include "qkv/plot/layout.h"

#include <gtest/gtest.h>

#include "qkv/plot/svg.h"
#include "qkv/plot/text.h"
#include "unit/plot/svg_reader.h"

using namespace qkv;
using namespace qkv::plotting;
using qkv::drawings::Element;
using qkv::drawings::read_svg;
using qkv::drawings::smallest_type;
using qkv::drawings::SvgText;

namespace {

using Strings = std::vector<std::string>;

Figure row_of_curves(int count) {
  Figure figure;
  figure.cols = count;
  for (int i = 0; i < count; ++i)
    figure.panels.push_back({Curves{{{"line", {0, 1}, {0, 1}}}},
                             "Panel " + std::to_string(i),
                             {.label = "x"},
                             {.label = i == 0 ? "y" : ""}});
  figure.share_x = figure.share_y = true;
  return figure;
}

Strings words(int count) { return Strings(static_cast<size_t>(count), "attention"); }

}  // namespace

TEST(Layout, RowsOfPanelsFoldAtTheWidthOfAPage) {
  EXPECT_EQ(layout(row_of_curves(2)).grid.cols, 2);
  EXPECT_EQ(layout(row_of_curves(3)).grid.cols, 3);
  const FigurePlan four = layout(row_of_curves(4)), five = layout(row_of_curves(5));
  EXPECT_EQ(four.grid.cols, 2);
  EXPECT_EQ(four.grid.rows, 2);
  EXPECT_EQ(five.grid.cols, 3);
  EXPECT_EQ(five.grid.rows, 2);
  EXPECT_GT(four.panels[0].frame.width, layout(row_of_curves(3)).panels[0].frame.width)
      << "fewer panels per row are drawn larger";
  EXPECT_EQ(four.panels[0].frame.x, four.panels[2].frame.x);
  EXPECT_LT(four.panels[0].frame.y + four.panels[0].frame.height, four.panels[2].frame.y);
  Figure wide = row_of_curves(4);
  wide.size = FigureSize{13, 3};
  EXPECT_EQ(layout(wide).grid.cols, 4) << "a requested size is kept";
  wide = row_of_curves(4);
  wide.widest = 2000;
  EXPECT_EQ(layout(wide).grid.cols, 4);
}

TEST(Layout, AFoldedRowHasItsLabelsOnEveryLine) {
  const FigurePlan plan = layout(row_of_curves(5));  // 0 1 2 / 3 4
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(plan.panels[i].y_labels, i == 0 || i == 3) << i;
    EXPECT_EQ(plan.panels[i].y_label, i == 0 || i == 3 ? "y" : "") << i;
    EXPECT_EQ(plan.panels[i].x_labels, i >= 2) << i << ": there is no panel below it";
    EXPECT_EQ(plan.panels[i].x_label, i >= 2 ? "x" : "") << i;
  }
  const Figure heads = heatmaps(zeros({2, 4, 12, 12}), "Keys", "Queries", {"A", "B", "C", "D"},
                                {.x_tokens = words(12), .y_tokens = words(12)});
  const FigurePlan grid = layout(heads);
  ASSERT_EQ(grid.grid.cols, 2);
  ASSERT_EQ(grid.grid.rows, 4);
  EXPECT_EQ(grid.panels[6].title, "C") << "the third head of the second layer";
  for (const PanelPlan& p : grid.panels) EXPECT_TRUE(p.x_labels) << "words are looked up right below their cells";
}

TEST(Layout, NoTextIsBelowNinePixelsOnAPage) {
  std::vector<Figure> figures = {row_of_curves(1), row_of_curves(4), row_of_curves(7),
                                 histogram({{"a", {1, 2, 3}}, {"b", {2, 3}}})};
  for (int n : {3, 12, 30, 45})
    for (int panels : {1, 4, 8})
      figures.push_back(heatmaps(uniform({1, panels, n, n}, Rng(1)), "Keys", "Queries", {},
                                 {.x_tokens = words(n), .y_tokens = words(n), .cell_values = n < 20}));
  Strings names;
  std::vector<double> values;
  for (int i = 0; i < 12; ++i) {
    names.push_back("category " + std::to_string(i));
    values.push_back(i + 0.25);
  }
  figures.push_back(bars(labels(names), {{"a", values}, {"b", values}, {"c", values}}));
  std::get<Bars>(figures.back().panels[0].content).bar_values = true;
  for (const Figure& figure : figures) {
    const SvgText s = read_svg(svg(figure));
    EXPECT_GE(smallest_type(s, kPageWidth), 9)
        << s.elements[0].number("width") << " pixels for " << figure.panels.size() << " panels";
  }
}

TEST(Layout, FiguresBelowEachOtherShareTheirColumns) {
  std::vector<Figure> figures;
  for (int n : {7, 10, 9}) {
    figures.push_back(heatmaps(uniform({2, 2, n, n}, Rng(1)), "Keys", n == 9 ? "Words written" : "Queries", {},
                               {.x_tokens = words(n), .y_tokens = words(n)}));
    figures.back().id = "fig" + std::to_string(n);
  }
  const std::vector<FigurePlan> plans = layout(figures);
  for (const FigurePlan& plan : plans) {
    EXPECT_EQ(plan.width, plans[0].width);
    EXPECT_EQ(plan.bar->x, plans[0].bar->x);
    for (size_t i = 0; i < 4; ++i) {
      const Box &frame = plan.panels[i].frame, &above = plans[0].panels[i].frame;
      EXPECT_NEAR(frame.x + frame.width / 2, above.x + above.width / 2, 1) << i;
      EXPECT_NEAR(frame.width / (&plan == &plans[0]   ? 7
                                 : &plan == &plans[1] ? 10
                                                      : 9),
                  above.width / 7, 0.2)
          << "cells of the same size";
    }
  }
}

TEST(Layout, CellsThatSpanAnAxisHaveRoundNumbersAtTheirPlaces) {
  Figure figure;
  figure.panels.push_back({HeatMap{.values = zeros({41, 41}), .x_span = CellSpan{-2, 2}, .y_span = CellSpan{2, -2}}});
  const PanelPlan plan = layout(figure).panels[0];
  const auto place = [](const AxisMarks& marks, const std::string& label) {
    for (const Mark& m : marks.marks)
      if (m.label == label) return m.place;
    return -1.0;
  };
  EXPECT_NEAR(place(plan.x_marks, "0"), 0.5, 1e-9);
  EXPECT_NEAR(place(plan.x_marks, "−2"), 0.5 / 41, 1e-9);
  EXPECT_NEAR(place(plan.y_marks, "−2"), 40.5 / 41, 1e-9) << "the last row is below";
  EXPECT_NEAR(place(plan.y_marks, "2"), 0.5 / 41, 1e-9);
}

TEST(Layout, TheSignOfTheNumbersChoosesTheColours) {
  const auto map_of = [](std::vector<float> values, ColourScale asked = {}) {
    return layout(heatmaps(Tensor({1, static_cast<int64_t>(values.size())}, values), "", "", {}, {.colours = asked}))
        .colours.map;
  };
  EXPECT_EQ(map_of({0, 0.5f, 1}), ColourMap::reds);
  EXPECT_EQ(map_of({-1, 0.5f, 1}), ColourMap::diverging);
  EXPECT_EQ(map_of({-3, -1}), ColourMap::reds);
  EXPECT_EQ(map_of({-1e-9f, 1}), ColourMap::reds) << "a rounding error around zero";
  EXPECT_EQ(map_of({-1, 1}, {.map = ColourMap::viridis}), ColourMap::viridis);
}

TEST(Layout, ALogAxisWritesAllPowersOfTenAlike) {
  for (double high : {2e3, 2e4, 2e5, 2e7})
    for (double low : {2e-4, 0.5, 5.0, 50.0}) {
      int plain = 0, raised = 0;
      for (const Tick& t : nice_ticks({low, high, AxisScale::log}, 8))
        (t.label.size() > 2 && t.label.starts_with("10") && static_cast<unsigned char>(t.label[2]) > 0x7F ? raised
                                                                                                          : plain) += 1;
      EXPECT_TRUE(plain == 0 || raised == 0) << low << " to " << high;
      EXPECT_TRUE(high < 1e4 || raised > 0)
          << low << " to " << high << ": 10000 on one axis would be next to 10⁴ on the other";
    }
}

TEST(Text, NumbersHaveTrueMinusSigns) {
  EXPECT_EQ(with_minus_signs("-1"), "−1");
  EXPECT_EQ(with_minus_signs("y = -1, (-.5), [-2, -3]"), "y = −1, (−.5), [−2, −3]");
  EXPECT_EQ(with_minus_signs("Nadaraya-Watson, x-2, 3-4, --seed, -x"), "Nadaraya-Watson, x-2, 3-4, --seed, -x");
  Figure figure = curves({{"w = -2", {0, 1}, {-1, 1}}}, {.label = "from -3"});
  const SvgText s = read_svg(svg(figure));
  EXPECT_EQ(s.texts("w = −2"), 1);
  EXPECT_EQ(s.texts("from −3"), 1);
}
