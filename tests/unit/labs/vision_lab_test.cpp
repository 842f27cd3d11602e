// Lab 11.8: claims, text in both languages, figures, and the names under which it is found.
#include "unit/labs/labs_support.h"

namespace qkv::labs {
namespace {

TEST(VisionLab, ClaimsHoldTextIsInBothLanguagesAndFiguresDraw) {
  const Lab& lab = *find_lab("vision-transformer");
  const Page page = run(lab, {});
  expect_claims_hold(page);
  expect_words_in_both_languages(page);
  expect_figures_draw(page);
  expect_renders(lab, page);
  expect_exercises_in_order(page, {"11.8.1", "11.8.2", "11.8.3"});
  EXPECT_NE(english(fact_with(page, "The book's model").measured).find("6,457,866"), std::string::npos);
}

TEST(VisionLab, ClaimsHoldForAnotherSeed) { expect_claims_hold(run(*find_lab("11.8"), {.seed = 5})); }

}  // namespace
}  // namespace qkv::labs
