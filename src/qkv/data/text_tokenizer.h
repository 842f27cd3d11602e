// TextTokenizer: a running text, line ends included, as ids and back.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/data/tokenizer.h"

namespace QKV_API qkv {

/// What a token of a text is.
enum class TextTokens { characters, bytes, words, bpe, unigram, pretrained };
constexpr std::array<std::string_view, 6> names(TextTokens) {
  return {"characters", "bytes", "words", "bpe", "unigram", "pretrained"};
}

/// Immutable and cheap to copy.
class TextTokenizer {
 public:
  /// Every character of the text, by code point, after <unk>.
  static TextTokenizer characters(std::string_view text);
  /// All 256; nothing is unknown.
  static TextTokenizer bytes();
  /// Words or subwords of every line; a line end is <eos>.
  static TextTokenizer lines(Tokenizer tokenizer);
  /// As a pretrained model's folder says, with the tokens that it puts around a text. `model_type` is the one of its
  /// config.json. The model's embedding may have more `rows` than there are tokens (0: as many); size() is their
  /// number.
  static TextTokenizer pretrained(PretrainedTokenizer tokenizer, std::string model_type = {}, int32_t rows = 0);

  std::vector<int32_t> encode(std::string_view text) const;
  /// Bytes need not be UTF-8.
  std::string decode(std::span<const int32_t> ids) const;
  /// Every token as it is shown, one by one: a blank is ␣, a line end ⏎.
  std::vector<std::string> tokens(std::span<const int32_t> ids) const;
  /// What became <unk>: characters, or words between blanks, each once.
  std::vector<std::string> unknown(std::string_view text) const;

  bool is_by_line() const;  // words and subwords
  int32_t size() const;
  int32_t unk() const;       // -1: nothing is unknown
  int32_t line_end() const;  // -1: there is none
  /// The token that a text without any begins with: a line end, or that of a pretrained model; -1: there is none.
  int32_t begin() const;
  /// Null unless it is a pretrained model's.
  const PretrainedTokenizer* pretrained() const;
  /// Ids that a model must never write: <unk>, <pad>, <bos>.
  std::vector<int32_t> never() const;
  /// The most bytes that a line may have.
  size_t most_line_bytes() const;

  /// Writes tokenizer.text.txt ("characters", "bytes", "pretrained MODEL_TYPE ROWS", or as Tokenizer does) and, if
  /// there is one, the vocabulary; the files of a pretrained model's folder go to a folder `tokenizer`.
  void save(const std::string& folder) const;
  static TextTokenizer load(const std::string& folder);

 private:
  struct State;
  explicit TextTokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// The text of tokens that arrive one by one, after those of a prompt. What add() and end() return, joined, is the
/// text; a piece never ends inside a character. Bytes that are not UTF-8 become U+FFFD.
class TextStream {
 public:
  TextStream(TextTokenizer tokenizer, std::span<const int32_t> prompt);
  std::string add(int32_t id);
  std::string end();

 private:
  std::string rest_of_line();

  std::string grown(bool whole);

  TextTokenizer tokenizer_;
  std::vector<int32_t> line_;  // words and subwords: the tokens since the last line end; pretrained: the last ones,
  std::string shown_;          // and their text so far, with the prompt's
  std::string bytes_;          // the beginning of a character
};

/// The text with U+FFFD for every byte that is not UTF-8.
std::string valid_utf8(std::string_view text);

/// The number of characters of UTF-8 text.
int64_t count_characters(std::string_view text);

}  // namespace qkv
