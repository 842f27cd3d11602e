// Lab 11.9: claims, text in both languages, figures, and the names under which it is found.
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
}

TEST(LanguageLab, ClaimsHoldForAnotherSeed) { expect_claims_hold(run(*find_lab("11.9"), {.seed = 5})); }

TEST(LanguageLab, SectionsOfTheEnglishEditionThatTheBookLacksAreTheirOwn) {
  EXPECT_EQ(find_lab("11.9"), find_lab("language-models"));
  EXPECT_EQ(find_lab("11.7"), find_lab("10.7"));
  EXPECT_EQ(find_lab("11.12"), nullptr);
}

}  // namespace
}  // namespace qkv::labs
