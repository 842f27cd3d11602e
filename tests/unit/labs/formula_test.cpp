// Formulas as plain text and as MathML.
#include "qkv/labs/formula.h"

#include <gtest/gtest.h>

#include "qkv/core/check.h"

using namespace qkv;
using namespace qkv::labs;

TEST(PlainFormula, SpacesBinarySignsAndNotUnaryOnes) {
  EXPECT_EQ(plain_formula("a-b"), "a − b");
  EXPECT_EQ(plain_formula("-10^6"), "−10⁶");
  EXPECT_EQ(plain_formula("x = -\\frac{1}{2} y"), "x = −(1/2) y");
  EXPECT_EQ(plain_formula("(-a)"), "(−a)");
  EXPECT_EQ(plain_formula("(n, a) \\times (a, b) \\to (n, b)"), "(n, a) × (a, b) → (n, b)");
}

TEST(PlainFormula, KeepsWordsApart) {
  EXPECT_EQ(plain_formula("\\log K"), "log K");
  EXPECT_EQ(plain_formula("w_v^\\top \\tanh(W_q q)"), "w_vᵀ tanh(W_q q)");
  EXPECT_EQ(plain_formula("q^\\top k_i"), "qᵀkᵢ");
}

TEST(PlainFormula, IsUnambiguous) {
  EXPECT_EQ(plain_formula("-\\frac{1}{2} (q - k_i)^2"), "−(1/2)(q − kᵢ)²");
  EXPECT_EQ(plain_formula("\\frac{K(x - x_i)}{\\sum_{j=1}^n K(x - x_j)} y_i"), "(K(x − xᵢ)/(∑ⱼ₌₁ⁿ K(x − xⱼ))) yᵢ");
  EXPECT_EQ(plain_formula("\\frac{u^2}{2 \\sigma^2}"), "u²/(2σ²)");
  EXPECT_EQ(plain_formula("\\frac{a + b}{n}"), "(a + b)/n");
  EXPECT_EQ(plain_formula("\\frac{\\partial L(x)}{\\partial \\xi_h}"), "∂L(x)/∂ξₕ");
  EXPECT_EQ(plain_formula("2 \\frac{a}{b}"), "2(a/b)");
  EXPECT_EQ(plain_formula("f(x) \\hat{p}(x)"), "f(x) p\u0302(x)");
}

TEST(PlainFormula, ScriptsOfOneFormulaLookAlike) {
  EXPECT_EQ(plain_formula("p_k = p_v"), "pₖ = pᵥ");
  EXPECT_EQ(plain_formula("p_q = p_k = p_v"), "p_q = p_k = p_v");
  EXPECT_EQ(plain_formula("W_i^q q + x_1^2"), "W_i^q q + x₁²");
  EXPECT_EQ(plain_formula("y_i + x_i^{0.8}"), "yᵢ + xᵢ^0.8");
  EXPECT_EQ(plain_formula("p_k", Scripts::marked), "p_k");
  EXPECT_EQ(scripts_of("p_k"), Scripts::small);
  EXPECT_EQ(scripts_of("p_q"), Scripts::marked);
}

TEST(MathMl, BracketsAreAsTallAsTheirContents) {
  const std::string low = mathml("(a)^2", false), high = mathml("\\exp(-\\frac{u^2}{2 \\sigma^2})", false);
  EXPECT_NE(low.find("<msup><mrow><mo form=\"prefix\" stretchy=\"false\">(</mo>"), std::string::npos)
      << "the square belongs to both brackets";
  EXPECT_NE(high.find("<mrow><mo form=\"prefix\" stretchy=\"true\">(</mo><mrow><mo form=\"prefix\">−</mo><mfrac>"),
            std::string::npos)
      << high;
  EXPECT_NE(high.find("<mo form=\"postfix\" stretchy=\"true\">)</mo></mrow>"), std::string::npos);
  EXPECT_NE(mathml("\\left( a \\right)", false).find("stretchy=\"true\">(</mo>"), std::string::npos);
  EXPECT_NE(mathml("f((a), \\sum_i b)", false)
                .find("stretchy=\"true\">(</mo><mrow><mrow><mo form=\"prefix\" stretchy=\"false\">(</mo>"),
            std::string::npos);
  EXPECT_NE(mathml("[0, 1)", false).find("<mo stretchy=\"false\">[</mo>"), std::string::npos)
      << "no partner: its own size";
}

TEST(MathMl, BothBarsOfAPairHaveTheSameHeight) {
  for (const char* tex :
       {"\\left\\lvert \\frac{a}{b} \\right\\rvert", "\\lvert \\frac{a}{b} \\rvert", "| \\frac{a}{b} |"}) {
    EXPECT_NE(mathml(tex, false).find("<mo form=\"prefix\" stretchy=\"true\">|</mo>"), std::string::npos) << tex;
    EXPECT_NE(mathml(tex, false).find("<mo form=\"postfix\" stretchy=\"true\">|</mo>"), std::string::npos) << tex;
  }
  const std::string sizes = mathml("|A| + |S|", false);
  EXPECT_NE(
      sizes.find(
          "<mi>A</mi></mrow><mo form=\"postfix\" stretchy=\"false\">|</mo></mrow><mo>+</mo><mrow><mo form=\"prefix\""),
      std::string::npos)
      << sizes;
  EXPECT_NE(mathml("P(a \\mid b) \\mid c", false).find("<mi>a</mi><mo stretchy=\"false\">|</mo><mi>b</mi>"),
            std::string::npos)
      << "given, not a size";
}

TEST(MathMl, TellsSignsFromDifferencesAndSymbolsFromOperators) {
  EXPECT_NE(mathml("a = -b", false).find("<mo form=\"prefix\">−</mo>"), std::string::npos);
  EXPECT_NE(mathml("a - b", false).find("<mo>−</mo>"), std::string::npos);
  EXPECT_NE(mathml("\\lVert k \\rVert", false).find("form=\"postfix\""), std::string::npos);
  for (const char* tex : {"0, 1, ..., 5", "0, 1, \\ldots, 5"})
    EXPECT_NE(mathml(tex, false).find("<mo>,</mo><mi>…</mi><mo>,</mo>"), std::string::npos) << tex;
  EXPECT_NE(mathml("1/h", false).find("<mo lspace=\"0\" rspace=\"0\">/</mo>"), std::string::npos);
  EXPECT_NE(mathml("a, \\quad b", false).find("<mspace width=\"1em\"/>"), std::string::npos);
}

TEST(MathMl, EquationsAreAlignedAtTheirFirstEqualsSign) {
  const std::string both = aligned_mathml({"a = b = c", "x_1 = y"});
  EXPECT_NE(both.find("<mi>a</mi></mrow></mtd><mtd style=\"text-align: left; padding-left: "
                      "0\"><mrow><mo>=</mo><mi>b</mi><mo>=</mo>"),
            std::string::npos)
      << both;
  EXPECT_NE(both.find("</msub></mrow></mtd>"), std::string::npos);
}

TEST(Formula, KeepsCharactersOfSeveralBytesWhole) {
  EXPECT_NE(mathml("x = 0, 1, …, 5", false).find("<mi>…</mi>"), std::string::npos);
  EXPECT_EQ(plain_formula("0, …, 5"), "0, …, 5");
  EXPECT_NE(mathml("\\、", false).find("<mo>、</mo>"), std::string::npos);
}

TEST(Formula, NamesAnUnknownCommand) {
  try {
    mathml("\\nosuch", false);
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[formula] unknown command \\nosuch in \\nosuch");
  }
}
