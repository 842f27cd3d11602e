// A checkpoint: everything a run needs to resume, in one safetensors file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "qkv/core/api.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

struct Checkpoint {
  std::map<std::string, Tensor> tensors;        // weights, "adam.m.*", "adam.v.*", ...
  std::map<std::string, std::string> counters;  // step, epoch, data position, random counters, and free text
  std::string file = {};                        // the file it was read from, for messages

  void set(const std::string& name, int64_t value) { counters[name] = std::to_string(value); }
  /// A counter that must exist and be a whole number.
  int64_t integer(const std::string& name) const;
};

/// The prefix of names that callbacks save; it dates from the first checkpoints, which can still be read.
inline constexpr std::string_view kCallbackPrefix = "companion.";
/// Whether a tensor in a file of a run is a weight of the model, rather than state of an optimizer or a callback.
bool is_weight(std::string_view name);

/// Replaces the file atomically: it is always either the old checkpoint or the new one.
void save_checkpoint(const std::string& path, const Checkpoint& checkpoint);
/// Fails for a safetensors file that is not a checkpoint.
Checkpoint load_checkpoint(const std::string& path);

}  // namespace qkv
