// Attention of a sentence as nested lists, for commands that print JSON.
#pragma once

#include <vector>

#include "qkv/tensor/tensor.h"

namespace qkv::cli {

/// (steps, maps, T) as maps of steps of weights.
inline std::vector<std::vector<std::vector<float>>> attention_lists(const Tensor& attention) {
  std::vector<std::vector<std::vector<float>>> maps(static_cast<size_t>(attention.size(1)));
  for (int64_t s = 0; s < attention.size(0); ++s)
    for (size_t m = 0; m < maps.size(); ++m) {
      const float* row = attention.ptr() + (s * attention.size(1) + static_cast<int64_t>(m)) * attention.size(2);
      maps[m].emplace_back(row, row + attention.size(2));
    }
  return maps;
}

}  // namespace qkv::cli
