// How a batch is cut into shards: a policy, and the plan that it makes of a number of rows. Neither knows of threads,
// so the cut, and with it every bit of a sum over shards, is the same on any machine.
#pragma once

#include <algorithm>
#include <cstdint>

namespace qkv {

/// The cut of one batch. Its shards have `size` rows each, the last one what is left.
struct ShardPlan {
  int64_t rows = 0, size = 1;
  int64_t count() const { return (rows + size - 1) / size; }
  int64_t begin(int64_t shard) const { return shard * size; }
  int64_t end(int64_t shard) const { return std::min(rows, (shard + 1) * size); }
};

/// At most `most` shards of at least `least_rows` rows, in multiples of `multiple` rows.
struct ShardPolicy {
  static constexpr int64_t kMost = 1024;  // shards of a batch
  int64_t most = 1, least_rows = 1, multiple = 1;

  ShardPlan plan(int64_t batch_rows) const {
    const int64_t unit = most * multiple;
    return {batch_rows, std::max({int64_t{1}, least_rows, (batch_rows + unit - 1) / unit * multiple})};
  }
  /// So many shards of equal size, or as many as there are rows.
  static ShardPolicy number(int64_t shards) { return {.most = shards}; }
  /// What is fastest on one machine. Models of less than a million parameters have ops too short to be shared by
  /// threads, so their batches are cut into up to eight shards; in larger ones a batch is one shard, and threads share
  /// its ops.
  static ShardPolicy automatic(int64_t parameters) {
    if (parameters >= 1'000'000) return number(1);
    return {.most = 8, .least_rows = 32, .multiple = 16};
  }
};

}  // namespace qkv
