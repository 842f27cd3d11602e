// Alignments from any map at either step, and the choice of a map by the information of its links.
#include "qkv/tasks/translation/attention_alignment.h"

#include <gtest/gtest.h>

#include "qkv/core/check.h"

namespace qkv {
namespace {

Tokenizers tokenizers_of(const std::vector<std::string>& source, const std::vector<std::string>& target) {
  const auto tokenizer = [](const std::vector<std::string>& words) {
    std::vector<std::vector<std::string>> lines{words};
    return Tokenizer::words(Vocabulary::build(lines, 1), WordRule::spaces);
  };
  return {tokenizer(source), tokenizer(target)};
}

// (steps, maps, T): map 0 attends to source word t while it writes target word t; map 1 while it reads it.
ForcedTranslation diagonal() {
  ForcedTranslation out{{4, 5, 6, 3}, {4, 5, 6, 3}, {}};
  out.forced.attention = zeros({4, 2, 4});
  float* w = out.forced.attention.mutable_ptr();
  for (int64_t t = 0; t < 4; ++t) w[(t * 2 + 0) * 4 + t] = 1;
  w[1 * 4 + 3] = 1;
  for (int64_t t = 1; t < 4; ++t) w[(t * 2 + 1) * 4 + t - 1] = 1;
  return out;
}

TEST(ReadAlignments, TakesEveryMapAtTheStepThatWritesOrReadsTheWord) {
  const Tokenizers tokenizers = tokenizers_of({"a", "b", "c"}, {"x", "y", "z"});
  const SentencePairs pairs{{"a b c", ""}, {"x y z", "x"}};
  const std::vector<ForcedTranslation> forced{diagonal(), {}};
  const std::vector<AlignmentReading> readings = all_readings(2);
  ASSERT_EQ(readings.size(), 4u);
  const auto links = read_alignments(tokenizers, pairs, forced, readings, LinkRule::largest);
  ASSERT_EQ(links.size(), 4u);
  EXPECT_EQ(pharaoh(links[0][0]), "0-0 1-1 2-2");
  EXPECT_EQ(pharaoh(links[1][0]), "0-2 1-0 2-1");  // one step late: z is left with a step that attends only to <eos>
  EXPECT_EQ(pharaoh(links[2][0]), "0-0 0-1 1-2");
  EXPECT_EQ(pharaoh(links[3][0]), "0-0 1-1 2-2");
  for (const auto& of_reading : links) EXPECT_TRUE(of_reading[1].empty());
}

TEST(ReadAlignments, RefusesAMapThatIsNotThere) {
  const Tokenizers tokenizers = tokenizers_of({"a", "b", "c"}, {"x", "y", "z"});
  const std::vector<ForcedTranslation> forced{diagonal()};
  const AlignmentReading third{2, 0};
  try {
    read_alignments(tokenizers, {{"a b c"}, {"x y z"}}, forced, std::span(&third, 1), LinkRule::largest);
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[read_alignments] map 2 of 2");
  }
}

TEST(LinkInformation, IsLargestForLinksThatHoldEverywhere) {
  // Reversed: word i of three belongs to word 2 - i.
  SentencePairs pairs;
  const std::vector<std::string> in{"a", "b", "c", "d"}, out{"x", "y", "z", "w"};
  for (size_t i = 0; i < 64; ++i) {
    const size_t p = i % 4, q = i / 4 % 4, r = i / 16;
    pairs.source.push_back(in[p] + " " + in[q] + " " + in[r]);
    pairs.target.push_back(out[r] + " " + out[q] + " " + out[p]);
  }
  const auto all = [&](const Alignment& links) { return std::vector<Alignment>(pairs.source.size(), links); };
  const double right = link_information(pairs, all({{0, 2}, {1, 1}, {2, 0}}));
  const double straight = link_information(pairs, all({{0, 0}, {1, 1}, {2, 2}}));
  const double one_word = link_information(pairs, all({{0, 0}, {0, 1}, {0, 2}}));
  EXPECT_GT(right, 1.2);  // log 4 is 1.39
  EXPECT_LT(straight, 0.5);
  EXPECT_LT(one_word, 0.5);
  EXPECT_EQ(link_information(pairs, all({})), 0);
}

// Links count blank-separated words: a word may consist of a space character that is not a blank.
TEST(LinkInformation, CountsTheWordsThatLinksCount) {
  const SentencePairs pairs{{"a \xC2\xA0 b", "\v"}, {"x y \xE3\x80\x80", "z"}};
  EXPECT_TRUE(std::isfinite(link_information(pairs, std::vector<Alignment>{{{0, 0}, {1, 2}, {2, 1}}, {{0, 0}}})));
}

}  // namespace
}  // namespace qkv
