// Making figures: constructors, errors, bins, ticks.
#include "qkv/plot/figure.h"

#include <gtest/gtest.h>

#include <cmath>

#include "qkv/plot/axes.h"
#include "qkv/plot/heat.h"
#include "qkv/plot/layout.h"
#include "support/files.h"

using namespace qkv;
using namespace qkv::plotting;
using qkv_test::error_of;

namespace {

std::vector<std::string> labels(const Range& range, int most) {
  std::vector<std::string> out;
  for (const Tick& t : nice_ticks(range, most)) out.push_back(t.label);
  return out;
}

using Strings = std::vector<std::string>;

}  // namespace

TEST(Figure, ErrorsNameBothCounts) {
  EXPECT_EQ(error_of([] { heatmaps(zeros({3}), "", ""); }),
            "[heatmaps] expected (rows, cols, queries, keys), got (3,)");
  EXPECT_EQ(error_of([] {
              heatmaps(zeros({1, 1, 1, 2, 2}), "", "");
            }),
            "[heatmaps] expected (rows, cols, queries, keys), got (1, 1, 1, 2, 2)");
  EXPECT_EQ(error_of([] {
              heatmaps(zeros({1, 4, 2, 2}), "", "", {"a", "b"});
            }),
            "[heatmaps] 2 titles for 4 columns of panels");
  EXPECT_EQ(error_of([] {
              heatmaps(zeros({2, 3}), "", "", {}, {.x_tokens = {"a", "b"}});
            }),
            "[figure] 2 x tokens for 3 columns");
  EXPECT_EQ(error_of([] {
              heatmaps(zeros({2, 3}), "", "", {}, {.y_tokens = {"a"}});
            }),
            "[figure] 1 y tokens for 2 rows");
  EXPECT_EQ(error_of([] { curves({{"f", {1, 2}, {1, 2, 3}}}); }), "[figure] series \"f\" has 2 x and 3 y values");
  EXPECT_EQ(error_of([] { bars({"a", "b"}, {{"s", {1}}}); }), "[figure] bars \"s\" have 1 values for 2 categories");
  EXPECT_EQ(error_of([] { histogram({{"s", {1}}}, {}, {}, 0); }), "[figure] histogram needs 1 to 10000 bins, got 0");
  EXPECT_EQ(error_of([] { series("s", zeros({2}), zeros({3})); }),
            "[series] x and y must be vectors of the same length, got (2,) and (3,)");
  EXPECT_EQ(error_of([] { curves({}, {.low = 2, .high = 1}); }), "[figure] x limits are not in order: 2 and 1");
  EXPECT_EQ(error_of([] { curves({}, {}, {.low = 0, .scale = AxisScale::log}); }),
            "[figure] y limit 0 cannot be drawn on a log scale");
  EXPECT_EQ(error_of([] { curves({}, {.high = 5e-324, .scale = AxisScale::log}); }),
            "[figure] x limit 5e-324 cannot be drawn on a log scale");
  EXPECT_EQ(error_of([] { line_style("z"); }),
            "[figure] unknown line format \"z\", expected a colour of bgrcmyk, o, and one of - -- -. :");
  EXPECT_EQ(error_of([] { colour_map("jet"); }),
            "unknown colour map \"jet\", expected viridis, reds, blues or diverging");
  Figure figure;
  EXPECT_EQ(error_of([&] { validate(figure); }), "[figure] 0 panels for a grid of 1 x 1");
  figure.panels.push_back({HeatMap{zeros({2, 2, 2})}});
  EXPECT_EQ(error_of([&] { validate(figure); }), "[figure] a heat map needs a matrix (rows, cols), got (2, 2, 2)");
  figure.panels[0].content = HeatMap{zeros({2, 2}), {}, {}, {{2, 0}}};
  EXPECT_EQ(error_of([&] { validate(figure); }), "[figure] box at (2, 0) outside a heat map of (2, 2)");
}

TEST(Figure, HeatmapsTakeTwoToFourAxes) {
  const Figure four = heatmaps(arange(0, 24).viewed({2, 3, 2, 2}), "k", "q");
  EXPECT_EQ(four.rows, 2);
  EXPECT_EQ(four.cols, 3);
  EXPECT_EQ(std::get<HeatMap>(four.panels[4].content).values.at({1, 0}), 18);
  EXPECT_EQ(heatmaps(zeros({3, 2, 2}), "", "").cols, 3);
  EXPECT_EQ(heatmaps(zeros({2, 2}), "", "").panels.size(), 1);
}

TEST(Figure, LineFormatsReadAsTheBookWritesThem) {
  EXPECT_EQ(line_style("-").dash, Dash::solid);
  EXPECT_EQ(line_style("m--").dash, Dash::dashed);
  EXPECT_EQ(line_style("g-.").dash, Dash::dash_dot);
  EXPECT_EQ(line_style("r:").dash, Dash::dotted);
  EXPECT_TRUE(line_style("ko").circles);
  EXPECT_EQ(line_style("o").dash, Dash::none);
  EXPECT_FALSE(line_style("-").colour.has_value());
  EXPECT_NE(line_style("m--").colour, line_style("g--").colour);
}

TEST(Figure, HistogramsShareBinsOverTheJointRange) {
  const HistogramCounts h = histogram_counts({{{"a", {0, 1, 1, 2, NAN}}, {"b", {10, 5, 10}}}, 5});
  EXPECT_EQ(h.edges, (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(h.counts[0], (std::vector<double>{3, 1, 0, 0, 0}));
  EXPECT_EQ(h.counts[1], (std::vector<double>{0, 0, 1, 0, 2}));
  EXPECT_EQ(histogram_counts({{{"one", {3, 3}}}, 2}).counts[0], (std::vector<double>{0, 2}));
  EXPECT_EQ(histogram_counts({{{"none", {}}}, 2}).counts[0], (std::vector<double>{0, 0}));
}

TEST(Axes, TicksAreRoundNumbers) {
  EXPECT_EQ(labels({0, 5}, 6), (Strings{"0", "1", "2", "3", "4", "5"}));
  EXPECT_EQ(labels({-1, 1}, 5), (Strings{"−1.0", "−0.5", "0.0", "0.5", "1.0"}));
  EXPECT_EQ(labels({0, 1}, 3), (Strings{"0.0", "0.5", "1.0"}));
  EXPECT_EQ(labels({0, 103755}, 3), (Strings{"0", "50000", "100000"}));
  EXPECT_EQ(labels({1e6, 3e6}, 3), (Strings{"1×10⁶", "2×10⁶", "3×10⁶"}));
  EXPECT_EQ(labels({0, 2e-6}, 3), (Strings{"0", "1×10⁻⁶", "2×10⁻⁶"}));
}

TEST(Axes, ThereAreNeverMoreTicksThanRequestedAndAllAreInside) {
  const Rng rng(11);
  for (int i = 0; i < 500; ++i) {
    const double low = rng.normal(2 * i) * std::pow(10, static_cast<int>(rng.below(9, i)) - 4);
    const double high =
        low + rng.uniform(7 * i + 1) * std::pow(10, static_cast<int>(rng.below(9, i + 1000)) - 4) + 1e-6;
    const int most = 2 + static_cast<int>(rng.below(8, i + 5000));
    const std::vector<Tick> ticks = nice_ticks({low, high}, most);
    EXPECT_LE(static_cast<int>(ticks.size()), most);
    EXPECT_GE(ticks.size(), 1) << low << " to " << high << ", " << most;
    for (const Tick& t : ticks) {
      EXPECT_GE(t.value, low - 1e-5 * (high - low));
      EXPECT_LE(t.value, high + 1e-5 * (high - low));
    }
  }
}

TEST(Axes, LogTicksArePowersOfTen) {
  EXPECT_EQ(labels({0.01, 10, AxisScale::log}, 6), (Strings{"0.01", "0.1", "1", "10"}));
  EXPECT_EQ(labels({1e-8, 1e-2, AxisScale::log}, 4), (Strings{"10⁻⁸", "10⁻⁶", "10⁻⁴", "10⁻²"}));
  EXPECT_EQ(labels({1, 8, AxisScale::log}, 5), (Strings{"1", "2", "5"}));
  EXPECT_EQ(labels({0.012, 6, AxisScale::log}, 6), (Strings{"0.1", "1"}));
  EXPECT_GE(labels({3.1, 3.9, AxisScale::log}, 5).size(), 2);
  // One power of ten inside, and little room: never a single tick or none.
  EXPECT_EQ(labels({1900, 37000, AxisScale::log}, 4), (Strings{"2000", "5000", "10000", "20000"}));
  EXPECT_EQ(labels({1900, 37000, AxisScale::log}, 3), (Strings{"3000", "10000", "30000"}));
  EXPECT_EQ(labels({1900, 37000, AxisScale::log}, 2), (Strings{"2000", "20000"}));
}

TEST(Axes, RangesAreNeverEmpty) {
  for (double v : {0.0, 5.0, -3.0, 1e-300, 1e299, -1e18}) {
    const Range r = panel_ranges(curves({{"", {v}, {v}}}))[0].y;
    EXPECT_LT(r.low, r.high) << v;
    EXPECT_TRUE(std::isfinite(r.fraction(v))) << v;
  }
  const Range wide = panel_ranges(curves({{"", {0, 1}, {1e-299, 1e299}}}, {}, {.scale = AxisScale::log}))[0].y;
  EXPECT_NEAR(wide.fraction(1), 0.5, 1e-6);
  EXPECT_TRUE(nice_ticks({1e15, 1e15 + 0.25}, 5).empty()) << "there is no double between";
  const Range beyond = panel_ranges(curves({{"", {0, 1}, {0, 1}}}, {}, {.low = 50}))[0].y;
  EXPECT_EQ(beyond.low, 50);
  EXPECT_LT(beyond.low, beyond.high);
}

TEST(Axes, SharedAxesUniteTheRanges) {
  Figure figure;
  figure.cols = 2;
  figure.share_y = true;
  figure.panels = {{Curves{{{"", {0, 1}, {0, 1}}}}}, {Curves{{{"", {0, 1}, {5, 9}}}}}};
  const auto ranges = panel_ranges(figure);
  EXPECT_EQ(ranges[0].y.low, ranges[1].y.low);
  EXPECT_LE(ranges[1].y.low, 0);
  EXPECT_GE(ranges[0].y.high, 9);
}

TEST(Axes, SharingLeavesOtherScalesAndCellsAlone) {
  Figure figure;
  figure.cols = 3;
  figure.share_y = true;
  figure.panels = {{Curves{{{"", {0, 1}, {-5, 5}}}}},
                   {Curves{{{"", {0, 1}, {1, 10}}}}, "", {}, {.scale = AxisScale::log}},
                   {HeatMap{eye(40)}}};
  const auto ranges = panel_ranges(figure);
  EXPECT_LT(ranges[0].y.high, 6);
  EXPECT_GT(ranges[1].y.low, 0.5);
  EXPECT_EQ(ranges[2].y.high, 40);
}

TEST(Axes, TheDivergingScaleIsSymmetric) {
  const ColourRange r =
      colour_ranges(heatmaps(Tensor({1, 2}, {-1, 3}), "", "", {}, {.colours = {.map = ColourMap::diverging}}))[0];
  EXPECT_EQ(r.low, -3);
  EXPECT_EQ(r.high, 3);
}

TEST(Heat, AveragingKeepsMeansAndSkipsNan) {
  const Matrix half = averaged(Tensor({2, 4}, {1, 3, 5, NAN, 1, 3, 7, NAN}), 1, 2);
  ASSERT_EQ(half.values.size(), 2);
  EXPECT_EQ(half.values[0], 2);
  EXPECT_EQ(half.values[1], 6);
  const Matrix uneven = averaged(arange(0, 5).viewed({1, 5}), 1, 3);
  EXPECT_EQ(uneven.values, (std::vector<float>{0.5f, 2.5f, 4}));
  EXPECT_TRUE(std::isnan(averaged(full({2, 2}, NAN), 1, 1).values[0]));
}

TEST(Colour, MapsAreOrderedByLightnessAndMeetTheirEnds) {
  for (ColourMap map : {ColourMap::viridis, ColourMap::reds, ColourMap::blues}) {
    const double sign = map == ColourMap::viridis ? 1 : -1;
    for (int i = 0; i < 100; ++i)
      EXPECT_GT(sign * (luminance(colour_at(map, (i + 1) / 100.0)) - luminance(colour_at(map, i / 100.0))), 0) << i;
    EXPECT_EQ(colour_at(map, -1), colour_at(map, 0));
    EXPECT_EQ(colour_at(map, 2), colour_at(map, 1));
  }
  EXPECT_EQ(hex({0, 114, 178}), "#0072b2");
}

TEST(Legend, HidesNeitherCurvesNorBars) {
  const auto planned = [](const Figure& f, double x_high, double y_high) {
    return plan_legend(f.panels[0], {0, x_high}, {0, y_high}, 300, 190);
  };
  const std::vector<double> x = {0, 1, 2, 3, 4, 5, 6}, low = {0, 0, 0, 0, 0.46, 0.93, 1.38};
  const Figure free = curves({{"measured anew", x, low}, {"masking, once", x, low}, {"gradient, once", x, low}});
  EXPECT_FALSE(planned(free, 6, 1.45).outside);
  EXPECT_LT(planned(free, 6, 1.45).box.x, 10) << "above the flat part";
  const Figure full = curves({{"measured anew", x, low},
                              {"masking, once", x, low},
                              {"gradient, once", x, low},
                              {"most useful first", x, {0, 0.54, 0.96, 0.96, 1.36, 1.43, 1.38}}});
  EXPECT_TRUE(planned(full, 6, 1.45).outside) << "a corner would hide a piece of the last curve";
  EXPECT_TRUE(planned(bars({"1"}, {{"a", {10}}, {"b", {9.8}}}), 1, 10.5).outside) << "the bars fill the frame";
}
