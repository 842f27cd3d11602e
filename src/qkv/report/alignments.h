// Word alignments as text and JSON: links, scores against gold links, and the choice among the maps of a model.
#pragma once

#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/language.h"
#include "qkv/eval/alignment.h"
#include "qkv/plot/figure.h"
#include "qkv/tasks/translation/attention_alignment.h"

namespace QKV_API qkv {
namespace report {

/// The readings of a model's attention to choose from, and the best.
struct AlignmentChoice {
  std::vector<AlignmentReading> readings;
  std::vector<AlignmentScore> scores;  // one per reading; empty without gold links
  size_t best = 0;
  int64_t heads = 1;  // per layer
};

/// "AER 12.0 %  precision 90.0 %  recall 86.0 %  F 88.0 %  (100 links, gold 90 sure and 10 possible, 20 lines)\n".
std::string score_text(const AlignmentScore& score, size_t lines, Language language);
/// {"aer": 0.12, "precision": 0.9, ..., "lines": 20}; with a choice, also the chosen map and all error rates.
std::string to_json(const AlignmentScore& score, size_t lines, const AlignmentChoice* choice = nullptr);

/// The name of the best reading, "layer 2, head 3, shift 1".
Text best_name(const AlignmentChoice& choice);
/// Error rates: one line per head, one column per shift; the best has a star. Then the best by name.
std::string choice_table(const AlignmentChoice& choice, Language language);
/// The links of every line as [source word, target word], counted from `base`, and the map that they are from.
std::string links_json(const AlignmentChoice& choice, const std::vector<Alignment>& alignments, int64_t base);

/// A sentence pair in aligned units, the weights (target, source) it was aligned by, and its links.
struct DrawnAlignment {
  std::vector<std::string> source, target;
  Tensor weights;
  Alignment links;
};
/// The weights of each pair with the links framed.
Figure alignments_figure(std::vector<DrawnAlignment> pairs, Text title);

}  // namespace report
}  // namespace qkv
