// The SVG backend: structure, texts, scales.
#include "qkv/plot/svg.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <limits>
#include <set>

#include "qkv/core/catalogue.h"
#include "qkv/core/check.h"
#include "qkv/plot/axes.h"
#include "qkv/plot/terminal.h"
#include "unit/plot/svg_reader.h"

using namespace qkv;
using qkv::drawings::Element;
using qkv::drawings::read_svg;
using qkv::drawings::SvgText;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

SvgText drawn(const Figure& figure) {
  SvgText out = read_svg(svg(figure));
  EXPECT_EQ(out.error, "");
  EXPECT_EQ(out.elements.at(0).name, "svg");
  return out;
}

// Fills of the cells in order.
std::vector<std::string> cell_fills(const SvgText& s) {
  std::vector<std::string> fills;
  for (const Element& e : s.named("rect"))
    if (e.attributes.size() == 5 && e.attributes.count("fill") && e.attributes.at("fill") != "#fff")
      fills.push_back(e.attributes.at("fill"));
  return fills;
}

std::vector<double> numbers(double from, double step, int count) {
  std::vector<double> out;
  for (int i = 0; i < count; ++i) out.push_back(from + step * i);
  return out;
}

TEST(Svg, LabelsAreInTheLanguageOfThePage) {
  const auto word = [](const std::string& english, const std::string& chinese) {
    add_catalogue(Language::zh, "msgid \"" + english + "\"\nmsgstr \"" + chinese + "\"\n");
    return Text(english, std::vector<TextValue>{});
  };
  Figure figure;
  figure.cols = 4;
  figure.title = word("test of the figure", "图题");
  figure.panels = {{HeatMap{eye(2), {"a", "b"}}, word("test of a map", "热图"), {.label = word("test of x", "横轴")}},
                   {Curves{{{word("test of a line", "曲线"), {0, 1}, {0, 1}}, {"f(x)", {0, 1}, {1, 0}}},
                           {{word("test of a band", "置信带"), {0, 1}, {0, 1}, {1, 2}}}},
                    "",
                    {},
                    {.label = word("test of y", "纵轴")}},
                   {Bars{{word("test of a bar", "类别"), "B"}, {{word("test of bars", "组"), {1, 2}}}}},
                   {Histogram{{{word("test of a sample", "样本"), {1, 2}}}}}};
  const std::vector<std::pair<std::string, std::string>> words = {
      {"test of the figure", "图题"}, {"test of a map", "热图"},    {"test of x", "横轴"},
      {"test of a line", "曲线"},     {"test of a band", "置信带"}, {"test of y", "纵轴"},
      {"test of a bar", "类别"},      {"test of bars", "组"},       {"test of a sample", "样本"}};
  const std::string terminal_zh = terminal(figure, {.columns = 200, .language = Language::zh});
  const SvgText en = drawn(figure), zh = read_svg(svg(figure, Language::zh)),
                both =
                    read_svg(svg(std::vector<Figure>{figure, Figure{.panels = {{Curves{}}}, .id = "b"}}, Language::zh));
  for (const auto& [english, chinese] : words) {
    EXPECT_EQ(en.texts(english), 1) << english;
    EXPECT_EQ(en.texts(chinese), 0) << chinese;
    EXPECT_EQ(zh.texts(english), 0) << english;
    EXPECT_EQ(zh.texts(chinese), 1) << chinese;
    EXPECT_EQ(both.texts(chinese), 1) << chinese;
    EXPECT_NE(terminal_zh.find(chinese), terminal_zh.npos) << chinese << " in\n" << terminal_zh;
  }
  for (const SvgText* page : {&en, &zh})
    for (const char* same : {"f(x)", "a", "B"}) EXPECT_EQ(page->texts(same), 1) << same;
  EXPECT_TRUE(figure.title == "test of the figure") << "a label is compared by its English";
}

TEST(Svg, PutsSeveralFiguresBelowEachOtherInOnePicture) {
  std::vector<Figure> figures;
  for (const char* id : {"upper", "lower"}) {
    Figure f = heatmaps(Tensor({1, 2}, {0, 1}), "x", "y");
    f.title = id;
    f.id = id;
    figures.push_back(f);
  }
  figures[0].size = FigureSize{6, 3};
  const SvgText both = read_svg(svg(figures));
  EXPECT_EQ(both.error, "");
  const std::vector<Element> pages = both.named("svg");
  ASSERT_EQ(pages.size(), 3u);
  EXPECT_EQ(pages[0].number("width"), std::max(pages[1].number("width"), pages[2].number("width")));
  EXPECT_GE(pages[2].number("y"), pages[1].number("height"));
  EXPECT_EQ(pages[0].number("height"), pages[2].number("y") + pages[2].number("height"));
  EXPECT_NEAR(pages[2].number("x"), (pages[0].number("width") - pages[2].number("width")) / 2, 0.5);
  EXPECT_EQ(both.texts("upper"), 1);
  EXPECT_EQ(both.texts("lower"), 1);
  EXPECT_EQ(svg(std::span<const Figure>(figures.data(), 1)), svg(figures[0]));
  figures[1].id = "upper";
  EXPECT_THROW(svg(figures), Error);
  EXPECT_THROW(svg(std::span<const Figure>()), Error);
}

}  // namespace

TEST(Svg, DrawsAGridOfHeatMapsWithOuterLabelsAndOneColourBar) {
  const Figure figure = heatmaps(uniform({2, 4, 10, 10}, Rng(1)), "Key positions", "Query positions",
                                 {"Head 1", "Head 2", "Head 3", "Head 4"});
  const SvgText s = drawn(figure);
  EXPECT_EQ(s.of_class("panel").size(), 8);
  EXPECT_EQ(s.of_class("frame").size(), 8);
  EXPECT_EQ(s.of_class("colour-bar").size(), 1);
  EXPECT_EQ(cell_fills(s).size(), 800);
  EXPECT_EQ(s.texts("Key positions"), 4);
  EXPECT_EQ(s.texts("Query positions"), 2);
  for (const char* title : {"Head 1", "Head 2", "Head 3", "Head 4"}) EXPECT_EQ(s.texts(title), 1);
  EXPECT_EQ(s.texts("8"), 6) << "only the outer panels have tick labels";
}

TEST(Svg, RowZeroIsOnTopAndEveryCellHasItsColour) {
  const SvgText s = drawn(heatmaps(Tensor({2, 2}, {0, 1, 2, 3}), "", ""));
  std::vector<Element> cells;
  for (const Element& e : s.named("rect"))
    if (e.attributes.count("fill") && e.attributes.at("fill") == hex(colour_at(ColourMap::reds, 2 / 3.0)))
      cells.push_back(e);
  ASSERT_EQ(cells.size(), 1);
  const Element frame = s.of_class("frame").at(0);
  EXPECT_EQ(cells[0].number("x"), frame.number("x"));
  EXPECT_EQ(cells[0].number("y"), frame.number("y") + frame.number("height") / 2);
}

TEST(Svg, OneColourScaleServesAllPanelsUnlessAsked) {
  const Tensor values({1, 2, 1, 2}, {0, 1, 1, 2});
  const auto colour = [](double t) { return hex(colour_at(ColourMap::reds, t)); };
  HeatMapOptions options{.colours = {.map = ColourMap::reds}};
  EXPECT_EQ(cell_fills(drawn(heatmaps(values, "", "", {}, options))),
            (std::vector<std::string>{colour(0), colour(0.5), colour(0.5), colour(1)}));
  options.colours.per_panel = true;
  const SvgText own = drawn(heatmaps(values, "", "", {}, options));
  EXPECT_EQ(cell_fills(own), (std::vector<std::string>{colour(0), colour(1), colour(0), colour(1)}));
  EXPECT_EQ(own.of_class("colour-bar").size(), 2);
  options.colours = {.map = ColourMap::reds, .low = 0.0, .high = 4.0};
  EXPECT_EQ(cell_fills(drawn(heatmaps(values, "", "", {}, options))),
            (std::vector<std::string>{colour(0), colour(0.25), colour(0.25), colour(0.5)}));
}

TEST(Svg, NanIsGreyInfinitiesAreTheEndsAndTheBarSaysSo) {
  const float inf = std::numeric_limits<float>::infinity();
  const SvgText s = drawn(heatmaps(Tensor({1, 5}, {0, 1, kNan, inf, -inf}), "", ""));
  const auto colour = [](double t) { return hex(colour_at(ColourMap::reds, t)); };
  const std::vector<std::string> fills = cell_fills(s);
  ASSERT_EQ(fills.size(), 5);
  EXPECT_EQ(fills, (std::vector<std::string>{colour(0), colour(1), hex(kNanColour), colour(1), colour(0)}));
  EXPECT_EQ(s.texts("NaN"), 1);
}

TEST(Svg, ConstantEmptyAndAllNanMatricesHaveAScale) {
  EXPECT_EQ(cell_fills(drawn(heatmaps(full({2, 2}, 0.25f), "", "")))[0], hex(colour_at(ColourMap::reds, 1)));
  EXPECT_EQ(cell_fills(drawn(heatmaps(zeros({2, 2}), "", "")))[0], hex(colour_at(ColourMap::reds, 0)));
  EXPECT_EQ(cell_fills(drawn(heatmaps(full({2, 2}, kNan), "", "")))[3], hex(kNanColour));
  for (const Shape& shape : {Shape{0, 5}, Shape{5, 0}, Shape{0, 0}, Shape{2, 2, 0, 3}}) {
    const SvgText s = drawn(heatmaps(zeros(shape), "Keys", "Queries"));
    EXPECT_GE(s.texts("empty"), 1) << shape.str();
    EXPECT_EQ(svg(heatmaps(zeros(shape), "Keys", "Queries")).find("nan"), std::string::npos);
  }
}

TEST(Svg, TextsAreEscapedAndUnicodeStaysText) {
  Figure figure;
  figure.title = "a < b & \"c\"";
  figure.panels.push_back(
      {HeatMap{eye(3), {"<eos>", "été", "注意力"}, {"x&y", std::string("\x01\xff", 2), "–"}}, "L'été"});
  const SvgText s = drawn(figure);
  for (const char* text : {"a < b & \"c\"", "<eos>", "été", "注意力", "x&y", "\uFFFD\uFFFD", "–", "L'été"})
    EXPECT_EQ(s.texts(text), 1) << text;
  EXPECT_NE(s.elements[0].attributes.at("font-family").find("Noto Sans CJK SC"), std::string::npos);
}

TEST(Svg, TokenLabelsOfAnyLengthStayOnThePage) {
  for (int count : {1, 5, 20, 80}) {
    std::vector<std::string> tokens;
    for (int i = 0; i < count; ++i)
      tokens.push_back(i % 3 == 0 ? "a" : i % 3 == 1 ? "internationalisation-of-everything" : "注意力机制注意力机制");
    Figure figure;
    figure.panels.push_back({HeatMap{eye(count), tokens, tokens}, "", {"source"}, {"target"}});
    const SvgText s = drawn(figure);
    const Element page = s.elements[0], frame = s.of_class("frame").at(0);
    EXPECT_GT(frame.number("x"), 0);
    EXPECT_LT(frame.number("x") + frame.number("width"), page.number("width"));
    std::set<double> places;
    for (const Element& e : s.named("text")) {
      if (!e.attributes.count("transform")) continue;
      if (e.attributes.at("transform").find("rotate(-90)") != std::string::npos && e.text != "target")
        places.insert(std::stod(e.attributes.at("transform").substr(10)));
    }
    double last = -100;  // upright labels are at least a line apart
    for (double x : places) {
      EXPECT_GE(x - last, 10);
      last = x;
    }
  }
}

TEST(Svg, LargeHeatMapsAreOneImageWithTheRightPixels) {
  const int n = 70;
  const std::string text = svg(heatmaps(eye(n), "", ""));
  const SvgText s = read_svg(text);
  EXPECT_EQ(s.error, "");
  EXPECT_LT(s.named("rect").size(), 10);
  ASSERT_EQ(s.named("image").size(), 1);
  EXPECT_TRUE(s.named("image")[0].has("style", "image-rendering:pixelated"));
  const std::string prefix = "data:image/png;base64,",
                    data = s.named("image")[0].attributes.at("href").substr(prefix.size());
  std::string png;
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  uint32_t word = 0;
  int bits = 0;
  for (char c : data.substr(0, data.find('='))) {
    word = word << 6 | static_cast<uint32_t>(digits.find(c));
    if ((bits += 6) >= 8) png += static_cast<char>(word >> (bits -= 8) & 255);
  }
  const auto word_at = [&](size_t i) {
    return static_cast<uint32_t>((png[i] & 255) << 24 | (png[i + 1] & 255) << 16 | (png[i + 2] & 255) << 8 |
                                 (png[i + 3] & 255));
  };
  EXPECT_EQ(png.substr(1, 3), "PNG");
  const uint32_t width = word_at(16), height = word_at(20), again = width / n;
  EXPECT_EQ(width, height);
  EXPECT_EQ(width % n, 0);
  const size_t packed = png.find("IDAT");
  std::string raw((width + 1) * height, '\0');
  uLongf size = raw.size();
  ASSERT_EQ(uncompress(reinterpret_cast<Bytef*>(raw.data()), &size,
                       reinterpret_cast<const Bytef*>(png.data() + packed + 4), word_at(packed - 4)),
            Z_OK);
  ASSERT_EQ(size, raw.size());
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j)
      ASSERT_EQ(raw[(width + 1) * (i * again) + 1 + j * again] & 255, i == j ? 254 : 0) << i << ", " << j;
}

TEST(Svg, A500By500MapStaysSmall) { EXPECT_LT(svg(heatmaps(uniform({500, 500}, Rng(3)), "", "")).size(), 2'000'000); }

TEST(Svg, CurvesCarryTheirDashesLegendAndLimits) {
  const std::vector<double> x = numbers(0, 0.1, 51);
  Figure figure = curves({{"truth", x, x, line_style("-")},
                          {"prediction", x, x, line_style("m--")},
                          {"third", x, x, line_style("g-.")},
                          {"fourth", x, x, line_style("r:")},
                          {"", {1, 2, 3}, {1, 2, 3}, line_style("o")}},
                         {.label = "x", .low = 0, .high = 5}, {.label = "y", .low = -1, .high = 5});
  const SvgText s = drawn(figure);
  const std::vector<Element> lines = s.of_class("curve");
  ASSERT_EQ(lines.size(), 4);
  EXPECT_FALSE(lines[0].attributes.count("stroke-dasharray"));
  std::set<std::string> dashes;
  for (int i = 1; i < 4; ++i) dashes.insert(lines[i].attributes.at("stroke-dasharray"));
  EXPECT_EQ(dashes.size(), 3);
  EXPECT_EQ(s.named("circle").size(), 3);
  for (const char* name : {"truth", "prediction", "third", "fourth", "x", "y", "−1"})
    EXPECT_EQ(s.texts(name), 1) << name;
  const Element frame = s.of_class("frame").at(0);
  const double bottom = frame.number("y") + frame.number("height");
  EXPECT_EQ(lines[0].attributes.at("d").find("M" + std::to_string(static_cast<int>(frame.number("x"))) + " "), 0);
  const std::string start = lines[0].attributes.at("d");
  EXPECT_NEAR(std::stod(start.substr(start.find(' '))), bottom - frame.number("height") / 6, 0.02)
      << "y = 0 is a sixth of the way up from -1 to 5";
}

TEST(Svg, GapsInDataBreakTheLineAndLogScalesSkipWhatTheyCannotShow) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto moves = [](const Figure& figure) {
    const std::string d = drawn(figure).of_class("curve").at(0).attributes.at("d");
    return std::count(d.begin(), d.end(), 'M');
  };
  EXPECT_EQ(moves(curves({{"", {0, 1, 2, 3, 4, 5}, {1, 2, NAN, 3, inf, 4}}})), 3);
  EXPECT_EQ(moves(curves({{"", {0, 1, 2, 3}, {1, 10, -5, 100}}}, {}, {.scale = AxisScale::log})), 2);
  EXPECT_EQ(drawn(curves({{"none", {}, {}}})).of_class("curve").size(), 0);
}

TEST(Svg, LongCurvesAreThinnedToWhatThePageShows) {
  std::vector<double> x = numbers(0, 1e-6, 1'000'000), y;
  for (double v : x) y.push_back(std::sin(v * 50));
  y[500'000] = 7;  // a spike one point wide must survive
  const std::string text = svg(curves({{"", x, y}}));
  EXPECT_LT(text.size(), 100'000);
  EXPECT_NE(text.find(">6</text>"), std::string::npos);
  const SvgText s = read_svg(text);
  const std::string d = s.of_class("curve").at(0).attributes.at("d");
  double top = 1e9;
  for (size_t i = d.find(' '); i != d.npos; i = d.find(' ', i + 1)) top = std::min(top, std::stod(d.substr(i)));
  const Element frame = s.of_class("frame").at(0);
  EXPECT_LT(top, frame.number("y") + 0.1 * frame.number("height"));
}

TEST(Svg, BarsStandOnZeroAndHistogramsHatchTheSecond) {
  const SvgText s = drawn(bars({"a", "b"}, {{"up", {1, 2}}, {"down", {-1, 0.5}}}, {}, {"value"}));
  const std::vector<Element> rects = s.of_class("bar");
  ASSERT_EQ(rects.size(), 4);
  const double zero = rects[0].number("y") + rects[0].number("height");
  EXPECT_NEAR(rects[1].number("y"), zero, 0.02) << "the bar of -1 hangs from zero";
  EXPECT_NEAR(rects[2].number("height"), 2 * rects[0].number("height"), 0.03);
  EXPECT_EQ(rects[1].attributes.at("fill"), "url(#fig-hatch)");
  const SvgText h = drawn(histogram({{"source", {1, 2, 2, 3}}, {"target", {1, 1, 3}}}, {"length"}, {"count"}, 2));
  EXPECT_EQ(h.of_class("bar").size(), 4);
  EXPECT_EQ(h.named("pattern").size(), 1);
}

TEST(Svg, BarsOnALogScaleSkipWhatItCannotShow) {
  const SvgText s = drawn(bars({"a", "b", "c", "d"}, {{"s", {1, 10, 0, -3}}}, {}, {.scale = AxisScale::log}));
  EXPECT_EQ(s.of_class("bar").size(), 2);
}

TEST(Svg, GoldBoxesStandAroundTheirCells) {
  Figure figure;
  figure.panels.push_back({HeatMap{zeros({4, 4}), {}, {}, {{1, 2}}}});
  const SvgText s = drawn(figure);
  const Element frame = s.of_class("frame").at(0), box = s.of_class("gold").at(0);
  const double cell = frame.number("width") / 4;
  EXPECT_NEAR(box.number("x") + box.number("width") / 2, frame.number("x") + 2.5 * cell, 0.02);
  EXPECT_NEAR(box.number("y") + box.number("height") / 2, frame.number("y") + 1.5 * cell, 0.02);
}

TEST(Svg, TheSameFigureGivesTheSameBytesAndIdsHaveTheirPrefix) {
  Figure figure = heatmaps(uniform({1, 2, 4, 4}, Rng(5)), "k", "q");
  EXPECT_EQ(svg(figure), svg(figure));
  figure.id = "first";
  std::set<std::string> ids;
  const std::string text = svg(figure);
  for (const Element& e : read_svg(text).elements)
    if (e.attributes.count("id")) {
      EXPECT_EQ(e.attributes.at("id").find("first-"), 0);
      EXPECT_TRUE(ids.insert(e.attributes.at("id")).second) << e.attributes.at("id");
    }
  EXPECT_GE(ids.size(), 5);
  for (size_t i = text.find("url(#"); i != text.npos; i = text.find("url(#", i + 1))
    EXPECT_TRUE(ids.count(text.substr(i + 5, text.find(')', i) - i - 5)));
}

TEST(Svg, KeepsTheRequestedSizeAndSquareCells) {
  HeatMapOptions options{.size = FigureSize{7, 3.5}};
  const SvgText s = drawn(heatmaps(uniform({2, 4, 10, 10}, Rng(1)), "Keys", "Queries", {}, options));
  EXPECT_EQ(s.elements[0].number("width"), 672);
  EXPECT_EQ(s.elements[0].number("height"), 336);
  for (const Element& frame : s.of_class("frame")) {
    EXPECT_EQ(frame.number("width"), frame.number("height"));
    EXPECT_LT(frame.number("y") + frame.number("height"), 336);
  }
}

TEST(Svg, TheInheritThemeHasNoBackgroundAndTheColourOfThePage) {
  Figure figure = curves({{"f", {0, 1}, {0, 1}}});
  figure.theme = Theme::inherit;
  const std::string text = svg(figure);
  EXPECT_EQ(text.find("#fff"), std::string::npos);
  EXPECT_TRUE(read_svg(text).elements[0].has("fill", "currentColor"));
}
