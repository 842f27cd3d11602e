// Formulas as plain text and as MathML.
#include "qkv/labs/formula.h"

#include <gtest/gtest.h>

#include "qkv/core/check.h"

using namespace qkv;
using namespace qkv::labs;

TEST(PlainFormula, SpacesBinarySignsAndNotUnaryOnes) {
  EXPECT_EQ(plain_formula("a-b"), "a − b");
  EXPECT_EQ(plain_formula("-10^6"), "−10⁶");
  EXPECT_EQ(plain_formula("x = -\\frac{1}{2} y"), "x = −1/2y");
  EXPECT_EQ(plain_formula("(-a)"), "(−a)");
  EXPECT_EQ(plain_formula("(n, a) \\times (a, b) \\to (n, b)"), "(n, a) × (a, b) → (n, b)");
}

TEST(PlainFormula, KeepsWordsApart) {
  EXPECT_EQ(plain_formula("\\log K"), "log K");
  EXPECT_EQ(plain_formula("w_v^\\top \\tanh(W_q q)"), "w_vᵀ tanh(W_q q)");
  EXPECT_EQ(plain_formula("q^\\top k_i"), "qᵀkᵢ");
}

TEST(MathMl, BracketsKeepTheirSizeUnlessLeftAndRightAreSaid) {
  EXPECT_NE(mathml("(a)^2", false).find("<mo stretchy=\"false\">(</mo>"), std::string::npos);
  EXPECT_NE(mathml("\\left( \\frac{a}{b} \\right)", false).find("<mo>(</mo>"), std::string::npos);
}

TEST(MathMl, TellsSignsFromDifferencesAndBarsFromEachOther) {
  EXPECT_NE(mathml("a = -b", false).find("<mo form=\"prefix\">−</mo>"), std::string::npos);
  EXPECT_NE(mathml("a - b", false).find("<mo>−</mo>"), std::string::npos);
  EXPECT_NE(mathml("\\lVert k \\rVert", false).find("form=\"postfix\""), std::string::npos);
}

TEST(Formula, KeepsCharactersOfSeveralBytesWhole) {
  EXPECT_NE(mathml("x = 0, 1, …, 5", false).find("<mo>…</mo>"), std::string::npos);
  EXPECT_EQ(plain_formula("0, …, 5"), "0, …, 5");
  EXPECT_NE(mathml("\\、", false).find("<mo>、</mo>"), std::string::npos);
}

TEST(Formula, NamesWhatItDoesNotKnow) {
  try {
    mathml("\\nosuch", false);
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[formula] unknown command \\nosuch in \\nosuch");
  }
}
