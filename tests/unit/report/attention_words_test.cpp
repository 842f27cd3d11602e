// Maps between words from maps between tokens.
#include "qkv/report/attention_words.h"

#include <gtest/gtest.h>

namespace qkv::report {
namespace {

const TokenWords kThree{{0, 1, 1, 2}, {"<s>", "asleep", "."}};

TEST(AttentionWords, KeysAreSummedAndQueriesAveraged) {
  const Tensor maps({1, 1, 4, 4}, {0.1f, 0.2f, 0.3f, 0.4f,  //
                                   0.4f, 0.3f, 0.2f, 0.1f,  //
                                   0.0f, 0.5f, 0.5f, 0.0f,  //
                                   1.0f, 0.0f, 0.0f, 0.0f});
  const Tensor found = between_words(maps, kThree, kThree);
  ASSERT_EQ(found.shape(), (Shape{1, 1, 3, 3}));
  const float wanted[] = {0.1f, 0.5f, 0.4f, 0.2f, 0.75f, 0.05f, 1, 0, 0};
  for (int i = 0; i < 9; ++i) EXPECT_NEAR(found.ptr()[i], wanted[i], 1e-6) << i;
}

TEST(AttentionWords, MarksInTokensSeparateWords) {
  const TokenWords pieces = token_words({"▁The", "▁c", "at", ".", "</s>"});
  EXPECT_EQ(pieces.words, (std::vector<std::string>{"The", "cat.", "</s>"}));
  const TokenWords letters = token_words({"a", "b", "␣", "c", "⏎"});
  EXPECT_EQ(letters.words, (std::vector<std::string>{"ab", "␣", "c", "⏎"}));
  EXPECT_EQ(letters.word, (std::vector<int32_t>{0, 0, 1, 2, 3}));
  EXPECT_EQ(token_words({"the", "cat"}).words, (std::vector<std::string>{"the", "cat"}));
}

TEST(AttentionWords, PartsOfASentenceAreItsBlankSeparatedWords) {
  const TokenWords found = token_words("the cats", {0, 1, 1}, {"<bos>", "the", "cat", "s", "<eos>"}, 1);
  EXPECT_EQ(found.words, (std::vector<std::string>{"<bos>", "the", "cats", "<eos>"}));
  EXPECT_EQ(found.word, (std::vector<int32_t>{0, 1, 2, 2, 3}));
}

}  // namespace
}  // namespace qkv::report
