// Lab 10.2: its claims, its worked numbers, and its text in both languages.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <stdexcept>

#include "qkv/data/notes.h"
#include "qkv/labs/formula.h"
#include "qkv/labs/regression.h"
#include "qkv/labs/render.h"
#include "qkv/labs/show.h"
#include "unit/labs/labs_support.h"

namespace qkv::labs {
namespace {

const Page& page_of(uint64_t seed) {
  static std::map<uint64_t, Page> pages;
  if (!pages.count(seed)) pages.emplace(seed, run(*find_lab("10.2"), {.seed = seed}));
  return pages.at(seed);
}

std::string failures(const Page& page) {
  std::string list;
  for (const Block& block : page.blocks())
    if (const auto* claim = std::get_if<Claim>(&block); claim && !claim->holds)
      list += english(claim->text) + " [" + english(claim->measured) + "]\n";
  return list;
}

TEST(RegressionLab, IsFoundByNameAndSection) {
  ASSERT_TRUE(find_lab("10.2"));
  EXPECT_EQ(find_lab("10.2"), find_lab("kernel-regression"));
}

TEST(RegressionLab, ItsDataAreThoseThatQkvDataWrites) {
  for (const uint64_t seed : {0, 3}) {
    const qkv::Table table = nadaraya_watson_data(notes_rng(seed, Edition::zh));
    const regression::Sample lab = regression::zh_sample(regression::rng_of(seed).at("zh"));
    EXPECT_EQ(table.columns[0], lab.x);
    EXPECT_EQ(table.columns[1], lab.y);
    EXPECT_EQ(nadaraya_watson_data(notes_rng(seed, Edition::en), NotesOptions::of(Edition::en)).columns[1],
              regression::en_sample(regression::rng_of(seed).at("en")).y);
  }
}

TEST(RegressionLab, EveryClaimHoldsForAnySeed) {
  for (const uint64_t seed : {0, 7, 116}) {  // 116: its start is stuck near w = 0
    EXPECT_GE(page_of(seed).claims(), 45);
    EXPECT_EQ(failures(page_of(seed)), "") << "seed " << seed;
  }
}

TEST(RegressionLab, ShowsTheWorkedNumbers) {
  const Page& page = page_of(0);
  EXPECT_EQ(english(claim_with(page, "A waist of 57").measured), "f(57) = 45.49999993");
  EXPECT_EQ(english(claim_with(page, "Without the minus sign").measured), "f(57) = 40.000000");
  EXPECT_EQ(english(fact_with(page, "Ten equal weights").measured), "4.5000 and 14.5000");
}

TEST(RegressionLab, ShowsTheArraysOfLeaveOneOutTraining) {
  const std::string printed = everything_printed(page_of(0));
  EXPECT_NE(
      printed.find(
          "repeat_interleave([1, 2], 3) = [1, 1, 1, 2, 2, 2]\nrepeat([1, 2], 3)            = [1, 2, 1, 2, 1, 2]\n"),
      printed.npos);
  EXPECT_NE(printed.find("keys without the diagonal (50, 49)\n"), printed.npos);
  EXPECT_NE(printed.find("(50, 1, 49) x (50, 49, 1) -> (50, 1, 1)"), printed.npos);
}

TEST(RegressionLab, DrawsTheTruthSolidAndTheEstimateDashedEverywhere) {
  for (const Block& block : page_of(0).blocks())
    if (const auto* picture = std::get_if<Picture>(&block))
      for (const Panel& panel : picture->figure.panels)
        if (const auto* lines = std::get_if<Curves>(&panel.content))
          for (const Series& line : lines->series) {
            if (line.name != "Truth" && line.name != "Pred") continue;
            EXPECT_EQ(line.style->dash, line.name == "Truth" ? Dash::solid : Dash::dashed) << picture->name;
          }
}

TEST(RegressionLab, FormulasOfTheNotesWithSlipsGiveOtherEstimators) {
  const Page& page = page_of(0);
  for (const char* words : {"With the square outside", "every weight is $1/n$", "Without $y_i$", "$1/n$ alone"})
    EXPECT_TRUE(claim_with(page, words).holds) << words;
}

TEST(RegressionLab, HasTextAndCaptionsInBothLanguages) {
  std::set<std::string> names;
  int chinese = 0;
  const auto both = [&](const Text& text) {
    const std::string en = text.in(Language::en), zh = text.in(Language::zh);
    EXPECT_FALSE(en.empty()) << zh;
    EXPECT_FALSE(zh.empty()) << en;
    EXPECT_FALSE(has_chinese(en)) << en;
    chinese += en != zh;
  };
  for (const Block& block : page_of(0).blocks()) {
    if (const auto* heading = std::get_if<Heading>(&block)) both(heading->text);
    if (const auto* paragraph = std::get_if<Paragraph>(&block)) both(paragraph->text);
    if (const auto* claim = std::get_if<Claim>(&block)) both(claim->text);
    if (const auto* fact = std::get_if<Fact>(&block)) both(fact->text);
    if (const auto* table = std::get_if<Table>(&block))
      for (const auto& row : table->rows)
        for (const Text& cell : row) both(cell);
    if (const auto* picture = std::get_if<Picture>(&block)) {
      both(picture->caption);
      EXPECT_TRUE(names.insert(picture->name).second) << picture->name << " is there twice";
      EXPECT_NO_THROW(validate(picture->figure)) << picture->name;
    }
  }
  EXPECT_GE(names.size(), 25u);
  EXPECT_GT(chinese, 100);
}

TEST(RegressionLab, RendersAsTextAndMarkdownInBothLanguages) {
  const Lab& lab = *find_lab("10.2");
  for (const Language language : {Language::en, Language::zh}) {
    std::string screen;
    for (const Block& block : page_of(0).blocks()) screen += plain(block, language);
    expect_utf8(screen, "the text");
    expect_utf8(html_report({{&lab, page_of(0), 1}}, language), "the page");
    EXPECT_EQ(screen.find('$'), std::string::npos);
    const std::string note = markdown(lab, page_of(0), language);
    expect_utf8(note, "the note");
    EXPECT_NE(note.find(lab.title.in(language)), std::string::npos);
    EXPECT_NE(note.find("stuck-valley.svg"), std::string::npos);
  }
}

TEST(RegressionLab, TheThreeHundredRunsAreThoseOfThePages) {
  const Page page({.seed = 17});
  const Learned learned = regression::page_learned(page);
  EXPECT_EQ(learned.w[0], regression::book_runs()[17].w);
  EXPECT_EQ(learned.losses, regression::book_runs()[17].losses);
}

TEST(RegressionLab, MediansOfTheThreeHundredRunsAreThoseOfTheBook) {
  using namespace regression;
  EXPECT_NEAR(median(collect([](const BookRun& r) { return r.average; })), 0.89, 0.089);
  EXPECT_NEAR(median(collect([](const BookRun& r) { return r.plain; })), 0.42, 0.042);
  EXPECT_NEAR(median(collect([](const BookRun& r) { return r.learned; })), 0.115, 0.0115);
}

TEST(PlainFormula, TellsASignFromADifference) {
  EXPECT_EQ(plain_formula("\\exp(-\\frac{1}{2} (x - y)^2)"), "exp(−(1/2)(x − y)²)");
  EXPECT_EQ(plain_formula("n^{-\\frac{1}{d + 4}}"), "n^(−1/(d + 4))");
  EXPECT_EQ(plain_formula("f(x) - 1"), "f(x) − 1");
  EXPECT_EQ(plain_formula("2 \\sin x + x"), "2 sin x + x");
  EXPECT_EQ(plain_formula("\\hat{p}"), "p\u0302");
}

}  // namespace
}  // namespace qkv::labs
