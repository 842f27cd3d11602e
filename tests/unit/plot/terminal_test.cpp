// The terminal backend: widths, ASCII fallback, averaging.
#include "qkv/plot/terminal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "qkv/core/check.h"
#include "qkv/plot/text.h"

using namespace qkv;
using plotting::display_width;

namespace {

// Lines without their escape codes.
std::vector<std::string> plain_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    std::string plain;
    for (size_t i = 0; i < line.size(); ++i) {
      if (line[i] == '\x1b')
        i = line.find('m', i);
      else
        plain += line[i];
    }
    lines.push_back(plain);
  }
  return lines;
}

std::vector<Figure> every_kind() {
  std::vector<double> x, y;
  for (int i = 0; i < 50; ++i) {
    x.push_back(i);
    y.push_back(std::sin(i / 5.0));
  }
  std::vector<Figure> all;
  all.push_back(heatmaps(uniform({2, 4, 10, 10}, Rng(1)), "Key positions", "Query positions",
                         {"Head 1", "Head 2", "Head 3", "头 4"}));
  all.push_back(heatmaps(eye(3), "source 源", "cible", {},
                         {.x_tokens = {"我", "喜欢", "été"}, .y_tokens = {"<eos>", "注意力", "x"}}));
  all.push_back(
      heatmaps(Tensor({2, 2}, {1, NAN, 3, 4}), "", "", {}, {.colours = {.per_panel = true}, .cell_values = true}));
  all.push_back(heatmaps(uniform({300, 500}, Rng(2)), "k", "q"));
  all.push_back(heatmaps(zeros({0, 3}), "k", "q"));
  all.push_back(curves({{"sinus 正弦", x, y}, {"points", x, y, line_style("o")}}, {.label = "x"}, {.label = "y"}));
  all.push_back(curves({{"", {}, {}}}));
  all.push_back(bars({"dot", "加性"}, {{"forward", {1, -2}}, {"backward", {NAN, 4}}}, {"score"}, {"ms"}));
  all.push_back(histogram({{"a", x}, {"b", y}}, {"value"}, {"count"}));
  for (Figure& f : all) f.title = "Un titre assez long, 标题";
  return all;
}

}  // namespace

TEST(Terminal, EveryLineHasTheSameWidthAndFits) {
  for (TerminalColour colour : {TerminalColour::truecolor, TerminalColour::ascii})
    for (int columns : {20, 40, 80, 133})
      for (const Figure& figure : every_kind()) {
        const std::string text = terminal(figure, {columns, colour});
        const std::vector<std::string> lines = plain_lines(text);
        ASSERT_FALSE(lines.empty());
        EXPECT_EQ(text.back(), '\n');
        for (const std::string& line : lines) EXPECT_EQ(display_width(line), display_width(lines[0])) << text;
        EXPECT_LE(display_width(lines[0]), columns) << text;
        EXPECT_TRUE(colour == TerminalColour::truecolor || text.find('\x1b') == std::string::npos);
      }
}

TEST(Terminal, AsciiHeatMapsDarkenAlongTheRamp) {
  const std::string text =
      terminal(heatmaps(eye(3), "Keys", "Queries"), {.columns = 40, .colour = TerminalColour::ascii});
  const std::vector<std::string> lines = plain_lines(text);
  EXPECT_EQ(lines[0].substr(0, 7), "Queries");
  EXPECT_EQ(lines[1].substr(0, 6), "  @@@@");
  EXPECT_EQ(lines[3].substr(0, 10), "      @@@@");
  EXPECT_NE(text.find("Keys"), std::string::npos);
  for (char c : text) EXPECT_LT(static_cast<unsigned char>(c), 0x80);
}

TEST(Terminal, HeatMapsHaveTheColoursOfTheMap) {
  const std::string text = terminal(heatmaps(Tensor({1, 2}, {0, 1}), "", ""));
  EXPECT_NE(text.find("48;2;255;245;240"), std::string::npos);
  EXPECT_NE(text.find("48;2;103;0;13"), std::string::npos);
  EXPECT_NE(text.find("▀"), std::string::npos);
}

TEST(Terminal, HalfBlocksShowTwoRowsPerLine) {
  const std::string text = terminal(heatmaps(uniform({60, 60}, Rng(4)), "", ""), {.columns = 70});
  EXPECT_EQ(plain_lines(text).size(), 30 + 1 + 2)
      << "30 lines of cells, the column numbers, a blank line and the colour bar";
}

TEST(Terminal, CurvesReachTheirExtremes) {
  const std::vector<std::string> lines = plain_lines(terminal(
      curves({{"f", {0, 1}, {0, 1}}}, {.low = 0, .high = 1}, {.low = 0, .high = 1}), {60, TerminalColour::ascii}));
  EXPECT_EQ(lines[0].back(), '*');
  EXPECT_EQ(lines[15].find('*'), lines[15].find('+') + 1);
  EXPECT_NE(lines.back().find("* f"), std::string::npos);
}

TEST(Terminal, BarsAreProportional) {
  const std::vector<std::string> lines =
      plain_lines(terminal(bars({"a", "b"}, {{"", {20, 10}}}), {60, TerminalColour::ascii}));
  const auto hashes = [](const std::string& s) { return std::count(s.begin(), s.end(), '#'); };
  EXPECT_NEAR(static_cast<double>(hashes(lines[0])), 2.0 * static_cast<double>(hashes(lines[1])), 1);
  EXPECT_NE(lines[1].find(" 10"), std::string::npos);
}

TEST(Terminal, ControlCharactersInTextsCannotReachTheTerminal) {
  const std::string text =
      terminal(heatmaps(eye(2), "a\x1b[31mb", "c\nd"), {.columns = 40, .colour = TerminalColour::ascii});
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("c\uFFFDd"), std::string::npos);
}

TEST(Terminal, ATitleThatDoesNotFitGivesWayToTheShortOne) {
  Figure figure = heatmaps(uniform({1, 2, 8, 4}, Rng(3)), "", "");
  for (size_t i = 0; i < 2; ++i) {
    figure.panels[i].title = text("Layer 1, head ", i + 1);
    figure.panels[i].short_title = text("L1 H", i + 1);
  }
  const auto shown = [&](int columns) { return plain_lines(terminal(figure, {columns, TerminalColour::ascii}))[0]; };
  const auto has = [](const std::string& line, const char* title) { return line.find(title) != line.npos; };
  const std::string roomy = shown(60);  // the maps are 8 wide: a title may extend beyond its map
  EXPECT_TRUE(has(roomy, "Layer 1, head 1") && has(roomy, "Layer 1, head 2")) << roomy;
  for (Panel& panel : figure.panels) panel.title = panel.title.str() + ", value-weighted";
  const std::string tight = shown(48);
  EXPECT_TRUE(has(tight, "L1 H1") && has(tight, "L1 H2") && !has(tight, "~")) << tight;
}

TEST(Terminal, TooFewColumnsAreRefused) {
  try {
    terminal(heatmaps(eye(2), "", ""), {.columns = 5});
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[terminal] needs 20 to 10000 columns, got 5");
  }
}

TEST(Text, WidthsCountWideAndCombiningCharacters) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("été"), 3);
  EXPECT_EQ(display_width("e\u0301"), 1);
  EXPECT_EQ(display_width("注意力"), 6);
  EXPECT_EQ(display_width("한국어ｗ"), 8);
  EXPECT_EQ(display_width(std::string("\xff\xc3", 2)), 2);
}

TEST(Text, NumbersOfAttributesAreShort) {
  EXPECT_EQ(plotting::svg_number(1.5), "1.5");
  EXPECT_EQ(plotting::svg_number(-0.001), "0");
  EXPECT_EQ(plotting::svg_number(100), "100");
  EXPECT_EQ(plotting::svg_number(NAN), "0");
}

TEST(Terminal, ABlackLineHasTheTerminalsOwnColour) {
  const LineStyle black{.colour = Colour{0, 0, 0}}, blue{.colour = Colour{0, 114, 178}};
  const std::string text = terminal(curves({{"limit", {0, 1}, {0, 1}, black}, {"loss", {0, 1}, {1, 0}, blue}}),
                                    {60, TerminalColour::truecolor});
  EXPECT_EQ(text.find("38;2;0;0;0m"), std::string::npos) << "black does not show on a dark terminal";
  EXPECT_NE(text.find("38;2;0;114;178m"), std::string::npos);
  EXPECT_NE(text.find("──"), std::string::npos) << "the legend shows both lines";
}
