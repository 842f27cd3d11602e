// Probe: observes a forward pass without changing it.
#pragma once

#include <string_view>

#include "qkv/core/api.h"

namespace QKV_API qkv {

class Tensor;
class Weights;  // attention/weights.h

/// Passed in a Run. Called after an attention is computed; it records nothing and draws no random number, so it cannot
/// change results.
class Probe {
 public:
  virtual ~Probe() = default;
  /// The weights of the attention at a path such as "encoder.0.self".
  virtual void attention(std::string_view path, const Weights& weights) = 0;
  /// The values that the multi-head attention at that path averages, after projection: (B, m, key_heads D).
  virtual void values(std::string_view /*path*/, const Tensor& /*v*/) {}
};

}  // namespace qkv
