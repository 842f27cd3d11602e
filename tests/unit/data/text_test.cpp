// UTF-8, lower case, the book's preprocessing and the rules that cut words.
#include "qkv/data/text.h"

#include <gtest/gtest.h>

#include "qkv/data/corpus.h"
#include "support/data.h"
#include "support/files.h"

using namespace qkv;
using namespace qkv_test;

namespace {

std::vector<std::string> words(std::string_view sentence, WordRule rule) {
  std::vector<std::string> out;
  for (const Word& word : split_words(sentence, rule)) out.push_back(word.text);
  return out;
}

using Words = std::vector<std::string>;

}  // namespace

TEST(Text, InvalidUtf8IsFoundAtItsOffset) {
  const size_t none = std::string_view::npos;
  EXPECT_EQ(find_invalid_utf8(""), none);
  EXPECT_EQ(find_invalid_utf8("plain, and ça là 词 😀 and more plain text"), none);
  EXPECT_EQ(find_invalid_utf8("12345678\xFF"), 8u);
  EXPECT_EQ(find_invalid_utf8("ab\x80"), 2u);              // a lone continuation byte
  EXPECT_EQ(find_invalid_utf8("abc\xC3"), 3u);             // cut off
  EXPECT_EQ(find_invalid_utf8("\xC0\xAF"), 0u);            // an overlong form
  EXPECT_EQ(find_invalid_utf8("x\xED\xA0\x80"), 1u);       // a surrogate
  EXPECT_EQ(find_invalid_utf8("xy\xF4\x90\x80\x80"), 2u);  // beyond U+10FFFF
  EXPECT_EQ(find_invalid_utf8(std::string_view("a\0b", 3)), none);
}

TEST(Text, InvalidUtf8NamesFileLineAndOffset) {
  EXPECT_EQ(error_of([] { check_utf8("ok\nça\nb\xE9te\n", verbatim("f.txt")); }),
            "f.txt: line 3: not UTF-8: byte 0xe9 at offset 8");
  EXPECT_EQ(error_of([] { check_utf8("ok\nça\n", verbatim("f.txt")); }), "no error");
}

TEST(Text, LowerCaseIsUnicodes) {
  EXPECT_EQ(lowercase("Ça ÉTÀIT Ê Œuf ÄÖÜ ẞ Ω Ж ABC xyz [@`{"), "ça étàit ê œuf äöü ß ω ж abc xyz [@`{");
  EXPECT_EQ(lowercase("A\xFF"
                      "B"),
            "a\xFF"
            "b");
  EXPECT_EQ(lowercase(""), "");
}

TEST(Text, PreprocessIsTheBooksRule) {
  EXPECT_EQ(preprocess_nmt("Go.\tVa\u202F!\nHi.\tSalut\u00A0!\nWow!\tÇa alors\u202F!"),
            "go .\tva !\nhi .\tsalut !\nwow !\tça alors !");
  EXPECT_EQ(preprocess_nmt("I'm a D.J. , really?!"), "i'm a d .j . , really ? !");
  EXPECT_EQ(preprocess_nmt("Est-ce; oui: j’ai, j'ai..."), "est-ce; oui: j’ai , j'ai . . .");
  EXPECT_EQ(preprocess_nmt("?a\t!b\n.c"),
            "?a\t !b\n .c");  // the first character gets no space, one after a tab or a line end does
  EXPECT_EQ(preprocess_nmt("À É Ê Œ"), "à é ê œ");
  EXPECT_EQ(preprocess_nmt("a\u202F.\u00A0b  !"), "a . b  !");
  EXPECT_EQ(preprocess_nmt(""), "");
}

TEST(Text, SplittingOnSpacesKeepsEmptyWordsAndOnBlanksDropsThem) {
  EXPECT_EQ(split_spaces(" a  b"), (std::vector<std::string_view>{"", "a", "", "b"}));
  EXPECT_EQ(split_spaces(""), (std::vector<std::string_view>{""}));
  EXPECT_EQ(split_blanks(" a \t b "), (std::vector<std::string_view>{"a", "b"}));
  EXPECT_TRUE(split_blanks(" \t").empty());
}

TEST(Text, RulesCutTheSameSentenceDifferently) {
  const std::string sentence = "Don't stop,  TOM\u202F!";
  EXPECT_EQ(words(sentence, WordRule::book), (Words{"don't", "stop", ",", "tom", "!"}));
  EXPECT_EQ(words(sentence, WordRule::spaces), (Words{"Don't", "stop,", "TOM\u202F!"}));
  EXPECT_EQ(words(sentence, WordRule::lower), (Words{"don't", "stop,", "tom\u202F!"}));
  EXPECT_EQ(words(sentence, WordRule::words), (Words{"don", "'t", "stop", ",", "tom", "!"}));
  for (const WordRule rule : {WordRule::book, WordRule::spaces, WordRule::lower, WordRule::words}) {
    EXPECT_TRUE(words("", rule).empty());
    EXPECT_TRUE(words(" \t ", rule).empty());
  }
}

TEST(Text, WordsAndPunctuationComeApart) {
  EXPECT_EQ(words("L'homme (20%) porte un T-shirt.", WordRule::words),
            (Words{"l'", "homme", "(", "20", "%", ")", "porte", "un", "t-shirt", "."}));
  EXPECT_EQ(words("The man's 3.5 dogs' toys...", WordRule::words),
            (Words{"the", "man", "'s", "3.5", "dogs", "'", "toys", "..."}));
  EXPECT_EQ(words("They’ve 1,000; aujourd’hui", WordRule::words),
            (Words{"they", "’ve", "1,000", ";", "aujourd’", "hui"}));
  EXPECT_EQ(words("„Weiß“-er -- a-", WordRule::words), (Words{"„", "weiß", "“", "-", "er", "--", "a", "-"}));
  EXPECT_EQ(words("e\u0301te\u0301\u00A0ok", WordRule::words),
            (Words{"e\u0301te\u0301", "ok"}));  // marks belong to their letters
}

TEST(Text, EveryWordKnowsItsPart) {
  for (const WordRule rule : {WordRule::book, WordRule::words}) {
    std::vector<int32_t> parts;
    for (const Word& word : split_words(" Go on,  Tom! ", rule)) parts.push_back(word.part);
    EXPECT_EQ(parts, (std::vector<int32_t>{0, 1, 1, 2, 2}));
  }
}

TEST(Text, JoiningWordsPutsPunctuationBack) {
  for (const std::string sentence :
       {"l'homme (20%) porte un t-shirt.", "the man's dog, isn't it?", "he says: \"go home!\" and goes.",
        "and/or 3.5 $5", "„weiß“ und “white”", "aujourd’hui, they’ve 1,000..."})
    EXPECT_EQ(join_words(words(sentence, WordRule::words), WordRule::words), sentence);
  EXPECT_EQ(join_words({"go", "."}, WordRule::book), "go .");
  EXPECT_EQ(join_words({}, WordRule::words), "");
}

TEST(Text, RealCaptionsSurviveCuttingAndJoining) {
  QKV_NEEDS(path, "multi30k/train.en");
  int64_t same = 0, all = 0;
  for (const std::string& line : read_lines(path)) {
    const std::string lower = lowercase(line);
    std::string squeezed;
    for (const auto part : split_blanks(lower)) squeezed += (squeezed.empty() ? "" : " ") + std::string(part);
    same += join_words(words(line, WordRule::words), WordRule::words) == squeezed;
    ++all;
  }
  EXPECT_EQ(all, 29000);
  EXPECT_GE(static_cast<double>(same), 0.98 * static_cast<double>(all)) << same;
}
