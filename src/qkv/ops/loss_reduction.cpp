// Checks of targets, and reductions of losses.
#include "qkv/ops/loss_reduction.h"

namespace qkv {

WantedIds wanted_ids(const char* op, int64_t classes, const Ids& targets, const CrossEntropyOptions& options) {
  const float smoothing = options.label_smoothing;
  check(smoothing >= 0 && smoothing <= 1, "[", op, "] label smoothing must be in [0, 1], got ", smoothing);
  check(options.reduction != Reduction::half_sum, "[", op, "] half_sum is a reduction of squared errors only");
  WantedIds wanted{Ids::empty(targets.shape()), 0};
  int32_t* out = wanted.ids.mutable_ptr();
  for (const int32_t id : targets.data()) {
    const bool counts = !options.ignore_id || id != *options.ignore_id;
    check(!counts || (id >= 0 && id < classes), "[", op, "] target ", id, " is outside the ", classes, " classes");
    *out++ = counts ? id : -1;
    wanted.counted += counts;
  }
  return wanted;
}

Tensor reduced(const Tensor& losses, Reduction reduction, int64_t counted) {
  if (reduction == Reduction::none) return losses;
  double sums[4] = {0, 0, 0, 0};
  for (int64_t i = 0; i < losses.numel(); ++i) sums[i % 4] += losses.ptr()[i];
  const double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  if (reduction == Reduction::half_sum) return scalar(static_cast<float>(sum / 2));
  if (reduction == Reduction::mean)
    return scalar(counted == 0 ? 0 : static_cast<float>(sum / static_cast<double>(counted)));
  return scalar(static_cast<float>(sum));
}

float reduction_factor(Reduction reduction, int64_t counted) {
  if (reduction == Reduction::half_sum) return 0.5f;
  return reduction != Reduction::mean ? 1 : counted == 0 ? 0 : static_cast<float>(1 / static_cast<double>(counted));
}

}  // namespace qkv
