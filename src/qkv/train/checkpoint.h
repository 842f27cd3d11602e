// A checkpoint: all a run needs to go on, in one safetensors file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "qkv/tensor/tensor.h"

namespace qkv {

struct Checkpoint {
  std::map<std::string, Tensor> tensors;        // weights, "adam.m.*", "adam.v.*", ...
  std::map<std::string, std::string> counters;  // step, epoch, data position, random counters, and free text
  std::string file = {};                        // that it was read from, for messages

  void set(const std::string& name, int64_t value) { counters[name] = std::to_string(value); }
  /// A counter that must be there and be a whole number.
  int64_t integer(const std::string& name) const;
};

/// With this begin the names of what callbacks save: a word of the first checkpoints, which are still read.
inline constexpr std::string_view kCallbackPrefix = "companion.";
/// Whether a tensor in a file of a run is a weight of the model, not the state of an optimizer or of a callback.
bool is_weight(std::string_view name);

/// Replaces the file in one step: whatever happens, it is the old checkpoint or the new one.
void save_checkpoint(const std::string& path, const Checkpoint& checkpoint);
/// Fails for a safetensors file that is no checkpoint.
Checkpoint load_checkpoint(const std::string& path);

}  // namespace qkv
