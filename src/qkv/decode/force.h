// Forced decoding: what a model thinks of outputs that are given, and where it looks while it writes them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "qkv/decode/step_model.h"

namespace qkv {

struct Forced {
  std::vector<double> log_probabilities;  // of every token, the end included
  Tensor attention;                       // (tokens, maps, T), where it is kept and the model has any
  double log_probability() const;
};

/// targets: one list of ids for every source sentence, each with its <eos>. source (B, T), lengths (B). Scores that are
/// not numbers are an error.
std::vector<Forced> force(SourceStepModel& model, const Ids& source, const Ids& lengths,
                          std::span<const std::vector<int32_t>> targets, int32_t begin, bool keep_attention = true);

}  // namespace qkv
