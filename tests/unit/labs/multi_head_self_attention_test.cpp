// Labs 10.5 and 10.6: claims, the numbers they must show, and text in both languages.
#include <algorithm>
#include <map>

#include "qkv/labs/multi_head.h"
#include "qkv/plot/layout.h"
#include "unit/labs/labs_support.h"

namespace qkv::labs {
namespace {

// Run once for all tests.
const Page& page_of(const std::string& name) {
  static std::map<std::string, Page> pages;
  auto found = pages.find(name);
  return found != pages.end() ? found->second : pages.emplace(name, run(*find_lab(name), {})).first->second;
}

class HeadsLab : public testing::TestWithParam<const char*> {};

TEST_P(HeadsLab, ClaimsHoldForSeveralSeeds) {
  for (uint64_t seed : {1, 2}) expect_claims_hold(run(*find_lab(GetParam()), {.seed = seed}));
}

TEST_P(HeadsLab, HasTextInBothLanguagesAndDrawsEveryFigure) {
  const Page& page = page_of(GetParam());
  expect_claims_hold(page);
  expect_words_in_both_languages(page);
  expect_figures_draw(page);
  expect_renders(*find_lab(GetParam()), page);
}

INSTANTIATE_TEST_SUITE_P(Labs, HeadsLab, testing::Values("10.5", "10.6"), [](const auto& info) {
  std::string name = find_lab(info.param)->name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(MultiHeadLab, ShowsTheNumbersOfTheBook) {
  const Page& page = page_of("10.5");
  EXPECT_EQ(find_lab("multi-head"), find_lab("10.5"));
  EXPECT_EQ(english(fact_with(page, "full width for each query").measured), "shape (2, 4, 100)");
  EXPECT_EQ(english(claim_with(page, "1/3 for a length of 3").measured), "weights 0.333333 and 0.500000");
  EXPECT_EQ(english(fact_with(page, "widths 20, 10 and 6").measured), "output (2, 4, 100), 13,600 parameters");
  const std::string note = markdown(*find_lab("10.5"), page, Language::en);
  for (const char* row : {"| 1 | 100 | 40,000 | 40,400 |", "| 20 | 5 | 40,000 | 40,400 |"})
    EXPECT_NE(note.find(row), note.npos) << row;
  const std::string printed = everything_printed(page);
  EXPECT_NE(printed.find("weights          (2, 5, 4, 6)\noutput           (2, 4, 100)"), printed.npos);
  EXPECT_NE(printed.find("(3, 2, 2):\n[[[0, 1],\n  [6, 7]],\n [[2, 3],\n  [8, 9]],"), printed.npos);
  EXPECT_NE(printed.find("error: [multi_head] a width of 100 is not divisible by 3 heads"), printed.npos);
}

TEST(MultiHeadLab, AsksForDigitsThatAreWhereItSays) {
  const multi_head::Lines lines = multi_head::draw_lines(20, Rng(5));
  for (int64_t r = 0; r < 20; ++r) {
    const auto tokens = multi_head::tokens_of(lines, r);
    std::set<char> letters;
    for (size_t i = 0; i < tokens.size(); ++i) {
      letters.insert(tokens[i][0]);
      const int32_t* answers = lines.answers.ptr() + (r * 8 + static_cast<int64_t>(i)) * 3;
      const char partner = static_cast<char>('a' + ((tokens[i][0] - 'a') ^ 1));
      char digit = '?';
      for (const std::string& token : tokens)
        if (token[0] == partner) digit = token[1];
      EXPECT_EQ(answers[0], tokens[i == 0 ? 0 : i - 1][1] - '0');
      EXPECT_EQ(answers[1], tokens[0][1] - '0');
      EXPECT_EQ(answers[2], digit - '0');
    }
    EXPECT_EQ(letters.size(), 8u);
  }
}

TEST(MultiHeadLab, ClosedGatesLeaveNothingButTheBias) {
  Page page({.seed = 3});
  const multi_head::Lines lines = multi_head::test_lines(page);
  const multi_head::Reader reader(96, 6, Rng(1));
  const Tensor logits = reader.logits(reader.attended(lines).output, zeros({1, 1, 6, 1}));
  for (int64_t i = 0; i < logits.numel(); ++i) ASSERT_EQ(logits.ptr()[i], reader.answer.bias.ptr()[i % 12]);
}

TEST(SelfAttentionLab, ShowsTheNumbersOfTheBook) {
  const Page& page = page_of("10.6");
  EXPECT_EQ(find_lab("self-attention"), find_lab("10.6"));
  const std::string printed = everything_printed(page);
  EXPECT_NE(printed.find("(2, 4, 100) -> (2, 4, 100)"), printed.npos);
  EXPECT_NE(printed.find("0 in binary is 000\n1 in binary is 001\n2 in binary is 010"), printed.npos);
  EXPECT_NE(printed.find("7 in binary is 111"), printed.npos);
  EXPECT_EQ(english(claim_with(page, "The counts are exactly").measured),
            "self-attention, n = 512, d = 64: 33,554,432 = 2 × 512² × 64");
  EXPECT_EQ(english(claim_with(page, "to meet in the middle").measured),
            "n = 33, k = 3: 16 layers to the middle, 32 from end to end");
  EXPECT_EQ(english(claim_with(page, "A recurrence needs").measured), "n = 33: 32 steps and 1 layer");
}

TEST(SelfAttentionLab, SaysWhichPositionsAClaimCounts) {
  const Claim& claim = claim_with(page_of("10.6"), "Past the last trained position");
  EXPECT_NE(english(claim.text).find("Counted from position 17 on"), std::string::npos);
  EXPECT_TRUE(english(claim.measured).starts_with("positions 17 to 47: learned ")) << english(claim.measured);
}

TEST(SelfAttentionLab, DrawsTheBooksTwoFiguresOfPositions) {
  const Page& page = page_of("10.6");
  const Figure& columns = figure_named(page, "position-columns");
  const auto& lines = std::get<Curves>(columns.panels[0].content).series;
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0].name, "Col 6");
  EXPECT_EQ(lines[3].name, "Col 9");
  EXPECT_EQ(lines[0].x.size(), 60u);
  EXPECT_NEAR(lines[0].y[59], -0.8758, 1e-4);
  EXPECT_EQ(columns.panels[0].x.label, "Row (position)");
  const Figure& map = figure_named(page, "position-map");
  EXPECT_EQ(std::get<HeatMap>(map.panels[0].content).values.shape(), (Shape{60, 32}));
  EXPECT_EQ(plotting::layout(map).colours.map, ColourMap::diverging) << "sines have both signs";
  EXPECT_EQ(map.colours.low, -1);
  EXPECT_EQ(map.colours.high, 1);
  EXPECT_EQ(map.panels[0].x.label, "Column (encoding dimension)");
}

}  // namespace
}  // namespace qkv::labs
