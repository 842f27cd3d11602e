// Lab 11.9: claims, text in both languages, figures, and the names under which it is found.
#include "qkv/labs/language.h"

#include <map>

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

TEST(LanguageLab, HalfOfTheSubjectsAreSeveralAndTheVerbIsCutOff) {
  const language::WordText text = language::read_words(1);
  const language::Subjects all = language::subjects(text, text.test);
  ASSERT_GE(all.beginnings.size(), 300u);
  const auto id = [&](const char* word) { return text.tokenizer.encode(word).front(); };
  std::map<std::vector<int32_t>, int32_t> labels;
  for (size_t i = 0; i < all.beginnings.size(); ++i) {
    const std::vector<int32_t>& words = all.beginnings[i];
    EXPECT_EQ(all.several[i], static_cast<int32_t>(i % 2));
    EXPECT_GE(words.size(), 2u);
    EXPECT_LE(std::ssize(words) + 2, language::kContext);
    for (const int32_t word : words) EXPECT_TRUE(word != id("is") && word != id("are"));
    EXPECT_EQ(labels.emplace(words, all.several[i]).first->second, all.several[i]) << "ambiguous";
  }
  const language::Subjects some = all.part(3, 4);
  EXPECT_EQ(some.beginnings.front(), all.beginnings[3]);
  EXPECT_EQ(some.several, (std::vector<int32_t>{1, 0, 1, 0}));
}

TEST(LanguageLab, NoTestOrLabelledSentenceIsAmongTheTextThatModelsRead) {
  const language::WordText text = language::read_words(0);
  std::set<std::vector<int32_t>> read;
  for (auto& s : text.sentences(text.train)) read.insert(s);
  size_t common = 0;
  for (const auto& part : {text.test, text.labelled})
    for (const auto& s : text.sentences(part)) common += read.contains(s);
  EXPECT_EQ(text.sentences(text.test).size(), 1500u);
  EXPECT_EQ(text.sentences(text.labelled).size(), 6500u);
  // Rare words are all <unk>, so a few sentences look the same.
  EXPECT_LE(common, 80u);
}

TEST(LanguageLab, ClaimsHoldForAnotherSeed) { expect_claims_hold(run(*find_lab("11.9"), {.seed = 5})); }

TEST(LanguageLab, SectionsOfTheEnglishEditionThatTheBookLacksAreTheirOwn) {
  EXPECT_EQ(find_lab("11.9"), find_lab("language-models"));
  EXPECT_EQ(find_lab("11.7"), find_lab("10.7"));
  EXPECT_EQ(find_lab("11.12"), nullptr);
}

}  // namespace
}  // namespace qkv::labs
