// Vocabulary: tokens and their ids.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/data/edition.h"

namespace QKV_API qkv {

inline constexpr std::string_view kUnknown = "<unk>", kPadding = "<pad>", kBegin = "<bos>", kEnd = "<eos>";

/// Counts tokens, in order of first appearance.
class TokenCounts {
 public:
  TokenCounts();
  ~TokenCounts();
  TokenCounts(TokenCounts&&) noexcept;
  TokenCounts& operator=(TokenCounts&&) noexcept;
  /// Returns the index of the token among the distinct ones, by first appearance.
  size_t add(std::string_view token, int64_t times = 1);
  size_t distinct() const;
  std::string_view token(size_t number) const;  // valid as long as this object

 private:
  friend class Vocabulary;
  struct State;
  std::unique_ptr<State> state_;
};

/// Immutable and cheap to copy.
class Vocabulary {
 public:
  /// The special tokens only.
  Vocabulary();
  /// All tokens that occur at least `min_count` times.
  /// zh: <unk> <pad> <bos> <eos> are 0 to 3, the others follow by count, ties by first appearance.
  /// en: all tokens, including <unk> <pad> <eos>, sorted by code point; <bos> only if the lines have it.
  static Vocabulary build(const std::vector<std::vector<std::string>>& lines, int64_t min_count,
                          Edition edition = Edition::zh);
  static Vocabulary build(const TokenCounts& counts, int64_t min_count, Edition edition = Edition::zh);

  /// The token's id; that of <unk> if it is not in the vocabulary.
  int32_t id(std::string_view token) const;
  const std::string& token(int32_t id) const;
  int32_t size() const;
  bool contains(std::string_view token) const;
  int32_t unk() const;
  int32_t pad() const;
  int32_t bos() const;  // -1 in the English edition's source vocabulary, which has none
  int32_t eos() const;

  /// One token per line, in the order of the ids. A missing special token, a repeated token or invalid UTF-8 is an
  /// error when loading, with file and line; a sorted file (the English edition's) may lack <bos>.
  void save(const std::string& path) const;
  static Vocabulary load(const std::string& path);

  bool operator==(const Vocabulary& other) const;

 private:
  struct State;
  explicit Vocabulary(std::vector<std::string> tokens);
  std::shared_ptr<const State> state_;
};

}  // namespace qkv
