// Word alignments: scores against gold links, the choice among the maps of a model, links; as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "qkv/core/language.h"
#include "qkv/eval/alignment.h"
#include "qkv/tasks/translation/attention_alignment.h"

namespace qkv::report {

/// The readings of a model's attention that there were to choose from.
struct AlignmentChoice {
  std::vector<AlignmentReading> readings;
  std::vector<AlignmentScore> scores;  // of each; empty without gold links
  size_t best = 0;
  int64_t heads = 1;  // of a layer
};

/// "AER 12.0 %  precision 90.0 %  recall 86.0 %  F 88.0 %  (100 links, gold 90 sure and 10 possible, 20 lines)\n".
std::string score_text(const AlignmentScore& score, size_t lines);
/// {"aer": 0.12, "precision": 0.9, ..., "lines": 20}; of a choice also by which map, and the error rates of all.
std::string to_json(const AlignmentScore& score, size_t lines, const AlignmentChoice* choice = nullptr);

/// "layer 2, head 3, shift 1", of the best.
Text best_name(const AlignmentChoice& choice);
/// Error rates: one line per head, one column per shift; the best has a star. Then the best by name.
std::string choice_table(const AlignmentChoice& choice, Language language);
/// Links of every line as [source word, target word], counted from `base`, and by which map they are.
std::string links_json(const AlignmentChoice& choice, const std::vector<Alignment>& alignments, int64_t base);

}  // namespace qkv::report
