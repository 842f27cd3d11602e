// Subword models: training twice gives the same bytes, text survives, damage is an error.
#include "qkv/data/subwords.h"

#include <gtest/gtest.h>

#include "qkv/core/rng.h"
#include "support/files.h"

using namespace qkv;
using namespace qkv_test;

namespace {

// Sentences with words that share beginnings and endings, so that there is something to learn.
std::vector<std::string> sentences() {
  const std::vector<std::string> who = {"the walker", "a worker", "the talker", "ein Läufer", "le garçon"};
  const std::vector<std::string> does = {"walks", "works", "talked", "is working", "läuft", "travaille"};
  const std::vector<std::string> where = {"at home.", "in the workshop!", "slowly", "heute?", "à la maison."};
  std::vector<std::string> out;
  for (const auto& a : who)
    for (const auto& b : does)
      for (const auto& c : where) out.push_back(a + " " + b + " " + c);
  return out;
}

Subwords small(SubwordKind kind = SubwordKind::bpe) { return Subwords::train(sentences(), {.kind = kind, .size = 48}); }

// The nearest possible size for a text that cannot give `size` pieces.
int32_t nearest_size(SubwordKind kind, int32_t size) {
  try {
    Subwords::train(sentences(), {.kind = kind, .size = size});
  } catch (const SubwordSizeError& e) {
    return e.nearest();
  }
  return size;
}

}  // namespace

TEST(Subwords, EncodesAndDecodesWhatItWasTrainedOn) {
  for (const SubwordKind kind : {SubwordKind::bpe, SubwordKind::unigram}) {
    const Subwords model = small(kind);
    EXPECT_EQ(model.size(), 48);
    EXPECT_EQ((std::vector<int32_t>{model.unk(), model.pad(), model.bos(), model.eos()}),
              (std::vector<int32_t>{0, 1, 2, 3}));
    EXPECT_EQ(model.piece(2), "<bos>");
    for (const std::string& sentence : sentences()) {
      const std::vector<int32_t> ids = model.encode(sentence);
      EXPECT_EQ(model.decode(ids), sentence);
      EXPECT_LT(ids.size(), sentence.size());
      for (const int32_t id : ids) EXPECT_GE(id, 4);
    }
    EXPECT_TRUE(model.encode("").empty());
    EXPECT_EQ(model.decode({}), "");
  }
}

TEST(Subwords, TrainingIsDeterministicAndTheKindsDiffer) {
  const TempFolder folder;
  for (const SubwordKind kind : {SubwordKind::bpe, SubwordKind::unigram}) {
    small(kind).save(folder / "a.model");
    small(kind).save(folder / "b.model");
    EXPECT_EQ(file_bytes(folder / "a.model"), file_bytes(folder / "b.model"));
  }
  small(SubwordKind::bpe).save(folder / "a.model");
  EXPECT_NE(file_bytes(folder / "a.model"), file_bytes(folder / "b.model"));
}

TEST(Subwords, LoadingGivesTheSameIds) {
  const TempFolder folder;
  const Subwords model = small();
  model.save(folder / "m.model");
  const Subwords again = Subwords::load(folder / "m.model");
  for (const std::string& sentence : sentences()) EXPECT_EQ(again.encode(sentence), model.encode(sentence));
}

TEST(Subwords, UnseenSignsAndSpelledSpecialsAreNotSpecials) {
  const Subwords model = small();
  const std::vector<int32_t> ids = model.encode("词 <eos> <pad>");
  EXPECT_NE(std::find(ids.begin(), ids.end(), model.unk()), ids.end());
  for (const int32_t id : ids) EXPECT_TRUE(id == model.unk() || id > 3) << id;
}

TEST(Subwords, PiecesKnowWhereTheyBegin) {
  const std::string sentence = "le garçon travaille";
  const std::vector<Piece> pieces = small().encode_pieces(sentence);
  ASSERT_FALSE(pieces.empty());
  EXPECT_EQ(pieces.front().begin, 0u);
  for (size_t i = 1; i < pieces.size(); ++i) EXPECT_GE(pieces[i].begin, pieces[i - 1].begin);
  EXPECT_LT(pieces.back().begin, sentence.size());
}

TEST(Subwords, ImpossibleRequestsAreOneClearError) {
  EXPECT_EQ(error_of([] {
              Subwords::train(std::vector<std::string>{"", " "}, {.size = 50});
            }),
            "[subwords] there is no text to train on");
  EXPECT_EQ(error_of([] { Subwords::train({}, {.size = 50}); }), "[subwords] there is no text to train on");
  EXPECT_EQ(error_of([] { Subwords::train(std::vector<std::string>{"a\xFF"}, {.size = 50}); }),
            "[subwords] a sentence is not UTF-8");
  EXPECT_EQ(error_of([] { Subwords::train(sentences(), {.size = 3}); }),
            "[subwords] a model of 3 pieces was requested, expected at least 8");
  for (const SubwordKind kind : {SubwordKind::bpe, SubwordKind::unigram}) {
    const int32_t most = nearest_size(kind, 100'000), least = nearest_size(kind, 10);
    EXPECT_EQ(error_of([&] { Subwords::train(sentences(), {.kind = kind, .size = 100'000}); }),
              text("[subwords] 100000 pieces were requested, but the text gives at most ", most));
    EXPECT_EQ(error_of([&] { Subwords::train(sentences(), {.kind = kind, .size = 10}); }),
              text("[subwords] 10 pieces were requested, but the text's characters need at least ", least));
    // These two sizes are possible, and the next ones beyond them are not.
    EXPECT_EQ(Subwords::train(sentences(), {.kind = kind, .size = most}).size(), most);
    EXPECT_EQ(Subwords::train(sentences(), {.kind = kind, .size = least}).size(), least);
    EXPECT_EQ(nearest_size(kind, most + 1), most);
    EXPECT_EQ(nearest_size(kind, least - 1), least);
  }
  // The library's BPE trainer would read out of bounds, its unigram trainer may abort the process.
  for (const SubwordKind kind : {SubwordKind::bpe, SubwordKind::unigram}) {
    EXPECT_EQ(error_of([&] {
                Subwords::train(std::vector<std::string>{"b " + std::string(32'767, 'a')}, {.kind = kind, .size = 8});
              }),
              "[subwords] a word has 32,767 bytes, expected at most 32,766");
    for (const char* nothing : {"", " \t", "\xE2\x96\x81", " \xE2\x96\x81 \xE2\x96\x81"})
      EXPECT_EQ(error_of([&] { Subwords::train(std::vector<std::string>{nothing}, {.kind = kind, .size = 8}); }),
                "[subwords] there is no text to train on");
  }
  EXPECT_EQ(Subwords::train(std::vector<std::string>{"b " + std::string(32'766, 'a')}, {.size = 8}).size(), 8);
  EXPECT_EQ(error_of([] { small().piece(48); }), "[subwords] no piece has the number 48, expected 0 to 47");
  EXPECT_EQ(error_of([] {
              small().decode(std::vector<int32_t>{4, -1});
            }),
            "[subwords] no piece has the number -1, expected 0 to 47");
}

TEST(Subwords, DamagedFilesAreRefusedOrHarmless) {
  const TempFolder folder;
  const std::string path = folder / "m.model";
  small().save(path);
  const std::string bytes = file_bytes(path);
  put_bytes(path, "");
  EXPECT_EQ(error_of([&] { Subwords::load(path); }), path + ": is empty, expected a SentencePiece model");
  put_bytes(path, "this is not a model");
  EXPECT_TRUE(error_of([&] { Subwords::load(path); }).starts_with(path + ": not a SentencePiece model, or damaged"));
  const auto load_and_use = [&](const std::string& damaged) {
    put_bytes(path, damaged);
    const std::string error = error_of([&] {
      const Subwords model = Subwords::load(path);
      model.decode(model.encode("the walker works, 词."));
    });
    EXPECT_EQ(error.find('\n'), std::string::npos);
  };
  for (size_t keep = 0; keep < bytes.size(); keep += 1 + bytes.size() / 150) load_and_use(bytes.substr(0, keep));
  const Rng rng(3);
  for (uint64_t i = 0; i < 300; ++i) {
    std::string damaged = bytes;
    // Most of a small model is its table of normalised characters: aim at the pieces half the time.
    const uint64_t range = i % 2 ? bytes.size() : std::min<uint64_t>(bytes.size(), 1500);
    damaged[rng.below(range, 2 * i)] = static_cast<char>(rng.below(256, 2 * i + 1));
    load_and_use(damaged);
  }
}
