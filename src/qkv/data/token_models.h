// Token models: words to tokens of a vocabulary, by WordPiece, byte pairs or unigrams.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace qkv {

/// A token of a word; its bytes there.
struct WordToken {
  int32_t id = 0;
  uint32_t begin = 0, end = 0;
};

/// The pieces of a vocabulary and their numbers, which need not be without gaps.
class PieceTable {
 public:
  PieceTable() = default;
  explicit PieceTable(std::vector<std::string> pieces);  // the number is the place; "": unused
  PieceTable(PieceTable&&) = default;
  PieceTable& operator=(PieceTable&&) = default;

  std::optional<int32_t> find(std::string_view piece) const {
    const auto found = ids_.find(piece);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }
  const std::string& piece(int32_t id) const { return pieces_[static_cast<size_t>(id)]; }
  int32_t size() const { return static_cast<int32_t>(pieces_.size()); }
  bool is_used(int32_t id) const { return id >= 0 && id < size() && !piece(id).empty(); }
  size_t longest() const { return longest_; }

 private:
  std::vector<std::string> pieces_;
  std::unordered_map<std::string_view, int32_t> ids_;
  size_t longest_ = 0;
};

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  /// Appends the tokens of a word. Time is at most n log n in its length.
  virtual void tokens(std::string_view word, std::vector<WordToken>& out) const = 0;
};

struct WordPieceOptions {
  int32_t unk = 0;
  std::string prefix = "##";  // of pieces inside a word
  size_t longest = 100;       // characters of a word; longer ones are <unk>
};
std::unique_ptr<const TokenModel> word_piece_model(const PieceTable& table, const WordPieceOptions& options);

/// Two tokens that become one; the lowest rank merges first, and of equal ones the leftmost.
struct Merge {
  int32_t left = 0, right = 0, merged = 0, rank = 0;
};
struct BytePairOptions {
  int32_t unk = -1;            // -1: characters that have no token are left out
  bool fuse_unk = false;       // unknown characters in a row are one token
  bool byte_fallback = false;  // their bytes are tokens "<0x0A>" where all are in the vocabulary
  bool whole_words = false;    // a word that is a token needs no merges
  bool bytes = false;          // symbols are bytes, which the vocabulary writes as GPT-2 does
  std::string prefix, suffix;  // of symbols inside a word, and at its end
};
std::unique_ptr<const TokenModel> byte_pair_model(const PieceTable& table, std::span<const Merge> merges,
                                                  const BytePairOptions& options);
/// The merges that a vocabulary with scores means: any two tokens whose texts make a third, the best score first.
std::vector<Merge> merges_of_scores(const PieceTable& table, std::span<const float> scores);

struct UnigramOptions {
  int32_t unk = -1;
  bool byte_fallback = false;
};
std::unique_ptr<const TokenModel> unigram_model(const PieceTable& table, std::vector<double> scores,
                                                const UnigramOptions& options);

/// GPT-2's way of writing bytes as visible characters: "Ġ" is a space.
const std::string& byte_sign(unsigned char byte);
/// The bytes that such a piece stands for; nothing if it has another character.
std::optional<std::string> bytes_of_signs(std::string_view piece);
/// "<0x0A>"
std::string byte_piece(unsigned char byte);
/// The byte of such a piece.
std::optional<unsigned char> byte_of_piece(std::string_view piece);

}  // namespace qkv
