// Character tables: sound ones work, damaged ones never reach SentencePiece.
#include "qkv/data/subword_check.h"

#include <gtest/gtest.h>

#include <cstring>

#include "qkv/data/subwords.h"
#include "support/data.h"
#include "support/files.h"
#include "support/subword_models.h"

using namespace qkv;
using namespace qkv_test;

namespace {

constexpr uint32_t kLeaf = 1 << 8, kValue = 1u << 31;

// A trie of the keys "a", "aa", "aaa", ...: the node after n letters has block n + 1 of 256 units. The other units lead
// nowhere.
std::vector<uint32_t> chain(uint32_t length) {
  std::vector<uint32_t> units(256 * (length + 2), kValue);
  units[0] = 256 << 10;
  for (uint32_t n = 0; n < length; ++n) {
    const uint32_t here = 256 * (n + 1) + 'a', next = 256 * (n + 2);
    units[here] = (here ^ next) << 10 | kLeaf | 'a';
    units[next] = kValue;
  }
  return units;
}

std::string table(const std::vector<uint32_t>& units, const std::string& texts) {
  const auto size = static_cast<uint32_t>(4 * units.size());
  std::string out(4 + size, '\0');
  std::memcpy(out.data(), &size, 4);
  std::memcpy(out.data() + 4, units.data(), size);
  return out + texts;
}

std::string error_of_table(const std::string& blob, int where = 3) {
  static const std::string model = trained_model("bpe", "identity");
  std::string error = error_of([&] { check_subword_model(with_table(model, blob, where), "m"); });
  const std::string start = "m: its table of characters is damaged: ";
  return error.starts_with(start) ? error.substr(start.size()) : error;
}

const std::string kTexts("b\0cd\0", 5);

}  // namespace

TEST(SubwordCheck, SoundTablesWork) {
  const TempFolder folder;
  for (const char* kind : {"bpe", "unigram"})
    for (const char* rule : {"nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf"}) {
      put_bytes(folder / "m.model", trained_model(kind, rule));
      const Subwords model = Subwords::load(folder / "m.model");
      EXPECT_EQ(model.encode("\xEF\xBC\xA1\xEF\xBC\xA2\xEF\xBC\xA3 abc"), model.encode("ABC abc"))
          << "full-width letters, " << rule;
      EXPECT_EQ(model.encode("\xEF\xB7\xBA"), model.encode("صلى الله عليه وسلم"))
          << "one character that becomes eighteen, " << rule;
    }
}

TEST(SubwordCheck, TheTablesOfModelsThatPeopleHaveAreSound) {
  QKV_NEEDS(path, "../models/opus-mt-zh-en/sentencepiece.model");
  EXPECT_EQ(error_of([&] { check_subword_model(file_bytes(path), path); }), "no error");
}

TEST(SubwordCheck, EveryStepOfATableIsChecked) {
  for (const int where : {3, 5}) {
    EXPECT_EQ(error_of_table(table(chain(3), kTexts), where), "no error");
    EXPECT_EQ(error_of_table(table(chain(32), kTexts), where), "no error");
    EXPECT_EQ(error_of_table(table(chain(33), kTexts), where), "too many texts share a prefix");
    EXPECT_EQ(error_of_table(std::string("\4\0\0\0\0\xfe\xff\x7f"
                                         "x\0",
                                         10),
                             where),
              "a step leads out of the trie");
  }
  std::vector<uint32_t> units = chain(3);
  units[0] = 255 << 10 | 1 << 9;  // an offset of 255 * 256
  EXPECT_EQ(error_of_table(table(units, kTexts)), "a step leads out of the trie");
  units = chain(3);
  units[768 + 'a'] = 4096 << 10 | kLeaf | 'a';
  EXPECT_EQ(error_of_table(table(units, kTexts)), "a step leads out of the trie");
  units = chain(3);
  units.resize(units.size() - 1);
  EXPECT_EQ(error_of_table(table(units, kTexts)), "a step leads out of the trie");
  units = chain(3);
  units[768 + 'a'] = ((768 + 'a') ^ 512) << 10 | 'a';
  EXPECT_EQ(error_of_table(table(units, kTexts)), "it has a cycle");
  units[768 + 'a'] = ((768 + 'a') ^ 256) << 10 | 'a';
  EXPECT_EQ(error_of_table(table(units, kTexts)), "it has a cycle");
  for (const uint32_t value : {1u, 3u, 5u, 0x7fffffffu}) {
    units = chain(3);
    units[768] = kValue | value;
    EXPECT_EQ(error_of_table(table(units, kTexts)), "a value is not the beginning of a text") << value;
  }
  units = chain(3);
  units[768] = kValue | 2;
  EXPECT_EQ(error_of_table(table(units, kTexts)), "no error");
}

TEST(SubwordCheck, TheFrameOfATableIsChecked) {
  EXPECT_EQ(error_of_table(table(chain(3), "b")), "its last text is not terminated");
  EXPECT_EQ(error_of_table(table(chain(3), std::string("\xff\0", 2))), "its texts are not UTF-8");
  EXPECT_EQ(error_of_table(table(chain(1), std::string(32, 'b') + '\0')), "no error");
  EXPECT_EQ(error_of_table(table(chain(1), std::string(33, 'b') + '\0')),
            "a text is far longer than the characters it replaces");
  for (const std::string& blob : {std::string("x"), std::string("\4\0\0\0abcd", 8), std::string("\0\0\0\0x\0", 6),
                                  std::string("\xff\xff\xff\xff"
                                              "aaaa"),
                                  std::string("\3\0\0\0abcx\0", 9)})
    EXPECT_EQ(error_of_table(blob), "its trie does not have the stated size");
}

TEST(SubwordCheck, PiecesAreText) {
  const TempFolder folder;
  const std::string path = folder / "m.model";
  for (const char* kind : {"bpe", "unigram"}) {
    const std::string model = trained_model(kind, "identity");
    const auto error_with = [&](const std::string& piece) {
      put_bytes(path, model + field(1, field(1, piece)));
      return error_of([&] { Subwords::load(path); });
    };
    EXPECT_EQ(error_with("new"), "no error");
    EXPECT_EQ(error_with("\xff"), path + ": a piece is not UTF-8");
    EXPECT_EQ(error_with(std::string("\0x", 2)), path + ": a piece has a NUL in it");
    EXPECT_EQ(error_with(""), path + ": a piece is empty");
    EXPECT_EQ(error_with(std::string(512, 'x')), "no error");
    EXPECT_EQ(error_with(std::string(513, 'x')), path + ": a piece has 513 bytes, expected at most 512");
  }
}

TEST(SubwordCheck, FieldsThatProtobufWouldReadAnotherWayAreRefused) {
  const std::string model = trained_model("bpe", "identity"), start = "m: not a SentencePiece model, or damaged: ";
  const auto error_with = [&](std::string_view more) {
    return error_of([&] { check_subword_model(model + std::string(more), "m"); });
  };
  const std::string at = text(model.size() + 1), after = text(model.size() + 2);
  EXPECT_EQ(error_with({"\x1b\x1c", 2}), start + "a field of kind 3 at byte " + at);
  EXPECT_EQ(error_with({"\0\0", 2}), start + "no field at byte " + at);
  EXPECT_EQ(error_with({"\x9a\0\0", 3}), start + "a number with redundant zeros at byte " + after);
  EXPECT_EQ(error_with({"\x1a\x7f", 2}), start + "a field of 127 bytes with 0 left");
  EXPECT_EQ(error_with({"\x1a", 1}), start + "it is cut off");
}

TEST(SubwordCheck, ALongSentenceIsRefusedBeforeItIsCut) {
  const TempFolder folder;
  put_bytes(folder / "m.model", trained_model("bpe", "identity"));
  const Subwords model = Subwords::load(folder / "m.model");
  EXPECT_FALSE(model.encode(std::string(65'536, 'a')).empty());
  const std::string message = "[subwords] a sentence has 65,537 bytes, expected at most 65,536", sentence(65'537, 'a');
  EXPECT_EQ(error_of([&] { model.encode(sentence); }), message);
  EXPECT_EQ(error_of([&] { model.encode_pieces(sentence); }), message);
  EXPECT_EQ(error_of([&] { Subwords::train(std::vector<std::string>{sentence}, {.size = 8}); }), message);
}
