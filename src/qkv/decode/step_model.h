// StepModel: what a search needs of a model that writes one token after the other.
#pragma once

#include <cstdint>
#include <span>

#include "qkv/tensor/tensor.h"

namespace qkv {

/// Holds the state of R partial outputs ("rows"), at first one for every source sentence.
class StepModel {
 public:
  virtual ~StepModel() = default;
  /// Reads source sentences, padded, (B, T) with lengths (B); there are B rows then.
  virtual void start(const Ids& source, const Ids& lengths) = 0;
  /// Feeds every row its last token, (R) -> scores of the next one, (R, V), before softmax.
  virtual Tensor step(const Ids& tokens) = 0;
  /// Row i becomes what row rows[i] was; rows may repeat or go.
  virtual void select(std::span<const int32_t> rows) = 0;
  /// Whether attention() will be asked for in the steps to come: a model that need not keep it may be quicker. Until told, it will.
  virtual void keep_attention(bool /*wanted*/) {}
  /// Where the last step looked, (R, maps, T): one map for each layer and head. Absent for a model without attention.
  virtual Tensor attention() const { return {}; }
};

}  // namespace qkv
