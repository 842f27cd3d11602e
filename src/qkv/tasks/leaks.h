// Proves by perturbation that outputs do not depend on anything they must not see: later target tokens, padding, other
// rows of the batch, the cache.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/data/translation.h"
#include "qkv/decode/step_model.h"
#include "qkv/tasks/translation/translator.h"

namespace QKV_API qkv {

/// The model under test: its scores with teacher forcing, and a decoder that takes one token at a time.
struct LeakSubject {
  /// source (B, S), lengths (B), target_in (B, T), which begins with <bos> -> (B, T, V).
  std::function<Tensor(const Ids& source, const Ids& lengths, const Ids& target_in)> logits;
  std::function<std::unique_ptr<SourceStepModel>()> decoder;
  int64_t source_vocabulary = 0, target_vocabulary = 0;
  int32_t source_pad = 1, target_pad = 1, begin = 2;
  int64_t least_source = 0;    // source sentences are padded to this length, for an encoder that reads padding
  int64_t most_positions = 0;  // longest sentence, with padding; 0: no limit
};

enum class Leak { later_tokens, padding, batch_mates, cache };

struct LeakResult {
  Leak kind;
  int64_t tried = 0;               // perturbations; for the cache, steps of a row
  int64_t compared = 0;            // scores
  double largest = 0;              // max |difference|, NaN if a score is NaN; for the cache, relative to
                                   // max(1, largest score of the step)
  int64_t pair = 0, position = 0;  // where the largest difference is, from 0
  /// Something was tried, and all scores are equal to the bit; for the cache, within the tolerance.
  bool passed = true;
};

struct LeakReport {
  std::vector<LeakResult> results;  // one per kind
  /// Changes to an input that outputs may depend on (a source token or the first target token), and how many had an
  /// effect: comparing scores that never change would prove nothing.
  int64_t controls = 0, noticed = 0;
  bool passed() const;  // every result passed, and at least one control had an effect
};

struct LeakOptions {
  uint64_t seed = 0;
  double cache_tolerance = 1e-5;
};

/// pairs: at least one, both sides with <eos>.
LeakReport leaks(const LeakSubject& subject, std::span<const IdPair> pairs, const LeakOptions& options = {});

/// A translator's model as a subject; the translator must outlive the subject.
LeakSubject leak_subject(const Translator& translator);
/// Pairs of 1 to 12 random tokens per side and <eos>, within the positions that the model has.
std::vector<IdPair> random_pairs(const Translator& translator, int64_t count, const Rng& rng);

}  // namespace qkv
