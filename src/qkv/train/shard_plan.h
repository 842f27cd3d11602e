// How a batch is split into shards: a policy, and its plan for a number of rows. Neither depends on threads, so the
// split, and every bit of a sum over shards, is the same on any machine.
#pragma once

#include <algorithm>
#include <cstdint>

#include "qkv/core/api.h"

namespace QKV_API qkv {

/// The split of one batch. Its shards have `size` rows each, the last one the rest.
struct ShardPlan {
  int64_t rows = 0, size = 1;
  int64_t count() const { return (rows + size - 1) / size; }
  int64_t begin(int64_t shard) const { return shard * size; }
  int64_t end(int64_t shard) const { return std::min(rows, (shard + 1) * size); }
};

/// At most `most` shards of at least `least_rows` rows, in multiples of `multiple` rows.
struct ShardPolicy {
  static constexpr int64_t kMost = 1024;  // shards per batch
  int64_t most = 1, least_rows = 1, multiple = 1;

  ShardPlan plan(int64_t batch_rows) const {
    const int64_t unit = most * multiple;
    return {batch_rows, std::max({int64_t{1}, least_rows, (batch_rows + unit - 1) / unit * multiple})};
  }
  /// This many shards of equal size, or one per row if there are fewer rows.
  static ShardPolicy number(int64_t shards) { return {.most = shards}; }
  /// The fastest policy on one machine. Models with less than a million parameters have ops too short to be shared by
  /// threads, so their batches are split into up to eight shards; for larger models a batch is one shard, and threads
  /// share its ops.
  static ShardPolicy automatic(int64_t parameters) {
    if (parameters >= 1'000'000) return number(1);
    return {.most = 8, .least_rows = 32, .multiple = 16};
  }
};

}  // namespace qkv
