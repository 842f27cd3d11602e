// Lab 11.9: claims, text in both languages, figures, and the names under which it is found.
#include "qkv/labs/language.h"
#include "unit/labs/labs_support.h"

namespace qkv::labs {
namespace {

TEST(LanguageLab, ClaimsHoldTextIsInBothLanguagesAndFiguresDraw) {
  const Lab& lab = *find_lab("language-models");
  const Page page = run(lab, {});
  expect_claims_hold(page);
  expect_words_in_both_languages(page);
  expect_figures_draw(page);
  expect_renders(lab, page);
  expect_exercises_in_order(page, {"11.9.1", "11.9.2", "11.9.3", "11.9.4"});
  for (const Panel& panel : figure_named(page, "scaling").panels) {
    EXPECT_EQ(panel.x.scale, AxisScale::log);
    EXPECT_EQ(panel.y.scale, AxisScale::log);
  }
  for (const char* published : {"0.076", "0.095", "0.050"})
    EXPECT_NE(everything_said(page, Language::en).find(published), std::string::npos) << published;
  const auto& learning = std::get<Curves>(figure_named(page, "fine-tuning").panels[0].content);
  ASSERT_EQ(learning.series.size(), 3u);
  EXPECT_EQ(learning.series[2].y, (std::vector<double>{0.5, 0.5}));  // chance
}

TEST(LanguageLab, OfTheJudgedSentencesEverySecondHasTwoNeighboursExchanged) {
  std::vector<std::vector<int32_t>> sentences;
  for (int32_t i = 0; i < 40; ++i) {
    sentences.emplace_back();
    for (int32_t k = 0; k < 3 + i % 30; ++k) sentences.back().push_back(100 * i + k);  // of 3 to 32 different words
  }
  const language::Judged all = language::judged(sentences, 5, 12, -7, Rng(3));
  ASSERT_EQ(all.sentences.size(), 12u);
  for (size_t i = 0; i < 12; ++i) {
    const std::vector<int32_t>& words = all.sentences[i];
    EXPECT_GE(words.size(), 4u);
    EXPECT_LE(std::ssize(words) + 2, language::kContext);
    EXPECT_EQ(all.right[i], i % 2 == 0);
    std::vector<size_t> moved;
    for (size_t k = 0; k < words.size(); ++k)
      if (words[k] % 100 != static_cast<int32_t>(k)) moved.push_back(k);
    if (all.right[i]) {
      EXPECT_TRUE(moved.empty());
    } else {
      ASSERT_EQ(moved.size(), 2u);
      EXPECT_EQ(moved[1], moved[0] + 1);
      EXPECT_LT(moved[1] + 1, words.size());  // the last word stays
    }
  }
  const language::Judged some = all.part(3, 4);
  EXPECT_EQ(some.sentences.front(), all.sentences[3]);
  EXPECT_EQ(some.right, (std::vector<int32_t>{0, 1, 0, 1}));
  EXPECT_THROW(language::judged(sentences, 35, 12, -7, Rng(3)), Error);
}

TEST(LanguageLab, NoTestOrLabelledSentenceIsAmongTheTextThatModelsRead) {
  const language::WordText text = language::read_words(0);
  std::set<std::vector<int32_t>> read;
  for (auto& s : text.sentences(text.train)) read.insert(s);
  size_t common = 0;
  for (const auto& part : {text.test, text.labelled})
    for (const auto& s : text.sentences(part)) common += read.contains(s);
  EXPECT_EQ(text.sentences(text.test).size(), 1000u);
  EXPECT_EQ(text.sentences(text.labelled).size(), 2300u);
  // Rare words are all <unk>, so a few sentences look the same.
  EXPECT_LE(common, 20u);
}

TEST(LanguageLab, ClaimsHoldForAnotherSeed) { expect_claims_hold(run(*find_lab("11.9"), {.seed = 5})); }

TEST(LanguageLab, SectionsOfTheEnglishEditionThatTheBookLacksAreTheirOwn) {
  EXPECT_EQ(find_lab("11.9"), find_lab("language-models"));
  EXPECT_EQ(find_lab("11.7"), find_lab("10.7"));
  EXPECT_EQ(find_lab("11.12"), nullptr);
}

}  // namespace
}  // namespace qkv::labs
