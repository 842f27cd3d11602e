// Word alignments in Pharaoh format and their error rate against gold links (Och and Ney, 2003).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/language.h"

namespace QKV_API qkv {

/// A link between a source word and a target word, both counted from 0. A possible gold link is neither required nor
/// wrong.
struct AlignmentLink {
  int32_t source = 0, target = 0;
  bool possible = false;
  bool operator==(const AlignmentLink&) const = default;
};
using Alignment = std::vector<AlignmentLink>;

struct AlignmentFile {
  std::vector<Alignment> lines;  // sorted, every pair once (sure if it occurs both ways)
  int base = 0;                  // what the file counted from
  bool base_detected = false;    // no `base` was given: 0 if some index is 0, else 1
};

/// Reads lines of links separated by spaces: `1-2` is sure, `1p2` and `1?2` are possible. Errors name the file, the
/// line and the link.
AlignmentFile parse_alignments(std::span<const std::string> lines, const Text& file,
                               std::optional<int> base = std::nullopt);

/// Checks links against the numbers of source and target words of each line; links beyond them are an error.
void check_alignment_lengths(const AlignmentFile& alignments, const Text& file, std::span<const int64_t> source_lengths,
                             std::span<const int64_t> target_lengths);

/// Sums over all lines; a quotient with denominator 0 has no value.
struct AlignmentScore {
  int64_t links = 0, sure = 0, possible = 0;  // |A|, |S|, |P| with S a subset of P
  int64_t in_sure = 0, in_possible = 0;       // |A and S|, |A and P|
  std::optional<double> error_rate() const;   // 1 - (|A and S| + |A and P|) / (|A| + |S|)
  std::optional<double> precision() const;    // |A and P| / |A|
  std::optional<double> recall() const;       // |A and S| / |S|
  std::optional<double> f_score() const;      // harmonic mean of the two
  AlignmentScore& operator+=(const AlignmentScore& other);
};

/// Scores one sentence. Sure and possible links of the alignment count the same.
AlignmentScore score_alignment(const Alignment& alignment, const Alignment& gold);
/// Scores a corpus; the numbers of lines must be equal.
AlignmentScore score_alignments(std::span<const Alignment> alignments, std::span<const Alignment> gold);

}  // namespace qkv
