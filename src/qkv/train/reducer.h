// A hook between gradient and update, where a training in several processes sums their gradients.
#pragma once

#include "qkv/core/api.h"
#include "qkv/train/loss.h"

namespace QKV_API qkv {

class Reducer {
 public:
  virtual ~Reducer() = default;
  /// Called once per update, after the gradient of this process's rows is computed and before it is used. It replaces
  /// gradient and loss by their sums over all processes. The gradient is flat, laid out like the parameters, and is
  /// changed in place. Every process must get the same bits, because each makes the same update with them.
  virtual void reduce(Tensor gradient, BatchLoss& loss) = 0;
};

}  // namespace qkv
