// The built-in English-French corpus: sentence pairs from a small grammar, with gold word alignments (docs/corpus.md
// has the conventions).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "qkv/core/api.h"

namespace QKV_API qkv {

/// The part of the split a sentence belongs to. It depends only on its words, never on the seed.
enum class CorpusPart { train, valid, test };

/// (source word, target word), 0-based.
using WordLinks = std::vector<std::pair<int32_t, int32_t>>;

/// A sentence pair; words are separated by single blanks.
struct AlignedPair {
  std::string source, target;
  WordLinks links;     // sure links, ascending
  WordLinks possible;  // links that are neither required nor wrong (the "is" of "is sleeping" with "dort"), ascending
  CorpusPart part = CorpusPart::train;
};

struct EnFrOptions {
  int64_t size = 20'000;
  uint64_t seed = 1;
  bool reverse = false;  // French to English
};

/// The largest allowed size.
constexpr int64_t en_fr_limit = 2'000'000;

/// `size` pairs, all sources distinct and all targets distinct, in the order of generation: a smaller corpus with the
/// same seed is a prefix.
std::vector<AlignedPair> en_fr_corpus(const EnFrOptions& options = {});

struct EnFrSplit {
  std::vector<AlignedPair> train, valid, test;
};

/// A corpus divided by `part`: a held-out sentence has a combination of two known words (verb and object, adjective and
/// noun, ...) that no training sentence of any seed has.
EnFrSplit en_fr_split(std::vector<AlignedPair> corpus);
EnFrSplit en_fr_split(const EnFrOptions& options = {});

/// Links in Pharaoh format, "0-0 1-2"; for a pair, possible links are included as "1p2", sorted by words.
std::string pharaoh(const WordLinks& links);
std::string pharaoh(const AlignedPair& pair);

}  // namespace qkv
