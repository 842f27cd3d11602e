// Tokenizers: both kinds give ids, sentences, tokens and words back.
#include "qkv/data/tokenizer.h"

#include <gtest/gtest.h>

#include "support/files.h"

using namespace qkv;
using namespace qkv_test;

namespace {

using IdList = std::vector<int32_t>;

Vocabulary vocabulary() { return Vocabulary::build({{"go", ".", "i", "'m", "home", "i'm"}}, 1); }  // 4 5 6 7 8 9

Subwords model() {
  const std::vector<std::string> sentences(20, "the walker walks home. a talker talks. the worker works at home.");
  return Subwords::train(sentences, {.size = 40});
}

}  // namespace

TEST(Tokenizer, WordsBecomeIdsByTheRule) {
  const Tokenizer book = Tokenizer::words(vocabulary(), WordRule::book);
  EXPECT_EQ(book.encode("Go."), (IdList{4, 5}));
  EXPECT_EQ(book.encode("I'm  home\u202F."), (IdList{9, 8, 5}));
  EXPECT_EQ(Tokenizer::words(vocabulary(), WordRule::words).encode("I'm home."), (IdList{6, 7, 8, 5}));
  EXPECT_EQ(Tokenizer::words(vocabulary(), WordRule::spaces).encode("Go ."), (IdList{0, 5}));
  EXPECT_EQ(Tokenizer::words(vocabulary(), WordRule::lower).encode("Go ."), (IdList{4, 5}));
  EXPECT_TRUE(book.encode("").empty());
  EXPECT_EQ(book.size(), 10);
  EXPECT_EQ(book.vocabulary()->id("home"), 8);
}

TEST(Tokenizer, NoTextSpellsASpecial) {
  EXPECT_EQ(Tokenizer::words(vocabulary(), WordRule::book).encode("<eos> <pad> <bos> <unk> go"), (IdList{0, 0, 0, 0, 4}));
}

TEST(Tokenizer, DecodingLeavesSpecialsOutButShowsTheUnknown) {
  const IdList ids = {2, 6, 7, 0, 5, 3, 1, 1};
  EXPECT_EQ(Tokenizer::words(vocabulary(), WordRule::book).decode(ids), "i 'm <unk> .");
  EXPECT_EQ(Tokenizer::words(vocabulary(), WordRule::words).decode(ids), "i'm <unk>.");
  EXPECT_EQ(Tokenizer::words(vocabulary(), WordRule::book).tokens(ids),
            (std::vector<std::string>{"<bos>", "i", "'m", "<unk>", ".", "<eos>", "<pad>", "<pad>"}));
  EXPECT_EQ(error_of([] { Tokenizer::words(vocabulary(), WordRule::book).decode(IdList{10}); }),
            "[vocabulary] no token has the number 10, expected 0 to 9");
}

TEST(Tokenizer, TokensKnowTheirWords) {
  const std::string sentence = " I'm  home. Go.";
  EXPECT_EQ(Tokenizer::words(vocabulary(), WordRule::words).word_of_token(sentence), (IdList{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(Tokenizer::words(vocabulary(), WordRule::book).word_of_token(sentence), (IdList{0, 1, 1, 2, 2}));
  EXPECT_EQ(Tokenizer::words(vocabulary(), WordRule::spaces).word_of_token(sentence), (IdList{0, 1, 2}));
}

TEST(Tokenizer, SubwordsKnowTheirWords) {
  const Tokenizer t = Tokenizer::subwords(model(), true);
  for (const std::string sentence : {"The Walker talks worker.", "  at   home ", "works"}) {
    const IdList words = t.word_of_token(sentence);
    const std::vector<std::string> tokens = t.tokens(t.encode(sentence));
    ASSERT_EQ(words.size(), tokens.size());
    // Joined by word, the pieces spell the words again.
    std::vector<std::string> spelled(split_blanks(sentence).size());
    for (size_t i = 0; i < tokens.size(); ++i) {
      const bool opens = tokens[i].starts_with("▁");
      if (opens && i > 0) { EXPECT_EQ(words[i], words[i - 1] + 1) << sentence; }
      spelled.at(static_cast<size_t>(words[i])) += opens ? tokens[i].substr(3) : tokens[i];
    }
    const std::string lower = lowercase(sentence);
    const auto expected = split_blanks(lower);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(spelled[i], expected[i]);
  }
  EXPECT_EQ(t.word_of_token("词 Ü home").size(), t.encode("词 Ü home").size());
  EXPECT_EQ(t.word_of_token("词 Ü home").front(), 0);
  EXPECT_EQ(t.word_of_token("词 Ü home").back(), 2);
}

TEST(Tokenizer, SubwordsDecodeWithoutSpecials) {
  const Tokenizer cased = Tokenizer::subwords(model(), false), lower = Tokenizer::subwords(model(), true);
  IdList ids = lower.encode("The walker works at HOME.");
  EXPECT_NE(cased.encode("The walker works at HOME."), ids);
  ids.insert(ids.begin(), lower.bos());
  ids.push_back(lower.eos());
  ids.push_back(lower.pad());
  EXPECT_EQ(lower.decode(ids), "the walker works at home.");
  EXPECT_EQ(lower.tokens(ids).front(), "<bos>");
  EXPECT_EQ(lower.vocabulary(), nullptr);
}

TEST(Tokenizer, IsTheSameAfterSavingAndLoading) {
  const TempFolder folder;
  const std::string sentence = "I'm home. The WALKER walks";
  for (const WordRule rule : {WordRule::book, WordRule::spaces, WordRule::lower, WordRule::words}) {
    const Tokenizer t = Tokenizer::words(vocabulary(), rule);
    t.save(folder.path(), "en");
    const Tokenizer again = Tokenizer::load(folder.path(), "en");
    EXPECT_EQ(again.encode(sentence), t.encode(sentence));
    EXPECT_EQ(again.decode(t.encode(sentence)), t.decode(t.encode(sentence)));
  }
  for (const bool lower : {false, true}) {
    const Tokenizer t = Tokenizer::subwords(model(), lower);
    t.save(folder.path(), "fr");
    EXPECT_EQ(Tokenizer::load(folder.path(), "fr").encode(sentence), t.encode(sentence));
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "vocab.en.txt"));
  EXPECT_TRUE(std::filesystem::exists(folder / "fr.model"));
  EXPECT_EQ(file_bytes(folder / "tokenizer.fr.txt"), "subwords lower\n");
}

TEST(Tokenizer, LoadingNamesWhatIsWrong) {
  const TempFolder folder;
  const std::string path = folder / "tokenizer.en.txt";
  EXPECT_EQ(error_of([&] { Tokenizer::load(folder.path(), "en"); }), "cannot open " + path + ": No such file or directory");
  put_bytes(path, "letters\n");
  EXPECT_EQ(error_of([&] { Tokenizer::load(folder.path(), "en"); }),
            path + ": line 1: expected \"words book|spaces|lower|words\" or \"subwords lower|cased\" and nothing more, found \"letters\"");
  put_bytes(path, "words book\n");
  EXPECT_EQ(error_of([&] { Tokenizer::load(folder.path(), "en"); }),
            "cannot open " + (folder / "vocab.en.txt") + ": No such file or directory");
}
