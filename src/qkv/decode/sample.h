// Sampling: outputs of a StepModel drawn from its distribution, optionally sharpened or truncated, many sentences at
// once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/decode/search.h"

namespace QKV_API qkv {

struct SampleOptions {
  int64_t samples = 1;     // per sentence
  double temperature = 1;  // scores are divided by it; 0 takes the largest, like greedy search
  int64_t top_k = 0;       // only the k likeliest tokens; 0: all
  double top_p = 1;  // only the fewest tokens that together have probability p (Holtzman et al., 2020), after top_k
  /// The scores of tokens that a row has read or written are divided by this if they are positive, else multiplied by
  /// it (Keskar et al., 2019); 1: unchanged. It comes before the temperature.
  double repetition_penalty = 1;
  std::vector<std::vector<int32_t>> read = {};  // per row, for the penalty: the tokens of its prompt
  uint64_t seed = 0;
  double length_penalty = 0.75;     // of the reported score
  int64_t max_length = 50;          // tokens, not including the end
  int32_t begin = 2, end = 3;       // ids of <bos> and <eos>
  std::vector<int32_t> never = {};  // ids that are never written: <pad>, <bos>
  /// Whether a text ends with this token, which it keeps: asked after each token of each sentence and sample.
  std::function<bool(size_t sentence, size_t sample, int32_t token)> ends = {};
  bool keep_attention = false;
  DecodeWatch watch = {};
};

/// Samples for each row of a started model, in the order of drawing; their log-probabilities are the model's own, at
/// temperature 1 without truncation. first (R): the first token fed to each row. numbers (R): the random numbers of a
/// row depend on this, the seed, the sample and the step. The samples of a row do not depend on the other rows.
std::vector<std::vector<Hypothesis>> sample(StepModel& model, std::span<const int32_t> first,
                                            std::span<const uint64_t> numbers, const SampleOptions& options);
/// The same for source sentences (B, T) with lengths (B), starting with `begin`.
std::vector<std::vector<Hypothesis>> sample(SourceStepModel& model, const Ids& source, const Ids& lengths,
                                            std::span<const uint64_t> numbers, const SampleOptions& options);

}  // namespace qkv
