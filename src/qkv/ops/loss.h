// Losses: cross-entropy of class ids and squared error.
#pragma once

#include <optional>

#include "qkv/tensor/tensor.h"

namespace qkv {

/// How the losses of the elements become the result: one each, their mean, their sum, or half their sum (squared error
/// only).
enum class Reduction { none, mean, sum, half_sum };

struct CrossEntropyOptions {
  std::optional<int32_t> ignore_id = {};  // targets with this id do not count, whatever their logits
  float label_smoothing = 0;              // e: the wanted distribution is e / V everywhere and 1 - e more at the target
  Reduction reduction = Reduction::mean;  // the mean is over the targets that count; none count: 0
};

/// -log softmax(logits)[target], by options. logits (..., V), targets (...) -> () or, not reduced, (...)
Tensor cross_entropy(const Tensor& logits, const Ids& targets, const CrossEntropyOptions& options = {});

/// (prediction - target)^2, reduced. Two tensors of one shape -> () or, not reduced, that shape
Tensor squared_error(const Tensor& prediction, const Tensor& target, Reduction reduction = Reduction::mean);

}  // namespace qkv
