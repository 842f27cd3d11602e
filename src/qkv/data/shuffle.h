// Random orders that depend only on a stream.
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "qkv/core/rng.h"

namespace qkv {

/// The numbers 0 to n - 1 in random order (Fisher and Yates, in Durstenfeld's version).
inline std::vector<int64_t> shuffled(int64_t n, const Rng& rng) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (uint64_t i = static_cast<uint64_t>(n); i > 1; --i) std::swap(order[i - 1], order[rng.below(i, i)]);
  return order;
}

}  // namespace qkv
