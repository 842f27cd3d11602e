// The attention of one output, selected from what the model returned for all rows in each step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// steps: (R, maps, T) each, with the R of that step. Returns row rows[t] of every step t: (rows, maps, T). Absent if
/// the model has no attention.
inline Tensor attention_rows(const std::vector<Tensor>& steps, std::span<const int32_t> rows) {
  if (steps.empty() || !steps[0].defined()) return {};
  const int64_t size = steps[0].size(1) * steps[0].size(2);
  Tensor out = Tensor::empty({static_cast<int64_t>(rows.size()), steps[0].size(1), steps[0].size(2)});
  for (size_t t = 0; t < rows.size(); ++t)
    std::copy_n(steps[t].ptr() + rows[t] * size, size, out.mutable_ptr() + static_cast<int64_t>(t) * size);
  return out;
}

}  // namespace qkv
