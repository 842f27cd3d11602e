// PretrainedTokenizer: the tokenizer files of a pretrained model's folder, as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/api.h"

namespace QKV_API qkv {

/// The most rows that an embedding may have.
inline constexpr int32_t kMostRows = 10'000'000;

/// A token of an encoded text and where it comes from.
struct EncodedToken {
  int32_t id = 0;
  int32_t text = 0;   // the type id: 0 in the first text, 1 in the second of a pair
  int32_t word = -1;  // which word of its text it belongs to, counted from 0; -1: a token that the tokenizer added
  size_t begin = 0;   // bytes of its text; both 0 for an added token
  size_t end = 0;
};

/// A text, or a pair of texts, as a model reads it.
struct EncodedText {
  std::vector<EncodedToken> tokens;
  size_t left_out = 0;  // tokens that the limit cut off
  std::vector<int32_t> ids() const;
  std::vector<int32_t> types() const;
};

struct EncodeOptions {
  bool special = true;  // with <s>, [CLS], </s> and so on, where the model expects them
  size_t most = 0;      // tokens, special ones included; longer texts are cut off at the end. 0: no limit
};

struct DecodeOptions {
  bool special = false;  // write special tokens too
};

/// Numbers of the tokens with a task of their own; -1 where there is none. A folder's model may name further ones
/// (decoder_start_token_id in config.json).
struct SpecialIds {
  int32_t bos = -1, eos = -1, pad = -1, unk = -1, cls = -1, sep = -1, mask = -1;
};

/// Immutable and cheap to copy. Text that is not UTF-8 is refused.
class PretrainedTokenizer {
 public:
  /// Opens a folder. What is read, in this order: source.spm with vocab.json (Marian), tokenizer.json, vocab.txt
  /// (WordPiece), vocab.json with merges.txt (byte-level BPE), tokenizer.model (SentencePiece), tokenizer.bin
  /// (llama2.c). `model_type` is the one of config.json; it decides what files without tokenizer.json leave open: which
  /// tokens surround a text.
  static PretrainedTokenizer open(const std::string& folder, std::string_view model_type = {});
  /// Whether a folder has files that `open` reads.
  static bool is_in(const std::string& folder);
  /// llama2.c's tokenizer.bin. `size`: the vocabulary of the model, because the file does not store it; 0: up to the
  /// end of the file.
  static PretrainedTokenizer open_llama2c(const std::string& path, int32_t size = 0);

  EncodedText encode(std::string_view text, const EncodeOptions& options = {}) const;
  /// A text that the model writes. Marian's target.spm cuts it; without one, the longest pieces of the vocabulary are
  /// taken.
  EncodedText encode_target(std::string_view text, const EncodeOptions& options = {}) const;
  /// Two texts as BERT reads them. A limit cuts the longer text first.
  EncodedText encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options = {}) const;
  /// Special tokens are left out. A number without a token is refused.
  std::string decode(std::span<const int32_t> ids, const DecodeOptions& options = {}) const;

  /// A token as the vocabulary writes it: "▁the", "##ing", "Ġthe".
  const std::string& piece(int32_t id) const;
  /// A token as text to show: "the", "ing"; special tokens keep their names.
  std::string shown(int32_t id) const;
  std::optional<int32_t> id(std::string_view piece) const;
  /// One more than the largest number; a number below it may be unused. At most the rows of the model's embedding.
  int32_t size() const;
  const SpecialIds& special() const;
  bool is_special(int32_t id) const;
  /// The most tokens that the folder's tokenizer_config.json states; 0: none stated.
  size_t most_tokens() const;
  /// ">>fra<<" and so on: what a multilingual Marian model accepts at the beginning of a text.
  const std::vector<std::string>& languages() const;
  /// "WordPiece", "BPE of bytes", "SentencePiece": for `info`.
  const std::string& kind() const;
  /// The files that were read, without their folder: what a copy of the tokenizer consists of.
  const std::vector<std::string>& files() const;
  /// Copies these files into a folder, which is made if it is not there.
  void save(const std::string& folder) const;

 private:
  struct State;
  explicit PretrainedTokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace qkv
