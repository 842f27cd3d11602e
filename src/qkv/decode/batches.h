// Batches of sentences that are decoded at the same time, each by a model of its own on one thread: none waits for another's steps.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "qkv/core/parallel.h"

namespace qkv {

/// Calls work(model, b) for every b in [0, batches), the last first, with a model that make() gave. At most `at_once` models live at a time;
/// a single one uses the threads for its steps instead. What a sentence gets does not depend on any of this.
template <class Make, class Work>
void decode_batches(int64_t batches, int64_t at_once, const Make& make, const Work& work) {
  const int64_t lanes = std::clamp<int64_t>(std::min<int64_t>(at_once, threads()), 1, std::max<int64_t>(batches, 1));
  std::atomic<int64_t> left = batches;
  parallel_for(lanes, 2 * kParallelNanoseconds, [&](int64_t) {
    if (left <= 0) return;
    try {
      const auto model = make();
      for (int64_t b = --left; b >= 0; b = --left) work(*model, b);
    } catch (...) {
      left = 0;  // the others begin no more
      throw;
    }
  });
}

}  // namespace qkv
