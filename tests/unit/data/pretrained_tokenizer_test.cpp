// Tokenizers of pretrained folders against those of the `tokenizers` library (tests/golden/make_tokenizers.py).
#include "qkv/data/pretrained_tokenizer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "qkv/core/check.h"
#include "qkv/core/rng.h"
#include "support/files.h"

namespace qkv {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

Json read_json(const std::string& name) {
  std::ifstream in(QKV_SOURCE_DIR "/tests/golden/tokenizers/" + name);
  return Json::parse(in);
}

using qkv_test::error_of;

// A folder with files of these contents.
class PretrainedFolder {
 public:
  explicit PretrainedFolder(const std::vector<std::pair<std::string, std::string>>& files) {
    for (const auto& [name, content] : files) qkv_test::put_bytes(folder_ / name, content);
  }
  const std::string& path() const { return folder_.path(); }

 private:
  qkv_test::TempFolder folder_;
};

class GoldenTokenizer : public testing::TestWithParam<const char*> {};

TEST_P(GoldenTokenizer, GivesTheIdsAndTheTextOfTheLibrary) {
  const Json golden = read_json(std::string(GetParam()) + ".json"), lines = read_json("lines.json");
  const PretrainedFolder folder({{"tokenizer.json", golden["tokenizer"].dump()}});
  const auto tokenizer = PretrainedTokenizer::open(folder.path());
  ASSERT_GE(lines.size(), 200u);
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string line = lines[i];
    const EncodedText encoded = tokenizer.encode(line);
    EXPECT_EQ(encoded.ids(), golden["ids"][i].get<std::vector<int32_t>>()) << line;
    EXPECT_EQ(tokenizer.decode(encoded.ids()), golden["decoded"][i].get<std::string>()) << line;
    for (const EncodedToken& token : encoded.tokens) {
      EXPECT_LE(token.begin, token.end);
      EXPECT_LE(token.end, line.size());
    }
  }
  const EncodedText pair = tokenizer.encode_pair(lines[0].get<std::string>(), lines[1].get<std::string>());
  EXPECT_EQ(pair.ids(), golden["pair"].get<std::vector<int32_t>>());
  EXPECT_EQ(pair.types(), golden["pair_types"].get<std::vector<int32_t>>());
}

TEST_P(GoldenTokenizer, TakesAnyTextInTimeThatGrowsLikeItsLength) {
  const Json golden = read_json(std::string(GetParam()) + ".json");
  const PretrainedFolder folder({{"tokenizer.json", golden["tokenizer"].dump()}});
  const auto tokenizer = PretrainedTokenizer::open(folder.path());
  std::string marks = "a";
  while (marks.size() < 200'000) marks += marks.size() % 4 < 2 ? "\xCC\x81" : "\xCC\xA3";
  // A quadratic step over these would take minutes, so that the test's time limit finds it.
  for (const std::string& text : {std::string(1 << 20, 'a'), std::string(1 << 20, ' '), std::string(1 << 20, '\n'),
                                  std::string(1 << 20, '<'), marks}) {
    const EncodedText encoded = tokenizer.encode(text);
    EXPECT_LE(encoded.tokens.size(), 2 * text.size() + 8);
    tokenizer.decode(encoded.ids());
  }
  const Rng rng(23);
  for (uint64_t i = 0; i < 300; ++i) {
    std::string bytes;
    for (uint64_t k = 0; k < i; ++k) bytes += static_cast<char>(rng.at(i).below(i % 2 ? 256 : 128, k));
    const std::string error = error_of([&] { tokenizer.encode(bytes); });
    EXPECT_TRUE(error == "no error" || error.find("the text: line ") == 0) << error;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GoldenTokenizer,
                         testing::Values("bert", "gpt2", "llama", "llama3", "qwen2", "roberta", "suffix",
                                         "unigram-always", "unigram-first", "unigram-never", "words"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

const std::string kWords = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\n##s\n,\nsat\n";

TEST(PretrainedTokenizer, ReadsBertsVocabularyFile) {
  const PretrainedFolder folder({{"vocab.txt", kWords}});
  const auto tokenizer = PretrainedTokenizer::open(folder.path(), "bert");
  const EncodedText encoded = tokenizer.encode("Th\xC3\xA9 cats, [MASK] dog");
  EXPECT_EQ(encoded.ids(), (std::vector<int32_t>{2, 5, 6, 7, 8, 4, 1, 3}));
  EXPECT_EQ(encoded.tokens[2].begin, 5u);  // "cat", after é of two bytes
  EXPECT_EQ(encoded.tokens[3].end, 9u);
  EXPECT_EQ(encoded.tokens[3].word, encoded.tokens[2].word);
  EXPECT_EQ(encoded.tokens[0].word, -1);
  EXPECT_EQ(tokenizer.decode(encoded.ids()), "the cats,");  // "dog" is unknown, and [UNK] a special token
  EXPECT_EQ(tokenizer.special().mask, 4);
  EXPECT_EQ(tokenizer.kind(), "WordPiece");
}

TEST(PretrainedTokenizer, ReportsWhatALimitLeavesOut) {
  const PretrainedFolder folder({{"vocab.txt", kWords}});
  const auto tokenizer = PretrainedTokenizer::open(folder.path(), "bert");
  const EncodedText one = tokenizer.encode("the cat sat the cat", {.most = 5});
  EXPECT_EQ(one.ids(), (std::vector<int32_t>{2, 5, 6, 9, 3}));
  EXPECT_EQ(one.left_out, 2u);
  const EncodedText two = tokenizer.encode_pair("the cat sat the cat", "the cat", {.most = 8});
  EXPECT_EQ(two.ids(), (std::vector<int32_t>{2, 5, 6, 9, 3, 5, 6, 3}));
  EXPECT_EQ(two.types(), (std::vector<int32_t>{0, 0, 0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(two.left_out, 2u);
  EXPECT_EQ(error_of([&] { tokenizer.encode("the", {.most = 2}); }),
            "a limit of 2 tokens leaves no room for text: 2 are special");
}

TEST(PretrainedTokenizer, ReadsByteLevelFilesLikeTheirTokenizerJson) {
  const Json golden = read_json("gpt2.json"), lines = read_json("lines.json");
  std::string merges = "#version: 0.2\n";
  for (const Json& merge : golden["tokenizer"]["model"]["merges"])
    merges += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  const PretrainedFolder folder({{"vocab.json", golden["tokenizer"]["model"]["vocab"].dump()}, {"merges.txt", merges}});
  const auto tokenizer = PretrainedTokenizer::open(folder.path(), "gpt2");
  for (size_t i = 0; i < lines.size(); ++i)
    EXPECT_EQ(tokenizer.encode(lines[i].get<std::string>()).ids(), golden["ids"][i].get<std::vector<int32_t>>());
  EXPECT_EQ(tokenizer.special().eos, 0);
}

std::string tokenizer_json(const std::string& parts) {
  return R"({"model": {"type": "WordPiece", "vocab": {"[UNK]": 0, "a": 1}, "unk_token": "[UNK]"})" + parts + "}";
}

TEST(PretrainedTokenizer, NamesWhatItDoesNotRead) {
  const auto error = [](const std::string& content) {
    const PretrainedFolder folder({{"tokenizer.json", content}});
    std::string text = error_of([&] { PretrainedTokenizer::open(folder.path()); });
    if (const size_t at = text.find(folder.path()); at != std::string::npos)
      text.replace(at, folder.path().size(), "D");
    return text;
  };
  EXPECT_EQ(error(tokenizer_json("")), "no error");
  EXPECT_EQ(
      error(tokenizer_json(R"(, "normalizer": {"type": "Precompiled"})")),
      "D/tokenizer.json: normalizer.type is \"Precompiled\", expected one of those that qkv knows: BertNormalizer, "
      "Lowercase, NFC, NFD, NFKC, NFKD, Prepend, Replace, Sequence, Strip, StripAccents");
  EXPECT_EQ(error(tokenizer_json(R"(, "pre_tokenizer": {"type": "ByteLevel"})")),
            "D/tokenizer.json: model.type is \"WordPiece\", expected BPE, which ByteLevel needs");
  EXPECT_EQ(
      error(tokenizer_json(R"(, "added_tokens": [{"id": 1, "content": "b"}])")),
      "D/tokenizer.json: added_tokens[0].id is 1, expected the number that the vocabulary gives this token, or one "
      "that it does not use");
  EXPECT_EQ(error("{"), "D/tokenizer.json: not JSON, or damaged, at byte 2");
  EXPECT_EQ(error("{}"), "D/tokenizer.json: model.type is missing, expected a text");
  EXPECT_EQ(error(R"({"model": {"type": "WordPiece", "vocab": {"a": -1}}})"),
            "D/tokenizer.json: model.vocab.a is -1, expected a whole number from 0 to 3999999");
  EXPECT_EQ(error(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}})"),
            "D/tokenizer.json: model.merges[0] is \"a b\", expected two tokens of the vocabulary that make a third");
}

TEST(PretrainedTokenizer, RefusesFoldersAndTextsThatItCannotUse) {
  const PretrainedFolder empty({}), words({{"vocab.txt", kWords}}), lacks({{"vocab.txt", std::string("a\nb\n")}});
  EXPECT_EQ(error_of([&] { PretrainedTokenizer::open(empty.path()); }), empty.path() + ": has no tokenizer");
  EXPECT_EQ(error_of([&] { PretrainedTokenizer::open(lacks.path()); }),
            lacks.path() + "/vocab.txt: has no [UNK], which the model needs");
  const auto tokenizer = PretrainedTokenizer::open(words.path());
  EXPECT_EQ(error_of([&] { tokenizer.encode("a\xFF"); }), "the text: line 1: not UTF-8: byte 0xff at offset 1");
  const std::vector<int32_t> ids = {5, 10};
  EXPECT_EQ(error_of([&] { tokenizer.decode(ids); }), "there is no token 10, expected 0 to 9");
  const PretrainedFolder other({{"vocab.txt", kWords}, {"tokenizer_config.json", R"({"bos_token": "<s>"})"}});
  EXPECT_EQ(error_of([&] { PretrainedTokenizer::open(other.path()); }),
            other.path() +
                ": bos_token is <s>, which the vocabulary does not have: are the tokenizer's files of another "
                "model?");
}

// llama2.c's file: the longest length, then score, length and bytes of each token.
std::string llama2c_file(const std::vector<std::pair<float, std::string>>& tokens) {
  std::string out("\x08\0\0\0", 4);
  const auto add = [&](float score, const std::string& piece) {
    const auto length = static_cast<int32_t>(piece.size());
    out.append(reinterpret_cast<const char*>(&score), 4).append(reinterpret_cast<const char*>(&length), 4) += piece;
  };
  for (const char* special : {"<unk>", "\n<s>\n", "\n</s>\n"}) add(0, special);
  for (int b = 0; b < 256; ++b) add(0, std::string(1, static_cast<char>(b)));
  for (const auto& [score, piece] : tokens) add(score, piece);
  return out;
}

TEST(PretrainedTokenizer, ReadsTheFileOfLlama2c) {
  const PretrainedFolder folder(
      {{"tokenizer.bin", llama2c_file({{-9, " "}, {-9, "a"}, {-9, "b"}, {-1, "ab"}, {-2, " a"}, {-3, " ab"}})}});
  const auto tokenizer = PretrainedTokenizer::open_llama2c(folder.path() + "/tokenizer.bin");
  EXPECT_EQ(tokenizer.size(), 265);
  // The better score merges first: "ab", then " ab". é is unknown and becomes its bytes.
  EXPECT_EQ(tokenizer.encode("ab a\xC3\xA9").ids(), (std::vector<int32_t>{1, 264, 263, 3 + 0xC3, 3 + 0xA9}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("ab a\xC3\xA9").ids()), "ab a\xC3\xA9");
  const std::string path = folder.path() + "/tokenizer.bin";
  fs::resize_file(path, 20);
  EXPECT_EQ(error_of([&] { PretrainedTokenizer::open_llama2c(path); }),
            path + ": ends in token 1, 20 bytes from its beginning");
}

}  // namespace
}  // namespace qkv
