// Search for the best output of a StepModel: greedy and beam, many sentences at once.
#pragma once

#include <cstdint>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/decode/step_model.h"

namespace QKV_API qkv {

/// A hypothesis that a search kept at some step, or that ended there.
struct SearchNode {
  int32_t parent = -1;  // its place in the tree; -1: the beginning
  int32_t token = 0;
  double log_probability = 0;  // of all tokens so far
  bool ended = false;
};

struct SearchOptions {
  int64_t beam = 1;                 // hypotheses kept; 1 is greedy
  int64_t best = 1;                 // hypotheses returned, at most `beam`
  double length_penalty = 0.75;     // a: a hypothesis of L tokens (including its end) is ranked by log p / L^a
  int64_t max_length = 50;          // tokens, not including the end
  int32_t begin = 2, end = 3;       // ids of <bos> and <eos>
  std::vector<int32_t> never = {};  // ids that are never written: <pad>, <bos>
  bool keep_attention = false;
  DecodeWatch watch = {};
  std::vector<SearchNode>* tree = nullptr;  // gets everything that was kept, for a search of one sentence
};

struct Hypothesis {
  std::vector<int32_t> tokens = {};  // without <bos> and <eos>
  double log_probability = 0;        // of the tokens and the end
  double score = 0;                  // log p / L^a
  bool ended = false;                // false: cut off at max_length
  Tensor attention = {};             // (steps, maps, T); including the step that wrote the end
};

/// The best continuations of each row of a started model, best first; first (R): the first token fed to each row. Equal
/// scores: the earlier hypothesis, then the smaller id. The result of a row does not depend on the other rows.
std::vector<std::vector<Hypothesis>> search(StepModel& model, std::span<const int32_t> first,
                                            const SearchOptions& options);
/// The same for source sentences (B, T) with lengths (B), starting with `begin`.
std::vector<std::vector<Hypothesis>> search(SourceStepModel& model, const Ids& source, const Ids& lengths,
                                            const SearchOptions& options);

}  // namespace qkv
