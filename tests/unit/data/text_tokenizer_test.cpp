// Texts as ids and back, whole and one token at a time.
#include "qkv/data/text_tokenizer.h"

#include <gtest/gtest.h>

#include "support/files.h"

namespace qkv {
namespace {

using Ints = std::vector<int32_t>;

TextTokenizer word_tokenizer() {
  return TextTokenizer::lines(Tokenizer::words(
      Vocabulary::build({{"the", "cat", "sleeps", ".", "the", "dog", ",", "too"}}, 1), WordRule::words));
}

TextTokenizer subword_tokenizer() {
  std::vector<std::string> lines(20, "the cat sleeps, the dog sleeps too.");
  return TextTokenizer::lines(Tokenizer::subwords(Subwords::train(lines, {.size = 30}), false));
}

std::string streamed(const TextTokenizer& tokenizer, const std::string& prompt, const Ints& ids) {
  TextStream stream(tokenizer, tokenizer.encode(prompt));
  std::string out;
  for (const int32_t id : ids) out += stream.add(id);
  return out + stream.end();
}

TEST(TextTokenizer, CharactersComeInTheOrderOfTheirCodePoints) {
  const TextTokenizer t = TextTokenizer::characters("bä\na €b");
  EXPECT_EQ(t.size(), 7);  // <unk>, line end, blank, a, b, ä, €
  EXPECT_EQ(t.encode("a b\n€"), (Ints{3, 2, 4, 1, 6}));
  EXPECT_EQ(t.decode(t.encode("a b\n€ä")), "a b\n€ä");
  EXPECT_EQ(t.encode("x"), Ints{0});
  EXPECT_EQ(t.unknown("axbyx"), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(t.line_end(), 1);
  EXPECT_EQ(TextTokenizer::characters("ab").line_end(), -1);
  EXPECT_EQ(t.tokens(t.encode("a\n €")), (std::vector<std::string>{"a", "⏎", "␣", "€"}));
}

TEST(TextTokenizer, BytesKnowEverything) {
  const TextTokenizer t = TextTokenizer::bytes();
  EXPECT_EQ(t.size(), 256);
  EXPECT_EQ(t.encode("é"), (Ints{0xC3, 0xA9}));
  EXPECT_EQ(t.decode(Ints{0xC3, 0xA9}), "é");
  EXPECT_TRUE(t.unknown("日本").empty());
  EXPECT_EQ(t.tokens(Ints{0xC3, 'a'}), (std::vector<std::string>{"\\xc3", "a"}));
}

TEST(TextTokenizer, WordsAndSubwordsKeepLineEnds) {
  const TextTokenizer words = word_tokenizer();
  EXPECT_EQ(words.decode(words.encode("The cat sleeps.\n\nThe dog, too.")), "the cat sleeps.\n\nthe dog, too.");
  EXPECT_EQ(words.encode("the cat\n").back(), words.line_end());
  EXPECT_EQ(words.unknown("the horse and the cow"), (std::vector<std::string>{"horse", "and", "cow"}));
  const TextTokenizer subwords = subword_tokenizer();
  EXPECT_EQ(subwords.decode(subwords.encode("the dog sleeps\nthe cat\n")), "the dog sleeps\nthe cat\n");
  EXPECT_TRUE(words.encode("").empty());
}

TEST(TextTokenizer, FilesGiveTheSameTokens) {
  const qkv_test::TempFolder folder;
  const std::string text = "the cat\\ sleeps\n\"é\"";
  for (const TextTokenizer& t :
       {TextTokenizer::characters(text + "\r"), TextTokenizer::bytes(), word_tokenizer(), subword_tokenizer()}) {
    t.save(folder.path());
    const TextTokenizer read = TextTokenizer::load(folder.path());
    EXPECT_EQ(read.size(), t.size());
    EXPECT_EQ(read.encode(text), t.encode(text));
    EXPECT_EQ(read.line_end(), t.line_end());
  }
}

TEST(TextTokenizer, DamagedFilesAreRefused) {
  const qkv_test::TempFolder folder;
  TextTokenizer::characters("ab").save(folder.path());
  const std::string path = folder / "vocab.text.txt";
  const auto error = [&](const std::string& bytes) {
    qkv_test::put_bytes(path, bytes);
    return qkv_test::error_of([&] { TextTokenizer::load(folder.path()); });
  };
  EXPECT_EQ(error("a\nb\n"), path + ": line 1: expected <unk>, found \"a\"");
  EXPECT_EQ(error("<unk>\na\nbc\n"), path + ": line 3: expected one character, found \"bc\"");
  EXPECT_EQ(error("<unk>\na\n\n"), path + ": line 3: expected one character, found \"\"");
  EXPECT_EQ(error("<unk>\na\na\n"), path + ": line 3: the character \"a\" is repeated");
}

TEST(TextStream, PiecesJoinToTheTextOfAllTokens) {
  const TextTokenizer words = word_tokenizer(), subwords = subword_tokenizer();
  for (const TextTokenizer& t :
       {TextTokenizer::characters("the cat sleeps.\ndog,"), TextTokenizer::bytes(), words, subwords})
    EXPECT_EQ(streamed(t, "", t.encode("the cat sleeps.\nthe dog")), "the cat sleeps.\nthe dog");
  // After a prompt, the blank between the words belongs to what follows.
  EXPECT_EQ(streamed(words, "the cat", words.encode("sleeps.")), " sleeps.");
  EXPECT_EQ(streamed(subwords, "the cat", subwords.encode("sleeps too")), " sleeps too");
  EXPECT_EQ(streamed(words, "the cat\n", words.encode("the dog")), "the dog");
}

TEST(TextStream, ACharacterIsShownWhenItIsWhole) {
  TextStream stream(TextTokenizer::bytes(), {});
  EXPECT_EQ(stream.add('a'), "a");
  EXPECT_EQ(stream.add(0xE2), "");
  EXPECT_EQ(stream.add(0x82), "");
  EXPECT_EQ(stream.add(0xAC), "€");
  EXPECT_EQ(stream.add(0xC3), "");
  EXPECT_EQ(stream.add('b'),
            "\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(stream.add(0xE2), "");
  EXPECT_EQ(stream.end(), "\xEF\xBF\xBD");
  EXPECT_EQ(valid_utf8("a\xFF"
                       "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(count_characters("aé€"), 3);
}

}  // namespace
}  // namespace qkv
