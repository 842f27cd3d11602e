// Unicode normal forms, blanks, and where each word comes from.
#include "qkv/data/normalize.h"

#include <gtest/gtest.h>

#include "support/files.h"

using namespace qkv;
using namespace qkv_test;

TEST(Normalize, LettersAndAccentsAreComposed) {
  const std::string apart = "e\u0301te\u0301", composed_form = "\u00E9t\u00E9";
  EXPECT_EQ(composed(apart, Normalization::nfc), composed_form);
  EXPECT_EQ(composed(apart, Normalization::nfkc), composed_form);
  EXPECT_EQ(composed(apart, Normalization::none), apart);
  EXPECT_EQ(composed("\uFF21\uFF22\uFF23 \uFB01n", Normalization::nfkc), "ABC fin");
  EXPECT_EQ(composed("\uFF21", Normalization::nfc), "\uFF21");
  EXPECT_EQ(composed("plain", Normalization::nfkc), "plain");
  EXPECT_EQ(composed("", Normalization::nfkc), "");
  EXPECT_EQ(composed("a\xFF\u00E9", Normalization::nfkc), "a\xFF\u00E9") << "invalid UTF-8 is kept";
}

TEST(Normalize, EveryBlankIsASpaceAndWordsKnowTheirParts) {
  const auto of = [](const char* sentence, Normalization form) { return normalized(sentence, form); };
  const NormalizedSentence s =
      of(" a\u00A0b\tc \u2003 d\u00B4e", Normalization::nfkc);  // U+00B4 is a blank and an accent
  EXPECT_EQ(s.text, "a b c d \u0301e");
  EXPECT_EQ(s.part_of_word, (std::vector<int32_t>{0, 0, 1, 3, 3}));
  EXPECT_EQ(of("a\u2003b", Normalization::nfc).text, "a b");
  EXPECT_EQ(of("a\u2003b\tc", Normalization::none).text, "a\u2003b c");
  for (const Normalization form : {Normalization::none, Normalization::nfc, Normalization::nfkc})
    for (const char* blank : {"", "  ", "\t", "\u2003", "\u3000 \u202F"}) EXPECT_EQ(of(blank, form).text, "") << blank;
}
