// Forced decoding: the probabilities a model gives to given outputs, and its attention along the way.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/decode/step_model.h"

namespace QKV_API qkv {

/// A token that could have been written at a step.
struct LikelyToken {
  int32_t token = 0;
  double log_probability = 0;
};

struct Forced {
  std::vector<double> log_probabilities;  // of every token, including the end
  /// The likeliest tokens of every step, best first, if they were asked for.
  std::vector<std::vector<LikelyToken>> likeliest = {};
  Tensor attention;  // (tokens, maps, T), if it is kept and the model has any
  double log_probability() const;
};

/// targets: one list of ids per source sentence, each with its <eos>. source (B, T), lengths (B). `likeliest`: how many
/// of the likeliest tokens of each step are kept. NaN scores are an error.
std::vector<Forced> force(SourceStepModel& model, const Ids& source, const Ids& lengths,
                          std::span<const std::vector<int32_t>> targets, int32_t begin, bool keep_attention = true,
                          int64_t likeliest = 0);

}  // namespace qkv
