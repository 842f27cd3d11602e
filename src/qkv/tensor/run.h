// Run: everything that a forward pass depends on besides its inputs and weights.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "qkv/core/api.h"
#include "qkv/core/rng.h"

namespace QKV_API qkv {

class Probe;

/// Run{} is inference. In training it carries the random stream of the current path, e.g. "encoder.0.self".
struct Run {
  bool training = false;
  Rng rng{0};
  Probe* probe = nullptr;
  std::string path = {};  // kept for a probe only
  // While decoding, per batch row: how many queries came before; for a probe that edits. Empty: none.
  std::span<const int32_t> first_queries = {};

  /// The run of a child: its random numbers depend on its path alone, not on what its siblings draw.
  Run at(std::string_view child) const {
    return {training, rng.at(child), probe, probe ? below(child) : std::string(), first_queries};
  }
  Run at(uint64_t index) const {
    return {training, rng.at(index), probe, probe ? below(std::to_string(index)) : std::string(), first_queries};
  }

 private:
  std::string below(std::string_view child) const {
    std::string out = path;
    if (!out.empty()) out += '.';
    return out += child;
  }
};

}  // namespace qkv
