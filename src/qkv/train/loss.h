// The result of a loss function for some rows, and its sum over a batch.
#pragma once

#include <algorithm>

#include "qkv/core/api.h"
#include "qkv/ops/elementwise.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// What a loss function returns for some rows of a batch: the sum of their losses, and how many losses were summed
/// (rows, or tokens). fit() divides by the count of the whole batch.
struct Loss {
  Tensor sum;  // recorded, one element
  double count = 0;
};

/// The loss of `count` rows (or tokens), given their mean.
inline Loss from_mean(const Tensor& mean, double count) { return {scale(mean, static_cast<float>(count)), count}; }

/// What is minimised: the mean over everything that the batches of an update count, or the sum.
enum class Objective { mean, sum };

struct BatchLoss {
  double sum = 0, count = 0;
  void add(const BatchLoss& other) {
    sum += other.sum;
    count += other.count;
  }
  double mean() const { return sum / std::max(count, 1.0); }
};

}  // namespace qkv
