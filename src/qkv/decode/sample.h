// Sampling: outputs of a StepModel drawn from its own distribution, sharpened or cut off, many sentences at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "qkv/decode/search.h"

namespace qkv {

struct SampleOptions {
  int64_t samples = 1;     // of every sentence
  double temperature = 1;  // scores are divided by it; 0 takes the largest, as greedy search does
  int64_t top_k = 0;       // only the k likeliest tokens; 0: all
  double top_p = 1;  // only the fewest tokens that together have probability p (Holtzman et al., 2020), after top_k
  uint64_t seed = 0;
  double length_penalty = 0.75;     // of the score that is reported
  int64_t max_length = 50;          // tokens, the end not included
  int32_t begin = 2, end = 3;       // ids of <bos> and <eos>
  std::vector<int32_t> never = {};  // ids that are never written: <pad>, <bos>
  bool keep_attention = false;
  DecodeWatch watch = {};
};

/// The samples of every row of a model that has been started, in the order they were drawn; their log-probabilities are
/// the model's own, at temperature 1 with nothing cut off. first (R): the token that each row is fed to begin with.
/// numbers (R): what the random numbers of a row depend on, beside the seed, the sample and the step. What one row gets
/// does not depend on the others.
std::vector<std::vector<Hypothesis>> sample(StepModel& model, std::span<const int32_t> first,
                                            std::span<const uint64_t> numbers, const SampleOptions& options);
/// The same of source sentences (B, T) with lengths (B), from `begin` on.
std::vector<std::vector<Hypothesis>> sample(SourceStepModel& model, const Ids& source, const Ids& lengths,
                                            std::span<const uint64_t> numbers, const SampleOptions& options);

}  // namespace qkv
