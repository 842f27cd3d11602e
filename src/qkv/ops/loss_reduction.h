// What the losses share: which targets count, and how losses are reduced.
#pragma once

#include "qkv/ops/loss.h"

namespace qkv {

/// Targets, with -1 for those that do not count, and how many do.
struct WantedIds {
  Ids ids;
  int64_t counted;
};

/// Checks targets and options against a number of classes.
WantedIds wanted_ids(const char* op, int64_t classes, const Ids& targets, const CrossEntropyOptions& options);

/// The losses themselves, or one number: summed in double in a fixed order, the mean over `counted` (0 if none).
Tensor reduced(const Tensor& losses, Reduction reduction, int64_t counted);
/// The factor from the gradient of that number to the gradient of each loss.
float reduction_factor(Reduction reduction, int64_t counted);

}  // namespace qkv
