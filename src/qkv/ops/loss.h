// Losses: cross-entropy of class ids and squared error.
#pragma once

#include <optional>

#include "qkv/core/api.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// How the losses of the elements are combined: not at all, their mean, their sum, or half their sum (squared error
/// only).
enum class Reduction { none, mean, sum, half_sum };

struct CrossEntropyOptions {
  std::optional<int32_t> ignore_id = {};  // targets with this id do not count, for any logits
  float label_smoothing = 0;              // e: the target distribution is e / V everywhere, plus 1 - e at the target
  Reduction reduction = Reduction::mean;  // the mean is over the targets that count; 0 if none do
};

/// -log softmax(logits)[target], with options. logits (..., V), targets (...) -> () or, not reduced, (...)
Tensor cross_entropy(const Tensor& logits, const Ids& targets, const CrossEntropyOptions& options = {});

/// (prediction - target)^2, reduced. Two tensors of the same shape -> () or, not reduced, that shape
Tensor squared_error(const Tensor& prediction, const Tensor& target, Reduction reduction = Reduction::mean);

}  // namespace qkv
