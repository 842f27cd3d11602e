// The seam between gradients and update: where a training that runs in several processes makes their gradients one.
#pragma once

#include "qkv/train/loss.h"

namespace qkv {

class Reducer {
 public:
  virtual ~Reducer() = default;
  /// Called once per update, after the gradient of this process's share of the rows is known and before anything is
  /// made of it. It replaces both by what they are over all processes: the sum. The gradient is flat, laid out like the
  /// parameters, and is changed in place. Every process must end with the same bits, since each then makes the same
  /// update.
  virtual void reduce(Tensor gradient, BatchLoss& loss) = 0;
};

}  // namespace qkv
