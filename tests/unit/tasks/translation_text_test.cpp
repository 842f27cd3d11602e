// Text for translation: whether it is tokenised.
#include <gtest/gtest.h>

#include "qkv/tasks/translation/data.h"

using namespace qkv;

namespace {

TEST(TranslationText, CountsSentencesWithPunctuationAttachedToAWord) {
  const std::vector<std::string> plain = {"Go, now!", "Wait", "Who is there?", "我喜欢猫。"};
  const AttachedPunctuation found = attached_punctuation(plain);
  EXPECT_EQ(found.share, 0.75);
  EXPECT_EQ(found.example, "Go,");
  const std::vector<std::string> cut = {"go , now !", "\" wait ... \"", "who is there ?", "j'ai perdu .", ""};
  EXPECT_EQ(attached_punctuation(cut).share, 0);
  EXPECT_EQ(attached_punctuation({}).share, 0);
}

}  // namespace
