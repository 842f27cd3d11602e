// The lab of long inputs: claims, text in both languages, figures, and the names under which it is found.
#include "unit/labs/labs_support.h"

namespace qkv::labs {
namespace {

TEST(LongInputsLab, ClaimsHoldTextIsInBothLanguagesAndFiguresDraw) {
  const Lab& lab = *find_lab("long-inputs");
  const Page page = run(lab, {});
  expect_claims_hold(page);
  expect_words_in_both_languages(page);
  expect_figures_draw(page);
  expect_renders(lab, page);
}

TEST(LongInputsLab, IsFoundByItsExercise) {
  EXPECT_EQ(find_lab("10.7.4"), find_lab("long-inputs"));
  EXPECT_EQ(find_lab("11.7.4"), find_lab("long-inputs"));
}

}  // namespace
}  // namespace qkv::labs
