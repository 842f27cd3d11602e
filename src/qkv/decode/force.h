// Forced decoding: the probabilities a model gives to given outputs, and its attention along the way.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/decode/step_model.h"

namespace QKV_API qkv {

struct Forced {
  std::vector<double> log_probabilities;  // of every token, including the end
  Tensor attention;                       // (tokens, maps, T), if it is kept and the model has any
  double log_probability() const;
};

/// targets: one list of ids per source sentence, each with its <eos>. source (B, T), lengths (B). NaN scores are an
/// error.
std::vector<Forced> force(SourceStepModel& model, const Ids& source, const Ids& lengths,
                          std::span<const std::vector<int32_t>> targets, int32_t begin, bool keep_attention = true);

}  // namespace qkv
