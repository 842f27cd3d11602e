// Lab 10.4: its claims, the numbers it must show, and its text in both languages.
#include "labs_support.h"
#include "qkv/labs/bahdanau.h"

namespace qkv::labs {
namespace {

TEST(BahdanauLab, IsFoundByNameAndSection) {
  ASSERT_TRUE(find_lab("10.4"));
  EXPECT_EQ(find_lab("10.4"), find_lab("bahdanau"));
}

void expect_numbers_of_the_book(const Page& page) {
  EXPECT_NO_THROW(fact_with(page, "47,369 parameters"));
  EXPECT_NO_THROW(fact_with(page, "2,080 parameters, 49,449 in all"));
  EXPECT_EQ(english(claim_with(page, "by greedy search").measured), "greedy 0.048, beam 0.054");
  EXPECT_EQ(english(fact_with(page, "A B B C D").measured), "score 0.681");
  const std::string printed = everything_printed(page);
  EXPECT_NE(printed.find("[[1, 0, 0],\n [4, 5, 0]]"), printed.npos);
  EXPECT_NE(printed.find("go .\tva !"), printed.npos);
  EXPECT_NE(printed.find("2.3026  1.1513  0.0000"), printed.npos);
  EXPECT_NE(printed.find("output          (4, 7, 10)"), printed.npos);
}

void expect_swap_and_negation_with_gold_links(const Page& page) {
  int maps = 0;
  for (const Block& block : page.blocks())
    if (const auto* picture = std::get_if<Picture>(&block);
        picture && (picture->name == "adjective-swap" || picture->name == "negation")) {
      const auto& map = std::get<HeatMap>(picture->figure.panels[0].content);
      EXPECT_GE(map.boxes.size(), 3u);
      EXPECT_EQ(static_cast<int64_t>(map.x_tokens.size()), map.values.size(1));
      EXPECT_EQ(static_cast<int64_t>(map.y_tokens.size()), map.values.size(0));
      ++maps;
    }
  EXPECT_EQ(maps, 2);
}

void expect_answers(const Page& page) {
  expect_exercises_in_order(page, {"Exercise 9.5.1", "Exercise 9.5.2", "Exercise 9.6.1", "Exercise 9.6.2",
                                   "Exercise 9.7.1", "Exercise 9.7.2", "Exercise 9.7.3", "Exercise 9.7.4",
                                   "Exercise 9.7.5", "Exercise 9.7.6", "Exercise 10.4.1", "Exercise 10.4.2"});
  const std::string en = everything_said(page, Language::en), zh = everything_said(page, Language::zh);
  for (const char* odd : {"reads both ways", "It learns the task"}) EXPECT_EQ(en.find(odd), en.npos) << odd;
  for (const char* odd : {"知道它的相邻词", "个的参数", "47369", "49449", "dropout"})
    EXPECT_EQ(zh.find(odd), zh.npos) << odd;
}

// One test: it trains twenty models.
TEST(BahdanauLab, KeepsItsClaimsTextsFiguresAndTheNumbersOfTheBook) {
  const Lab& lab = *find_lab("10.4");
  const Page page = run(lab, {.seed = 3});
  EXPECT_GE(page.claims(), 15);
  expect_claims_hold(page);
  expect_words_in_both_languages(page);
  expect_figures_draw(page);
  expect_renders(lab, page);
  expect_numbers_of_the_book(page);
  expect_answers(page);
  expect_swap_and_negation_with_gold_links(page);
}

TEST(BahdanauLab, CountsExactSentences) {
  using namespace bahdanau;
  EXPECT_EQ(share_exact({"a b", "c"}, {"a b", "d"}), 0.5);
  EXPECT_EQ(percent(0.1234), "12.3 %");
}

TEST(BahdanauLab, SettingsOfTheBooksFileAreTheBooks) {
  using namespace bahdanau;
  const Page with({.seed = 5, .data = "fra.txt"});
  const TranslationConfig c = config_of(with, Kind::attention), b = config_of(with, Kind::baseline),
                          own = config_of(with, Kind::aligned);
  EXPECT_EQ(c.data.pairs, "fra.txt");
  EXPECT_EQ(c.training.epochs, 250);
  EXPECT_EQ(b.training.epochs, 300);
  EXPECT_EQ(b.seq2seq().attention, ScorerKind::none);
  EXPECT_EQ(c.training.seed, 5);
  EXPECT_EQ(own.data.pairs, "en-fr");
}

TEST(Labs, AFileForALabThatTakesNoneIsRefused) {
  try {
    run(*find_lab("cues"), {.data = "fra.txt"});
    FAIL() << "it ran";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("lab cues takes no data; got \"fra.txt\""), std::string::npos) << e.what();
  }
}

TEST(Labs, StepsShareAnObjectUntilItIsForgotten) {
  Page p({});
  p.shared<std::string>() = "made once";
  EXPECT_EQ(p.shared<std::string>(), "made once");
  EXPECT_EQ(p.shared<int>(), 0);
  p.forget();
  EXPECT_EQ(p.shared<std::string>(), "");
}

}  // namespace
}  // namespace qkv::labs
