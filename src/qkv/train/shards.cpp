// Summing the shards' gradients in their order.
#include "qkv/train/shards.h"

#include <cstring>

#include "qkv/kernels/elementwise.h"

namespace qkv {

BatchLoss Shards::sum_up(BatchPart part) {
  BatchLoss loss;
  for (size_t s = 0; s < used_; ++s) loss.add(shards_[s]->loss);
  in_place_ = used_ == 1 && part == BatchPart::alone;
  if (in_place_) return loss;
  if (!total_.defined()) total_ = zeros(parameters_.flat().shape());
  const int64_t n = total_.numel();
  constexpr int64_t kBlock = 2048;
  parallel_ranges(n, kBlock, 0.1 * static_cast<double>(n) * static_cast<double>(used_), [&](int64_t begin, int64_t end) {
    float* sum = total_.mutable_ptr() + begin;
    const bool adds = part == BatchPart::added;
    if (used_ == 0 && !adds) std::memset(sum, 0, static_cast<size_t>(end - begin) * sizeof(float));
    for (size_t s = 0; s < used_; ++s) {
      const float* part = shards_[s]->gradient.flat().ptr() + begin;
      if (s == 0 && !adds) std::memcpy(sum, part, static_cast<size_t>(end - begin) * sizeof(float));
      else kernels::add(sum, part, sum, end - begin);
    }
  });
  return loss;
}

int64_t Shards::pool_misses() const {
  int64_t misses = 0;
  for (const auto& shard : shards_) misses += shard->pool.misses();
  return misses;
}

}  // namespace qkv
