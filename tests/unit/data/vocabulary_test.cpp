// Vocabularies: order, minimum counts, files.
#include "qkv/data/vocabulary.h"

#include <gtest/gtest.h>

#include "support/files.h"

using namespace qkv;
using namespace qkv_test;

namespace {

const std::vector<std::vector<std::string>> kLines = {{"b", "a", "."}, {"c", "a", "."}, {"d", "b", ".", "e"}};

std::vector<std::string> all_tokens(const Vocabulary& v) {
  std::vector<std::string> out;
  for (int32_t i = 0; i < v.size(); ++i) out.push_back(v.token(i));
  return out;
}

using Tokens = std::vector<std::string>;

}  // namespace

TEST(Vocabulary, OrdersByCountAndTiesByFirstAppearance) {
  EXPECT_EQ(all_tokens(Vocabulary::build(kLines, 1)),
            (Tokens{"<unk>", "<pad>", "<bos>", "<eos>", ".", "b", "a", "c", "d", "e"}));
  EXPECT_EQ(all_tokens(Vocabulary::build(kLines, 2)), (Tokens{"<unk>", "<pad>", "<bos>", "<eos>", ".", "b", "a"}));
  EXPECT_EQ(all_tokens(Vocabulary::build(kLines, 4)), (Tokens{"<unk>", "<pad>", "<bos>", "<eos>"}));
  EXPECT_EQ(error_of([] { Vocabulary::build(kLines, 0); }), "[vocabulary] the minimum count is 0, expected at least 1");
}

TEST(Vocabulary, SpecialsInTheTextAreNotCountedTwice) {
  EXPECT_EQ(all_tokens(Vocabulary::build({{"<eos>", "x", "<unk>", "<pad>"}}, 1)),
            (Tokens{"<unk>", "<pad>", "<bos>", "<eos>", "x"}));
}

TEST(Vocabulary, TheEnglishEditionSortsByCodePoint) {
  const Vocabulary v = Vocabulary::build(
      {{"é", "z", "!", "é", "z", "!", "<eos>", "<eos>", "😀", "😀", "\uFF01", "\uFF01", "once"}}, 2, Edition::en);
  EXPECT_EQ(all_tokens(v), (Tokens{"!", "<eos>", "<pad>", "<unk>", "z", "é", "\uFF01", "😀"}));
  EXPECT_EQ(v.eos(), 1);
  EXPECT_EQ(v.pad(), 2);
  EXPECT_EQ(v.unk(), 3);
  EXPECT_EQ(v.bos(), -1);
  EXPECT_EQ(v.id("once"), 3);
}

TEST(Vocabulary, LooksUpBothWays) {
  const Vocabulary v = Vocabulary::build(kLines, 2);
  EXPECT_EQ(v.id("."), 4);
  EXPECT_EQ(v.id("nowhere"), v.unk());
  EXPECT_TRUE(v.contains("a"));
  EXPECT_FALSE(v.contains("c"));
  EXPECT_EQ((std::vector<int32_t>{v.unk(), v.pad(), v.bos(), v.eos()}), (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(error_of([&] { v.token(7); }), "[vocabulary] no token has the number 7, expected 0 to 6");
  EXPECT_EQ(error_of([&] { v.token(-1); }), "[vocabulary] no token has the number -1, expected 0 to 6");
}

TEST(Vocabulary, IsTheSameAfterSavingAndLoading) {
  const TempFolder folder;
  const std::string path = folder / "v.txt";
  for (const Edition edition : {Edition::zh, Edition::en}) {
    const Vocabulary v = Vocabulary::build({{"é", "é", "", "", "j’ai", "j’ai"}}, 2, edition);
    v.save(path);
    const Vocabulary again = Vocabulary::load(path);
    EXPECT_EQ(again, v);
    EXPECT_EQ(again.eos(), v.eos());
    EXPECT_EQ(again.id("j’ai"), v.id("j’ai"));
  }
  EXPECT_EQ(file_bytes(path), "\n<eos>\n<pad>\n<unk>\nj’ai\né\n");
  EXPECT_EQ(error_of([&] { Vocabulary::build({{"a\nb"}}, 1).save(path); }),
            path + ": token 4 contains a line end and cannot be written");
}

TEST(Vocabulary, RefusesFilesThatAreNotVocabularies) {
  const TempFolder folder;
  const std::string path = folder / "v.txt";
  const auto refused = [&](const std::string& bytes) {
    put_bytes(path, bytes);
    return error_of([&] { Vocabulary::load(path); });
  };
  EXPECT_EQ(refused("<unk>\n<pad>\n<eos>\nb\na\n"), path + ": the special token <bos> is missing from its 5 lines");
  EXPECT_EQ(refused("<pad>\n<bos>\n<eos>\n"), path + ": the special token <unk> is missing from its 3 lines");
  EXPECT_EQ(refused("a\nb\n"), path + ": the special token <unk> is missing from its 2 lines");
  EXPECT_EQ(refused("<unk>\n<pad>\n<bos>\n<eos>\na\nb\na\n"), path + ": line 7: the token \"a\" is already in line 5");
  EXPECT_EQ(refused("<unk>\n<pad>\n<bos>\n<eos>\n\xFF\n"), path + ": line 5: not UTF-8: byte 0xff at offset 24");
  EXPECT_EQ(refused(""), path + ": is empty, expected text");
  EXPECT_EQ(refused("<unk>\r\n<pad>\r\n<bos>\r\n<eos>\r\na\r\n"), "no error");
}

TEST(TokenCounts, ManyTokensKeepTheirNumbersAndOutliveTheirText) {
  TokenCounts counts;
  for (int round = 0; round < 3; ++round)
    for (int i = 0; i < 20'000; ++i) {
      const std::string token = i == 7 ? std::string(100'000, 'x') : text("token ", i);
      EXPECT_EQ(counts.add(token, i % 2 + 1), static_cast<size_t>(i));
    }
  ASSERT_EQ(counts.distinct(), 20'000u);
  EXPECT_EQ(counts.token(19'999), "token 19999");
  EXPECT_EQ(counts.token(7).size(), 100'000u);
  const Vocabulary v = Vocabulary::build(counts, 4);  // odd numbers occur 6 times, even ones 3
  EXPECT_EQ(v.size(), 10'004);
  EXPECT_EQ(v.token(4), "token 1");
  EXPECT_EQ(v.token(10'003), "token 19999");
}
