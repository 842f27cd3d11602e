// Reading text: lines, sentence pairs, and splits that do not leak.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/limits.h"

namespace qkv {

/// The text of a file, gzipped or not, with line ends as \n and no byte-order mark; of a gzipped one no more is
/// unpacked than its first `lines` need (-1: all). A file that is empty, not UTF-8, has or unpacks to more than `limit`
/// bytes, or unpacks to far more than text does, is an error.
std::string read_text(const std::string& path, uint64_t limit = limits::kTextBytes, int64_t lines = -1);
/// Its lines; what stands behind the last line end is one more unless it is empty.
std::vector<std::string> read_lines(const std::string& path);

/// Sentences as they stand in the files: source[i] goes with target[i].
struct SentencePairs {
  std::vector<std::string> source, target;
  int64_t size() const { return static_cast<int64_t>(source.size()); }
  /// From pair `begin` on, `count` of them or what is left.
  SentencePairs part(int64_t begin, int64_t count) const;
};

/// What to do with the third column, of licences, that newer Tatoeba files have.
enum class ThirdColumn { ignore, refuse };

/// Fails when a line of that number has not two columns, or three where that is allowed.
void check_columns(std::string_view line, const std::string& path, int64_t number, ThirdColumn third);
/// Pairs from tab separated lines, the first `limit` of them (-1: all). A line with other columns is an error with its
/// number.
SentencePairs read_pairs(const std::string& tsv_path, int64_t limit = -1, ThirdColumn third = ThirdColumn::ignore);
/// Pairs from two files, line by line; different counts are an error that names both.
SentencePairs read_aligned(const std::string& source_path, const std::string& target_path);

/// Writes tab separated lines; a sentence with a tab or a line end is an error.
void write_pairs(const std::string& path, const SentencePairs& pairs);

/// Numbers of pairs, ascending.
struct Split {
  std::vector<int64_t> train, validation, test;
};

/// Divides pairs by distinct source side (compared in lower case, blanks squeezed): pairs with one source never part.
/// Sources are drawn in an order that depends on the seed alone until test and validation have at least the pairs asked
/// for; the rest is for training.
Split split_by_source(const SentencePairs& pairs, int64_t validation, int64_t test, uint64_t seed);
/// The pairs of those numbers.
SentencePairs select(const SentencePairs& pairs, const std::vector<int64_t>& numbers);

}  // namespace qkv
