// Probe: observes the attentions of a forward pass, and may edit them.
#pragma once

#include <string_view>

#include "qkv/core/api.h"

namespace QKV_API qkv {

class Tensor;
class Weights;           // attention/weights.h
struct EditableWeights;  // attention/edits.h

/// Passed in a Run. A probe that only observes is called after an attention is computed; it records nothing and draws
/// no random number, so it cannot change results.
class Probe {
 public:
  virtual ~Probe() = default;
  /// The weights of the attention at a path such as "encoder.0.self", after edits.
  virtual void attention(std::string_view path, const Weights& weights) = 0;
  /// The values that the multi-head attention at that path averages, after projection: (B, m, key_heads D).
  virtual void values(std::string_view /*path*/, const Tensor& /*v*/) {}
  /// Whether `edit` will change the attention at that path. Such an attention is computed as its definition, weights
  /// times values, and has no gradient; all others keep their bits.
  virtual bool edits(std::string_view /*path*/) const { return false; }
  /// Changes the weights before the values are averaged.
  virtual void edit(std::string_view /*path*/, EditableWeights& /*weights*/) {}
};

}  // namespace qkv
