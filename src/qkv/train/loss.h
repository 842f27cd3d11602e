// What a loss function says of some rows, and the sum of that over a batch.
#pragma once

#include <algorithm>

#include "qkv/tensor/tensor.h"

namespace qkv {

/// What a loss function returns for some rows of a batch.
struct Loss {
  Tensor objective;  // recorded, one element; the sum over the shards is differentiated
  double sum = 0;    // what is reported: sum / count over the batch or the epoch
  double count = 0;
};

struct BatchLoss {
  double sum = 0, count = 0;
  void add(const BatchLoss& other) {
    sum += other.sum;
    count += other.count;
  }
  double mean() const { return sum / std::max(count, 1.0); }
};

}  // namespace qkv
