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
  EXPECT_EQ(Tokenizer::words(vocabulary(), WordRule::lower).encode("Go ."), (IdList{4, 5}));
  EXPECT_TRUE(book.encode("").empty());
  EXPECT_EQ(book.size(), 10);
  EXPECT_EQ(book.vocabulary()->id("home"), 8);
}

TEST(Tokenizer, NoTextSpellsASpecial) {
  EXPECT_EQ(Tokenizer::words(vocabulary(), WordRule::book).encode("<eos> <pad> <bos> <unk> go"),
            (IdList{0, 0, 0, 0, 4}));
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
  EXPECT_EQ(Tokenizer::words(vocabulary(), WordRule::spaces).word_of_token(sentence), (IdList{0, 1, 1, 2, 2}));
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
      if (opens && i > 0) {
        EXPECT_EQ(words[i], words[i - 1] + 1) << sentence;
      }
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
  const Tokenizer french = Tokenizer::words(vocabulary(), WordRule::book, Spacing::french);
  french.save(folder.path(), "en");
  EXPECT_EQ(file_bytes(folder / "tokenizer.en.txt"), "words book french\n");
  EXPECT_EQ(Tokenizer::load(folder.path(), "en").decode(IdList{4, 5}, {.attached = true}), "go.");
  for (const Normalization form : {Normalization::nfkc, Normalization::nfc, Normalization::none})
    for (const bool lower : {false, true}) {
      const Tokenizer t = Tokenizer::subwords(model(), lower, form);
      t.save(folder.path(), "fr");
      const Tokenizer again = Tokenizer::load(folder.path(), "fr");
      EXPECT_EQ(again.encode(sentence), t.encode(sentence));
      EXPECT_EQ(again.encode("\uFF48ome"), t.encode("\uFF48ome"));
    }
  EXPECT_TRUE(std::filesystem::exists(folder / "vocab.en.txt"));
  EXPECT_TRUE(std::filesystem::exists(folder / "fr.model"));
  EXPECT_EQ(file_bytes(folder / "tokenizer.fr.txt"), "subwords lower\n");
}

TEST(Tokenizer, LoadingNamesWhatIsWrong) {
  const TempFolder folder;
  const std::string path = folder / "tokenizer.en.txt";
  EXPECT_EQ(error_of([&] { Tokenizer::load(folder.path(), "en"); }),
            "cannot open " + path + ": No such file or directory");
  put_bytes(path, "letters\n");
  EXPECT_EQ(error_of([&] { Tokenizer::load(folder.path(), "en"); }),
            path +
                ": line 1: expected \"words book|spaces|lower|words [french]\" or \"subwords lower|cased [nfc|nfkc]\" "
                "and nothing more, found \"letters\"");
  for (const char* wrong : {"words", "words book german", "words book french more", "subwords lower nfd",
                            "subwords cased ", "subwords cased  nfc", "words  book"}) {
    put_bytes(path, std::string(wrong) + "\n");
    EXPECT_NE(error_of([&] { Tokenizer::load(folder.path(), "en"); }).find("and nothing more, found"),
              std::string::npos)
        << wrong;
  }
  put_bytes(path, "words book\n");
  EXPECT_EQ(error_of([&] { Tokenizer::load(folder.path(), "en"); }),
            "cannot open " + (folder / "vocab.en.txt") + ": No such file or directory");
}

namespace {

// The spelling of the built-in corpus in its two languages.
Tokenizer english() {
  return Tokenizer::words(
      Vocabulary::build({{"the", "cat", "is", "not", "here", ".", "?", ",", "'s", "i", "paul", "today", "9.5"}}, 1),
      WordRule::spaces);
}
Tokenizer french() {
  return Tokenizer::words(Vocabulary::build({{"l'", "eau", "est", "ici", ".", "?", ",", "aujourd'hui", "est-ce", "qu'",
                                              "il", "dort", "œuf", "\u00E9t\u00E9"}},
                                            1),
                          WordRule::spaces, Spacing::french);
}
std::string seen(const Tokenizer& t, const std::string& sentence) {
  std::string out;
  for (const std::string& token : t.tokens(t.encode(sentence))) out += (out.empty() ? "" : " ") + token;
  return out;
}

}  // namespace

TEST(Tokenizer, TypedTextFindsTheWordsOfTheVocabulary) {
  EXPECT_EQ(seen(english(), "The CAT is Not here."), "the cat is not here .");
  EXPECT_EQ(seen(english(), "the cat is not here ."), "the cat is not here .");
  EXPECT_EQ(seen(english(), "Paul\u2019s cat, is it?!"), "paul 's cat , is <unk> ? <unk>");
  EXPECT_EQ(seen(english(), "9.5"), "9.5");
  EXPECT_EQ(seen(french(), "Est-ce qu\u2019il dort aujourd'hui ?"), "est-ce qu' il dort aujourd'hui ?");
  EXPECT_EQ(seen(french(), "Aujourd'hui, l'eau dort\u202F?"), "aujourd'hui , l' eau dort ?");
  EXPECT_EQ(seen(french(), "e\u0301te\u0301"), "\u00E9t\u00E9") << "decomposed";
  EXPECT_EQ(seen(french(), "\u2003"), "");
  EXPECT_EQ(english().word_of_token("The cat's here."), (IdList{0, 1, 1, 2, 2}));
}

TEST(Tokenizer, AVocabularyWithCapitalsOrAttachedMarksIsTakenAsItStands) {
  const Tokenizer cased = Tokenizer::words(Vocabulary::build({{"The", "cat", "."}}, 1), WordRule::spaces);
  EXPECT_EQ(seen(cased, "The Cat cat."), "The <unk> cat .");
  EXPECT_FALSE(cased.is_lower());
  EXPECT_EQ(cased.decode(cased.encode("cat ."), cased.writing("Cat.")), "cat.");
  const Tokenizer attached = Tokenizer::words(Vocabulary::build({{"the", "cat.", ".", "cat"}}, 1), WordRule::spaces);
  EXPECT_EQ(seen(attached, "the cat."), "the cat.");
  EXPECT_EQ(seen(attached, "cat the."), "cat <unk>");
}

TEST(Tokenizer, TranslationsAreWrittenAsTheSentenceWas) {
  const auto written = [](const std::string& sentence, const std::string& translation) {
    return french().decode(french().encode(translation), english().writing(sentence));
  };
  EXPECT_EQ(written("the cat is here .", "l' eau est ici ."), "l' eau est ici .");
  EXPECT_EQ(written("The cat is here.", "l' eau est ici ."), "L'eau est ici.");
  EXPECT_EQ(written("the cat is here.", "l' eau est ici ."), "l'eau est ici.");
  EXPECT_EQ(written("The cat is here .", "l' eau est ici ."), "L' eau est ici .");
  EXPECT_EQ(written("The cat", "œuf"), "Œuf");
  EXPECT_EQ(written("Is the cat here?", "est-ce qu' il dort ?"), "Est-ce qu'il dort\u202F?");
  EXPECT_EQ(written("The zebra.", "zzz dort ."), "<unk> dort.");
  // The book's words keep their apostrophes.
  const Tokenizer book = Tokenizer::words(vocabulary(), WordRule::book);
  EXPECT_EQ(book.decode(book.encode("i'm home ."), book.writing("I'm home.")), "I'm home.");
  EXPECT_EQ(book.decode(book.encode("i'm home ."), book.writing("i'm home .")), "i'm home .");
  // Subwords keep this information.
  const Tokenizer lower = Tokenizer::subwords(model(), true);
  EXPECT_EQ(lower.decode(lower.encode("The walker."), lower.writing("The walker.")), "the walker.");
}

TEST(Tokenizer, SubwordsReadNormalisedText) {
  const Tokenizer nfkc = Tokenizer::subwords(model(), false, Normalization::nfkc),
                  as_it_is = Tokenizer::subwords(model(), false);
  const IdList home = nfkc.encode("the home");
  for (const char* same :
       {"the\thome", "the\u00A0home", "the\u2003home", "the\u3000home", " the  home ", "the \uFF48\uFF4F\uFF4D\uFF45"})
    EXPECT_EQ(nfkc.encode(same), home) << same;
  EXPECT_EQ(as_it_is.encode("the\thome"), home) << "a tab is a blank to every model";
  EXPECT_NE(as_it_is.encode("the\u2003home"), home);
  for (const char* blank : {"", " ", "\t", "\u2003", "\u00A0 \t"}) {
    EXPECT_TRUE(nfkc.encode(blank).empty()) << blank;
    EXPECT_TRUE(as_it_is.encode(blank).empty()) << blank;
    EXPECT_TRUE(as_it_is.word_of_token(blank).empty()) << blank;
  }
  // Words are counted between spaces and tabs, even if other characters become blanks.
  const std::string sentence = "the\u2003home\tat home";
  const IdList words = nfkc.word_of_token(sentence);
  EXPECT_EQ(words.size(), nfkc.encode(sentence).size());
  EXPECT_EQ(words.front(), 0);
  EXPECT_EQ(words.back(), 2);
}
