// Proof by perturbation that an output depends on nothing that it must not see: later target tokens, padding, batch
// mates, the cache.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "qkv/data/translation.h"
#include "qkv/decode/step_model.h"
#include "qkv/tasks/translation/translator.h"

namespace qkv {

/// What is tested: scores with teacher forcing, and a decoder that takes one token at a time.
struct LeakSubject {
  /// source (B, S), lengths (B), target_in (B, T) from <bos> on -> (B, T, V).
  std::function<Tensor(const Ids& source, const Ids& lengths, const Ids& target_in)> logits;
  std::function<std::unique_ptr<SourceStepModel>()> decoder;
  int64_t source_vocabulary = 0, target_vocabulary = 0;
  int32_t source_pad = 1, target_pad = 1, begin = 2;
  int64_t least_source = 0;    // tokens to which every source sentence is padded, for an encoder that reads padding
  int64_t most_positions = 0;  // of a sentence, with padding; 0: any number
};

enum class Leak { later_tokens, padding, batch_mates, cache };

struct LeakResult {
  Leak kind;
  int64_t tried = 0;     // perturbations; of the cache, steps of a row
  int64_t compared = 0;  // scores
  double largest = 0;    // difference, NaN if a score is no number; of the cache divided by the largest score of that
                         // step, at least by 1
  int64_t pair = 0, position = 0;  // where that was, from 0
  bool passed =
      true;  // something was tried, and no score differs, not in a bit; of the cache: by no more than the tolerance
};

struct LeakReport {
  std::vector<LeakResult> results;  // one of each kind
  /// Changes of what an output may depend on, a source token or the first target token, and how many of them it showed:
  /// a test that compares scores which never change would prove nothing.
  int64_t controls = 0, noticed = 0;
  bool passed() const;  // every result, and at least one control was noticed
};

struct LeakOptions {
  uint64_t seed = 0;
  double cache_tolerance = 1e-5;
};

/// pairs: both sides with <eos>, at least one pair.
LeakReport leaks(const LeakSubject& subject, std::span<const IdPair> pairs, const LeakOptions& options = {});

/// A translator's model as a subject; the translator must outlive it.
LeakSubject leak_subject(const Translator& translator);
/// Pairs of random tokens, of 1 to 12 a side and <eos>, within the positions that a subject has.
std::vector<IdPair> random_pairs(const Translator& translator, int64_t count, const Rng& rng);

}  // namespace qkv
