// Subword models: SentencePiece (Kudo and Richardson, 2018), trained and used through this interface.
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
#include "qkv/core/check.h"

namespace QKV_API qkv {

enum class SubwordKind { bpe, unigram };
constexpr std::array<std::string_view, 2> names(SubwordKind) { return {"bpe", "unigram"}; }

inline constexpr int32_t kLeastSubwords = 8;  // pieces of a model, including <unk>, <pad>, <bos> and <eos>

struct SubwordOptions {
  SubwordKind kind = SubwordKind::bpe;
  int32_t size = 8000;  // including <unk> <pad> <bos> <eos>, which are 0 to 3
  double coverage = 1;  // share of the characters that get a piece; below 1 for scripts with many characters
};

/// A number of pieces that the text cannot give, and the nearest possible one.
class SubwordSizeError : public Error {
 public:
  SubwordSizeError(int32_t size, int32_t nearest);
  int32_t nearest() const { return nearest_; }

 private:
  int32_t nearest_;
};

/// A piece of a sentence and where it comes from.
struct Piece {
  int32_t id = 0;
  size_t begin = 0;  // byte offset in the sentence
};

/// The same with what the piece is, for vocabularies of their own.
struct TextPiece {
  int32_t id = 0;
  std::string text;           // of an unknown character: itself
  size_t begin = 0, end = 0;  // bytes of the sentence
};

/// Immutable and cheap to copy. Blanks are part of the pieces, written as "▁".
class Subwords {
 public:
  /// Trains on sentences in memory; the same sentences give the same bytes. Throws SubwordSizeError.
  static Subwords train(std::span<const std::string> sentences, const SubwordOptions& options = {});
  /// Reads a .model file; a damaged file or a missing special piece is an error.
  static Subwords load(const std::string& path);
  /// The same for a model that others trained, which needs no special pieces but <unk>.
  static Subwords load_pretrained(const std::string& path);
  void save(const std::string& path) const;

  std::vector<int32_t> encode(std::string_view sentence) const;
  std::vector<Piece> encode_pieces(std::string_view sentence) const;
  std::vector<TextPiece> encode_text_pieces(std::string_view sentence) const;
  std::string decode(std::span<const int32_t> ids) const;
  std::optional<int32_t> find(std::string_view piece) const;
  /// <s> and the like, which no text contains.
  bool is_control(int32_t id) const;
  const std::string& piece(int32_t id) const;
  int32_t size() const;
  int32_t unk() const;  // these four are -1 where a pretrained model has none
  int32_t pad() const;
  int32_t bos() const;
  int32_t eos() const;

 private:
  struct State;
  explicit Subwords(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  static Subwords from_file(const std::string& path, bool pretrained);
  static Subwords from_bytes(std::string bytes, const std::string& name, bool pretrained = false);
  std::shared_ptr<const State> state_;
};

/// "SentencePiece 0.1.97".
std::string subword_library();

}  // namespace qkv
