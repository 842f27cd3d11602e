// Files of sentences: line ends, gzip, columns, splits, and refused files.
#include "qkv/data/corpus.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <map>
#include <set>

#include "qkv/core/numbers.h"
#include "qkv/data/text.h"
#include "support/data.h"
#include "support/files.h"

using namespace qkv;
using namespace qkv_test;

namespace {

using Lines = std::vector<std::string>;

void put_gzip(const std::string& path, const std::vector<std::string>& members) {
  std::filesystem::remove(path);
  for (const std::string& member : members) {
    const gzFile file = gzopen(path.c_str(), "ab");
    ASSERT_NE(file, nullptr);
    ASSERT_EQ(gzwrite(file, member.data(), static_cast<unsigned>(member.size())), static_cast<int>(member.size()));
    gzclose(file);
  }
}

}  // namespace

TEST(Corpus, LinesAreReadWithAnyLineEnd) {
  const TempFolder folder;
  const std::string path = folder / "t.txt";
  const auto lines = [&](const std::string& bytes) {
    put_bytes(path, bytes);
    return read_lines(path);
  };
  EXPECT_EQ(lines("a\nb\n"), (Lines{"a", "b"}));
  EXPECT_EQ(lines("a\nb"), (Lines{"a", "b"}));
  EXPECT_EQ(lines("\xEF\xBB\xBF"
                  "a\r\n\r\nb\rc\r\n"),
            (Lines{"a", "", "b\rc"}));
  EXPECT_EQ(lines("\n\n"), (Lines{"", ""}));
}

TEST(Corpus, GzipIsReadInAllItsMembers) {
  const TempFolder folder;
  const std::string path = folder / "t.gz", big(3'000'000, 'x');
  put_gzip(path, {"a\nb", "c\n" + big + "\n", "d"});
  EXPECT_EQ(read_lines(path), (Lines{"a", "bc", big, "d"}));
  EXPECT_EQ(error_of([&] { read_text(path, 1000); }), path + ": unpacks to more than 1,000 bytes");
  const std::string bytes = file_bytes(path);
  for (const size_t keep : {size_t{2}, size_t{11}, bytes.size() / 2, bytes.size() - 1}) {
    put_bytes(path, bytes.substr(0, keep));
    EXPECT_EQ(error_of([&] { read_text(path); }), path + ": the gzip file is cut off") << keep;
  }
  put_bytes(path, bytes + "rest");
  EXPECT_EQ(error_of([&] { read_text(path); }), path + ": the gzip file is damaged: incorrect header check");
}

TEST(Corpus, UnpacksOnlyTheRequestedLinesOfAGzipFile) {
  const TempFolder folder;
  const std::string path = folder / "p.tsv.gz";
  std::string pairs;
  for (int64_t i = 0; i < 300'000; ++i) pairs += text(i, "\t", 7919 * i % 100'003, "\n");
  put_gzip(path, {pairs});
  EXPECT_EQ(read_pairs(path, 1000).size(), 1000);
  EXPECT_EQ(read_pairs(path, 1000).target, read_pairs(path).part(0, 1000).target);
  const std::string bytes = file_bytes(path);
  put_bytes(path, bytes.substr(0, bytes.size() - 100));  // the requested lines end before that
  EXPECT_EQ(read_pairs(path, 1000).size(), 1000);
  EXPECT_EQ(error_of([&] { read_pairs(path); }), path + ": the gzip file is cut off");
}

TEST(Corpus, AGzipFileCompressedBetterThanTextIsRefused) {
  const TempFolder folder;
  const std::string path = folder / "bomb.gz";
  put_gzip(path, {std::string(40'000'000, '\n'), std::string(80'000'000, '\n')});
  const uint64_t size = file_bytes(path).size();
  EXPECT_EQ(error_of([&] { read_text(path); }),
            text(path, ": ", grouped(size), " bytes unpack to more than ", grouped((64 << 20) + 100 * size),
                 "; text does not compress that well"));
}

TEST(Corpus, FilesThatAreNotTextAreRefused) {
  const TempFolder folder;
  const std::string path = folder / "t.txt";
  const auto refused = [&](const std::string& bytes) {
    put_bytes(path, bytes);
    return error_of([&] { read_lines(path); });
  };
  EXPECT_EQ(refused(""), path + ": is empty, expected text");
  EXPECT_EQ(refused("\xEF\xBB\xBF"), path + ": is empty, expected text");
  EXPECT_EQ(refused("a\nb\nc \xC3("), path + ": line 3: not UTF-8: byte 0xc3 at offset 6");
  EXPECT_EQ(refused("\xFF\xFE"
                    "a"),
            path + ": is UTF-16, expected UTF-8");
  EXPECT_EQ(error_of([&] { read_lines(folder / "none"); }),
            "cannot open " + (folder / "none") + ": No such file or directory");
  put_bytes(path, "12345");
  EXPECT_EQ(error_of([&] { read_text(path, 4); }), path + ": has 5 bytes, expected at most 4");
}

TEST(Corpus, PairsHaveTwoColumns) {
  const TempFolder folder;
  const std::string path = folder / "p.tsv";
  put_bytes(path, "Go.\tVa !\r\nHi.\tSalut !\n\tvide\n");
  const SentencePairs pairs = read_pairs(path);
  EXPECT_EQ(pairs.source, (Lines{"Go.", "Hi.", ""}));
  EXPECT_EQ(pairs.target, (Lines{"Va !", "Salut !", "vide"}));
  EXPECT_EQ(read_pairs(path, 2).size(), 2);
  EXPECT_EQ(read_pairs(path, 0).size(), 0);
  put_bytes(path, "a\tb\nalone\nc\td\n");
  EXPECT_EQ(error_of([&] { read_pairs(path); }), path + ": line 2: has 1 column, expected two separated by a tab");
  EXPECT_EQ(read_pairs(path, 1).size(), 1);
  put_bytes(path, "a\tb\n\nc\td\n");
  EXPECT_EQ(error_of([&] { read_pairs(path); }), path + ": line 2: has 1 column, expected two separated by a tab");
  put_bytes(path, "a\tb\tc\td\n");
  EXPECT_EQ(error_of([&] { read_pairs(path); }), path + ": line 1: has 4 columns, expected two separated by a tab");
}

TEST(Corpus, AThirdColumnIsLeftOutOrRefused) {
  const TempFolder folder;
  const std::string path = folder / "p.tsv";
  put_bytes(path, "Go.\tVa !\tCC-BY 2.0\n");
  EXPECT_EQ(read_pairs(path).target, (Lines{"Va !"}));
  EXPECT_EQ(error_of([&] { read_pairs(path, -1, ThirdColumn::refuse); }),
            path + ": line 1: has 3 columns, expected two separated by a tab");
}

TEST(Corpus, AlignedFilesHaveTheSameNumberOfLines) {
  const TempFolder folder;
  const std::string a = folder / "a.de", b = folder / "b.en";
  put_bytes(a, "eins\nzwei\n");
  put_bytes(b, "one\ntwo\n");
  EXPECT_EQ(read_aligned(a, b).target, (Lines{"one", "two"}));
  put_bytes(b, "one\ntwo\nthree\n");
  EXPECT_EQ(error_of([&] { read_aligned(a, b); }),
            a + " has 2 lines, " + b + " has 3: line-aligned files need the same number of lines");
}

TEST(Corpus, PairsAreTheSameAfterWriting) {
  const TempFolder folder;
  const std::string path = folder / "p.tsv";
  write_pairs(path, {{"a", "é"}, {"b", ""}});
  EXPECT_EQ(file_bytes(path), "a\tb\né\t\n");
  EXPECT_EQ(error_of([&] {
              write_pairs(path, {{"a", "x\ty"}, {"b", "c"}});
            }),
            path + ": pair 2 has a tab or a line end inside a sentence");
}

TEST(Corpus, ASplitKeepsSourcesTogether) {
  SentencePairs pairs;
  for (int i = 0; i < 300; ++i) {  // every source three times, in three spellings
    pairs.source.push_back(text(i % 3 == 0 ? "S " : i % 3 == 1 ? "s " : " s  ", i % 100));
    pairs.target.push_back(text("t", i));
  }
  const Split split = split_by_source(pairs, 20, 10, 7);
  EXPECT_EQ(split.test.size(), 12u);  // whole groups of three, at least the requested number
  EXPECT_EQ(split.validation.size(), 21u);
  EXPECT_EQ(split.train.size(), 267u);
  std::set<int64_t> all;
  std::map<int64_t, const void*> part_of;
  for (const auto* part : {&split.train, &split.validation, &split.test}) {
    EXPECT_TRUE(std::is_sorted(part->begin(), part->end()));
    for (const int64_t i : *part) {
      all.insert(i);
      EXPECT_EQ(part_of.try_emplace(i % 100, part).first->second, part);
    }
  }
  EXPECT_EQ(all.size(), 300u);
  EXPECT_EQ(split_by_source(pairs, 20, 10, 7).test, split.test);
  EXPECT_NE(split_by_source(pairs, 20, 10, 8).test, split.test);
  EXPECT_EQ(select(pairs, {2, 0}).target, (Lines{"t2", "t0"}));
  EXPECT_EQ(error_of([&] { split_by_source(pairs, 200, 100, 7); }),
            "[split] 300 pairs of 100 sources are too few for 200 validation pairs, 100 test pairs and a training set");
}

TEST(Corpus, RealFilesHaveTheirPublishedCounts) {
  QKV_NEEDS(path, "fra-eng/fra.txt");
  const SentencePairs pairs = read_pairs(path);
  EXPECT_EQ(pairs.size(), 167130);
  EXPECT_EQ(std::set<std::string>(pairs.source.begin(), pairs.source.end()).size(), 116830u);
}
