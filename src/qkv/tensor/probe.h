// Probe: looks at a forward pass without touching it.
#pragma once

#include <string_view>

namespace qkv {

class Tensor;
class Weights;  // attention/weights.h

/// Given to a Run. Called after an attention is computed, with nothing recorded and no random number drawn: it cannot
/// change bits.
class Probe {
 public:
  virtual ~Probe() = default;
  /// The weights of the attention at a path such as "encoder.0.self".
  virtual void attention(std::string_view path, const Weights& weights) = 0;
  /// What the multi-head attention at that path averages, after its projection: (B, m, key_heads D).
  virtual void values(std::string_view /*path*/, const Tensor& /*v*/) {}
};

}  // namespace qkv
