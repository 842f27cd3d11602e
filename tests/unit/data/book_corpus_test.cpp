// The book's loaders: a fixture with every corner case of the preprocessing, and the published numbers on the real
// file.
#include <gtest/gtest.h>

#include <ctime>
#include <map>
#include <set>

#include "qkv/data/translation.h"
#include "support/data.h"
#include "support/files.h"

using namespace qkv;
using namespace qkv_test;

namespace {

using IdList = std::vector<int32_t>;

// Our own lines: no-break spaces of both kinds, capitals with accents, both apostrophes, signs after a tab and at the
// start of a line, a double blank.
const char* const kFixture =
    "Go.\tVa\u202F!\n"
    "Go!\tÉtudie\u00A0!\n"
    "I'm in, Tom.\tJ'y suis, Tom.\n"
    "I'm in?\tJ’y suis\u202F?\n"
    "... go.\t... va.\n"
    "Stop  it.\tÀ toi.\n"
    "Last one.\tLe dernier.\n";

IdList values(const Ids& ids) { return {ids.data().begin(), ids.data().end()}; }

std::vector<std::string> all_tokens(const Tokenizer& t) {
  std::vector<std::string> out;
  for (int32_t i = 0; i < t.size(); ++i) out.push_back(t.vocabulary()->token(i));
  return out;
}

using Tokens = std::vector<std::string>;

struct Fixture {
  TempFolder folder;
  std::string path = folder / "fra.txt";
  explicit Fixture(const std::string& bytes = kFixture) { put_bytes(path, bytes); }
};

}  // namespace

TEST(BookZh, PreparesTheFixtureAsTheBookDoes) {
  const Fixture f;
  const BookCorpus book = load_book_zh(f.path);
  EXPECT_EQ(book.sentences.source,
            (Tokens{"go .", "go !", "i'm in , tom .", "i'm in ?", " . . . go .", "stop  it .", "last one ."}));
  EXPECT_EQ(book.sentences.target,
            (Tokens{"va !", "étudie !", "j'y suis , tom .", "j’y suis ?", " . . . va .", "à toi .", "le dernier ."}));
  // Counts: . 8, go 3, then 2 each of i'm, in and the empty word (a line that begins with a sign, a double blank), by
  // first appearance.
  EXPECT_EQ(all_tokens(book.source), (Tokens{"<unk>", "<pad>", "<bos>", "<eos>", ".", "go", "i'm", "in", ""}));
  EXPECT_EQ(all_tokens(book.target), (Tokens{"<unk>", "<pad>", "<bos>", "<eos>", ".", "va", "!", "suis"}));
  ASSERT_EQ(book.train.size(), 7u);
  EXPECT_TRUE(book.validation.empty());
  EXPECT_EQ(book.train[0].source, (IdList{5, 4, 3}));
  EXPECT_EQ(book.train[1].target, (IdList{0, 6, 3}));
  EXPECT_EQ(book.train[4].source, (IdList{8, 4, 4, 4, 5, 4, 3}));
  EXPECT_EQ(book.train[5].source, (IdList{0, 8, 0, 4, 3}));
  EXPECT_EQ(book.num_steps, 10);
}

TEST(BookZh, ReadsOneLineMoreThanAsked) {
  const Fixture f;
  EXPECT_EQ(load_book_zh(f.path, 2).train.size(), 3u);
  EXPECT_EQ(load_book_zh(f.path, 0).train.size(), 1u);
  EXPECT_EQ(load_book_zh(f.path, 5).train.size(), 6u);
  EXPECT_EQ(load_book_zh(f.path, 600).train.size(), 7u);
  EXPECT_EQ(load_book_zh(f.path, -1).train.size(), 7u);
  EXPECT_EQ(load_book_zh(f.path, 0).source.size(), 4);  // no word occurs twice
}

TEST(BookEn, CountsThePaddedListsAndSorts) {
  const Fixture f;
  const BookCorpus book = load_book_en(f.path, 4, 1, 5);
  ASSERT_EQ(book.train.size(), 4u);
  EXPECT_EQ(book.validation.size(), 2u);  // one more than requested
  // Six lines; cut to five tokens "... go ." loses its last two and "i'm in , tom ." its <eos>; empty words are
  // dropped.
  EXPECT_EQ(all_tokens(book.source), (Tokens{".", "<eos>", "<pad>", "<unk>", "go", "i'm", "in"}));
  EXPECT_EQ(all_tokens(book.target), (Tokens{"!", ".", "<bos>", "<eos>", "<pad>", "<unk>", "suis", "va"}));
  EXPECT_EQ(book.source.bos(), -1);
  EXPECT_EQ(book.target.bos(), 2);
  EXPECT_EQ(book.train[0].source, (IdList{4, 0, 1}));
  EXPECT_EQ(book.validation[0].target, (IdList{1, 1, 1, 7, 1, 3}));
  EXPECT_EQ(book.num_steps, 5);
}

TEST(BookLoaders, RefuseFilesThatAreNotTheBooks) {
  const Fixture one("Go.\tVa !\nalone\n");
  const std::string text = ": line 2: has 1 column, expected two separated by a tab";
  EXPECT_EQ(error_of([&] { load_book_zh(one.path); }), one.path + text);
  EXPECT_EQ(error_of([&] { load_book_en(one.path); }), one.path + text);
  EXPECT_EQ(load_book_zh(one.path, 0).train.size(), 1u);
  const Fixture three("Go.\tVa !\tCC-BY\n");
  try {
    load_book_zh(three.path);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), three.path + ": line 1: has 3 columns, expected two separated by a tab");
    EXPECT_EQ(error.hint().in(Language::en),
              "newer Tatoeba files have a third column; they do not give the book's numbers");
  }
  const Fixture nothing("");
  EXPECT_EQ(error_of([&] { load_book_zh(nothing.path); }), nothing.path + ": is empty, expected text");
  EXPECT_EQ(error_of([&] { load_book_zh(three.path, -2); }),
            "[load_book_zh] num_examples is -2, expected -1 (all) or more");
}

TEST(BookZh, TheRealFileGivesThePublishedSubset) {
  QKV_NEEDS(path, "fra-eng/fra.txt");
  const BookCorpus book = load_book_zh(path);
  ASSERT_EQ(book.train.size(), 601u);
  EXPECT_EQ(book.source.size(), 184);
  EXPECT_EQ(book.target.size(), 201);
  EXPECT_EQ(book.sentences.source.back(), "i exhaled .");
  EXPECT_EQ(book.sentences.target.back(), "j’ai expiré .");
  std::map<size_t, int> source_lengths, target_lengths;
  std::set<IdList> distinct;
  int source_unknown = 0, target_unknown = 0;
  for (const IdPair& pair : book.train) {
    ++source_lengths[pair.source.size()];
    ++target_lengths[pair.target.size()];
    distinct.insert(pair.source);
    source_unknown += static_cast<int>(std::count(pair.source.begin(), pair.source.end(), 0));
    target_unknown += static_cast<int>(std::count(pair.target.begin(), pair.target.end(), 0));
  }
  EXPECT_EQ(source_lengths, (std::map<size_t, int>{{3, 35}, {4, 502}, {5, 64}}));
  EXPECT_EQ(target_lengths, (std::map<size_t, int>{{3, 170}, {4, 190}, {5, 193}, {6, 33}, {7, 12}, {8, 3}}));
  EXPECT_EQ(distinct.size(), 290u);
  EXPECT_EQ(source_unknown, 78);
  EXPECT_EQ(target_unknown, 345);
  EXPECT_EQ(book.source.decode(IdList{4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}), ". ! i i'm it go tom ? me get be up");
  EXPECT_EQ(book.target.decode(IdList{4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}),
            ". ! je suis tom ? j'ai nous ça c'est est à");
  EXPECT_EQ(book.source.encode("Go."), (IdList{9, 4}));
  EXPECT_EQ(book.source.encode("i lost ."), (IdList{6, 20, 4}));
  EXPECT_EQ(book.source.encode("he's calm ."), (IdList{58, 43, 4}));
  EXPECT_EQ(book.source.encode("I'm home."), (IdList{7, 56, 4}));
}

TEST(BookZh, TheRealFilesBatchesAreTheBooksArrays) {
  QKV_NEEDS(path, "fra-eng/fra.txt");
  const BookCorpus book = load_book_zh(path);
  const TranslationBatches batches(book.train, book.source.pad(), book.target.pad(), book.target.bos(),
                                   {.rows = 64, .fixed_steps = 8});
  EXPECT_EQ(batches.batches(), 10);
  EXPECT_EQ(batches.batch(0, 9).source.shape(), Shape({25, 8}));
  int64_t tokens = 0;
  bool found = false;
  for (int64_t b = 0; b < batches.batches(); ++b) {
    const TranslationBatch batch = batches.batch(0, b);
    for (int64_t row = 0; row < batch.source.size(0); ++row) {
      tokens += batch.target_lens.data()[static_cast<size_t>(row)];
      if (values(batch.source.part(row * 8, {8})) != IdList{7, 43, 4, 3, 1, 1, 1, 1}) continue;  // i'm calm .
      found = found || values(batch.target_out.part(row * 8, {8})) == IdList{6, 7, 40, 4, 3, 1, 1, 1};
    }
  }
  EXPECT_EQ(tokens, 2541);
  EXPECT_TRUE(found);
}

TEST(BookZh, TheWholeFileLoadsInUnderASecond) {
  QKV_NEEDS(path, "fra-eng/fra.txt");
  const std::clock_t start = std::clock();  // CPU time: other work on the machine does not count
  const BookCorpus book = load_book_zh(path, -1);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  RecordProperty("milliseconds", static_cast<int>(1000 * seconds));
  EXPECT_EQ(book.train.size(), 167130u);
  EXPECT_EQ(book.source.size(), 10012);
  EXPECT_EQ(book.source.encode("go ."), (IdList{47, 4}));
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(seconds, 1.0);
#endif
}

TEST(BookEn, TheRealFileGivesThePublishedNumbers) {
  QKV_NEEDS(path, "fra-eng/fra.txt");
  const BookCorpus book = load_book_en(path);
  ASSERT_EQ(book.train.size(), 512u);
  EXPECT_EQ(book.validation.size(), 129u);
  EXPECT_EQ(book.source.size(), 194);
  EXPECT_EQ(book.target.size(), 214);
  EXPECT_EQ(book.source.decode(IdList{0, 1, 2, 5, 6}), "! , . <unk> ?");
  EXPECT_EQ((IdList{book.source.eos(), book.source.pad(), book.source.unk()}), (IdList{3, 4, 5}));
  EXPECT_EQ((IdList{book.target.bos(), book.target.eos(), book.target.pad(), book.target.unk()}), (IdList{3, 4, 5, 6}));
  EXPECT_EQ(book.source.encode("no way !"), (IdList{117, 182, 0}));
  const auto tokens = [](const std::vector<IdPair>& pairs) {
    size_t sum = 0;
    for (const IdPair& pair : pairs) sum += pair.target.size();
    return sum;
  };
  EXPECT_EQ(tokens(book.train), 2136u);
  EXPECT_EQ(tokens(book.validation), 628u);
  const TranslationBatches batches(book.train, 4, 5, 3, {.rows = 1, .fixed_steps = book.num_steps, .shuffle = false});
  bool found = false;
  for (int64_t b = 0; b < batches.batches(); ++b) {
    const TranslationBatch batch = batches.batch(0, b);
    if (values(batch.source) != IdList{117, 182, 0, 3, 4, 4, 4, 4, 4}) continue;
    EXPECT_EQ(values(batch.source_lens), (IdList{4}));
    found = found || (values(batch.target_in) == IdList{3, 37, 100, 58, 160, 0, 4, 5, 5} &&
                      values(batch.target_out) == IdList{37, 100, 58, 160, 0, 4, 5, 5, 5});
  }
  EXPECT_TRUE(found);
}
