// Run: all that a forward pass depends on besides its inputs and weights.
#pragma once

#include <string_view>

#include "qkv/core/rng.h"

namespace qkv {

class Probe;

/// Run{} is inference. In training it carries the random stream of the current path, e.g. "encoder.0.self".
struct Run {
  bool training = false;
  Rng rng{0};
  Probe* probe = nullptr;

  /// The run of a child: its random numbers are those of its path, whatever its siblings draw.
  Run at(std::string_view child) const { return {training, rng.at(child), probe}; }
  Run at(uint64_t index) const { return {training, rng.at(index), probe}; }
};

}  // namespace qkv
