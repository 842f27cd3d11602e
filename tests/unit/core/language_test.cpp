// Texts with fields, in two languages.
#include "qkv/core/language.h"

#include <gtest/gtest.h>

#include "qkv/core/catalogue.h"
#include "qkv/core/check.h"
#include "qkv/core/shape.h"

namespace qkv {
namespace {

std::string english(const Text& text) { return text.in(Language::en); }

TEST(Language, AFieldIsFilledByTheValueOfItsName) {
  EXPECT_EQ(english(tr("{rows} rows in {file}", "rows"_a = 3, "file"_a = "a.txt")), "3 rows in a.txt");
}

TEST(Language, AFieldMayHaveAFormatAndMayBeUsedTwice) {
  EXPECT_EQ(english(tr("{share:.2f}, again {share:6.1f}", "share"_a = 0.126)), "0.13, again    0.1");
}

TEST(Language, ValuesAreWrittenByTheirTypes) {
  EXPECT_EQ(english(tr("{a} {b} {c} {d} {e}", "a"_a = 0.1f, "b"_a = true, "c"_a = 'x', "d"_a = Shape{2, 3},
                       "e"_a = UINT64_MAX)),
            "0.1 true x (2, 3) 18446744073709551615");
}

TEST(Language, BracesThatAreNotTheNameOfAValueStay) {
  EXPECT_EQ(english(tr("$\\sqrt{d}$ of {count}, {", "count"_a = 2)), "$\\sqrt{d}$ of 2, {");
  EXPECT_EQ(english(tr("{count")), "{count");
}

TEST(Language, AValueIsNotReadAsAPattern) {
  EXPECT_EQ(english(tr("{a} {b}", "a"_a = "{b}", "b"_a = "{a}")), "{b} {a}");
}

TEST(Language, VerbatimTextIsTheSameInEveryLanguage) {
  EXPECT_EQ(verbatim("{x} %s").in(Language::zh), "{x} %s");
  EXPECT_TRUE(Text().empty());
  EXPECT_EQ(Text().in(Language::zh), "");
}

TEST(Language, ATextInsideATextIsSaidInTheSameLanguage) {
  add_catalogue(Language::zh,
                "msgid \"{n} test rows\"\nmsgstr \"{n} 行\"\n\nmsgid \"test: {what}\"\nmsgstr \"试：{what}\"\n");
  const Text inner = tr("{n} test rows", "n"_a = 5), outer = tr("test: {what}", "what"_a = inner);
  EXPECT_EQ(outer.in(Language::en), "test: 5 test rows");
  EXPECT_EQ(outer.in(Language::zh), "试：5 行");
}

TEST(Language, WhatTheCatalogueDoesNotHaveIsSaidInEnglish) {
  EXPECT_EQ(tr("a sentence that no catalogue has: {n}", "n"_a = 1).in(Language::zh),
            "a sentence that no catalogue has: 1");
}

TEST(Language, AnErrorHasItsLineInBothLanguages) {
  add_catalogue(Language::zh, "msgid \"{file}: no test in it\"\nmsgstr \"{file}：没有测试\"\n");
  try {
    require(true, "{file}: no test in it", "file"_a = "a");
    require(false, "{file}: no test in it", "file"_a = "b");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "b: no test in it");
    EXPECT_EQ(error.message().in(Language::zh), "b：没有测试");
    EXPECT_TRUE(error.hint().empty());
  }
}

}  // namespace
}  // namespace qkv
