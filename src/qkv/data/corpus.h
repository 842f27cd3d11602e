// Reading text: lines, sentence pairs, and splits that do not leak.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/limits.h"

namespace QKV_API qkv {

/// The text of a file, gzipped or not, with \n as line end and without a byte-order mark. Only the first `lines` lines
/// of a gzipped file are unpacked (-1: all). A file that is empty, not UTF-8, larger than `limit` bytes (unpacked), or
/// compressed far better than text can be, is an error.
std::string read_text(const std::string& path, uint64_t limit = limits::kTextBytes, int64_t lines = -1);
/// The lines of a file; text after the last line end is one more line unless it is empty.
std::vector<std::string> read_lines(const std::string& path);

/// Sentences as in the files: source[i] goes with target[i].
struct SentencePairs {
  std::vector<std::string> source, target;
  int64_t size() const { return static_cast<int64_t>(source.size()); }
  /// Up to `count` pairs, starting at `begin`.
  SentencePairs part(int64_t begin, int64_t count) const;
};

/// What to do with the third column of newer Tatoeba files, the licence.
enum class ThirdColumn { ignore, refuse };

/// Fails, naming the line, unless it has two columns, or three where that is allowed.
void check_columns(std::string_view line, const std::string& path, int64_t number, ThirdColumn third);
/// Pairs from the first `limit` tab-separated lines (-1: all). A line with another number of columns is an error that
/// names the line.
SentencePairs read_pairs(const std::string& tsv_path, int64_t limit = -1, ThirdColumn third = ThirdColumn::ignore);
/// Pairs from two files, line by line; different numbers of lines are an error that names both.
SentencePairs read_aligned(const std::string& source_path, const std::string& target_path);

/// Writes tab-separated lines; a sentence with a tab or a line end is an error.
void write_pairs(const std::string& path, const SentencePairs& pairs);

/// Indices of pairs, ascending.
struct Split {
  std::vector<int64_t> train, validation, test;
};

/// Splits pairs by distinct source (compared in lower case, blanks collapsed): pairs with the same source stay
/// together. Sources are drawn in an order that depends only on the seed until test and validation have at least the
/// requested numbers of pairs; the rest is for training.
Split split_by_source(const SentencePairs& pairs, int64_t validation, int64_t test, uint64_t seed);
/// The pairs with these indices.
SentencePairs select(const SentencePairs& pairs, const std::vector<int64_t>& numbers);

}  // namespace qkv
