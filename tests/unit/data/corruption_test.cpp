// Hidden tokens and spans: as many as asked for, everywhere, and nothing lost.
#include "qkv/data/corruption.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace qkv {
namespace {

std::vector<int32_t> numbers(int32_t count) {
  std::vector<int32_t> out(static_cast<size_t>(count));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

TEST(Corruption, HidesExactlyAsManyTokensAsAsked) {
  const std::vector<int32_t> text = numbers(40);
  double masks = 0, random = 0, kept = 0;
  std::vector<int> hidden(40, 0);
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const MaskedTokens m = mask_tokens(text, {.hidden = 6, .mask = 40, .vocabulary = 40}, Rng(seed));
    int asked = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      if (m.wanted[i] == kNotAsked) {
        EXPECT_EQ(m.read[i], text[i]);
        continue;
      }
      ++asked;
      ++hidden[i];
      EXPECT_EQ(m.wanted[i], text[i]);
      (m.read[i] == 40 ? masks : m.read[i] == text[i] ? kept : random) += 1;
    }
    EXPECT_EQ(asked, 6);
  }
  // 80, 10 and 10 percent; a random token is the same in one case of 40.
  EXPECT_NEAR(masks / 3000, 0.8, 0.025);
  EXPECT_NEAR(random / 3000, 0.1, 0.02);
  EXPECT_NEAR(kept / 3000, 0.1, 0.02);
  for (const int count : hidden) EXPECT_NEAR(count, 75, 35);
  const MaskedTokens again = mask_tokens(text, {.hidden = 6, .mask = 40, .vocabulary = 40}, Rng(7));
  EXPECT_EQ(again.read, mask_tokens(text, {.hidden = 6, .mask = 40, .vocabulary = 40}, Rng(7)).read);
}

TEST(Corruption, SpansAndTheRestTogetherAreTheText) {
  const std::vector<int32_t> text = numbers(20);
  std::vector<int> hidden(20, 0);
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const CutSpans cut = cut_spans(text, {.hidden = 6, .spans = 3, .first_mark = 100}, Rng(seed));
    ASSERT_EQ(cut.read.size(), 20u - 6 + 3);
    ASSERT_EQ(cut.written.size(), 6u + 3 + 1);
    EXPECT_EQ(cut.written.front(), 100);
    EXPECT_EQ(cut.written.back(), 103);
    EXPECT_LT(cut.read.front(), 100);
    // Each mark of the rest is replaced by its span.
    std::vector<int32_t> whole;
    for (const int32_t id : cut.read) {
      if (id < 100) {
        whole.push_back(id);
        continue;
      }
      const auto mark = std::ranges::find(cut.written, id);
      for (auto at = mark + 1; *at < 100; ++at) {
        whole.push_back(*at);
        ++hidden[static_cast<size_t>(*at)];
      }
    }
    EXPECT_EQ(whole, text);
  }
  EXPECT_EQ(hidden[0], 0);
  for (size_t i = 1; i < hidden.size(); ++i) EXPECT_GT(hidden[i], 20) << i;
  // A single span may be anywhere, too.
  std::vector<int> first(20, 0);
  for (uint64_t seed = 0; seed < 600; ++seed)
    ++first[static_cast<size_t>(cut_spans(text, {.hidden = 2, .spans = 1, .first_mark = 100}, Rng(seed)).written[1])];
  for (size_t i = 1; i < 19; ++i) EXPECT_GT(first[i], 10) << i;
}

TEST(Corruption, TheSmallestTextHasOneHiddenToken) {
  const CutSpans cut = cut_spans(numbers(2), {.hidden = 1, .spans = 1, .first_mark = 9}, Rng(1));
  EXPECT_EQ(cut.read, (std::vector<int32_t>{0, 9}));
  EXPECT_EQ(cut.written, (std::vector<int32_t>{9, 1, 10}));
}

}  // namespace
}  // namespace qkv
