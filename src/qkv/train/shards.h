// The gradient of a batch, or of several together, cut into fixed shards of their rows: each has its own tape, pool and gradient arena, and
// their gradients are summed in shard order, so the bits do not depend on how many threads took part.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "qkv/core/parallel.h"
#include "qkv/nn/module.h"
#include "qkv/tensor/run.h"
#include "qkv/train/loss.h"

namespace qkv {

/// Whether a batch's gradient stands alone or is a part of an update's: the first, or added to those before it.
enum class BatchPart { alone, first, added };

/// Models below this size train faster on shards than with parallel ops.
inline constexpr int64_t kShardedParameters = 1'000'000;
/// Such a batch is cut into at most kMostShards shards of at least kShardRows rows each.
inline constexpr int64_t kShardRows = 32, kMostShards = 8;

class Shards {
 public:
  /// rows: of a shard; 0 takes the whole batch as one shard, with parallelism inside the ops; -1 decides by the sizes of model and batch.
  explicit Shards(const Parameters& parameters, int64_t rows = -1)
      : parameters_(parameters), rows_(rows >= 0 || parameters.count() < kShardedParameters ? rows : 0) {}

  /// Rows of a shard for a batch of that many: a function of sizes alone, never of the number of threads.
  int64_t shard_rows(int64_t batch_rows) const {
    if (rows_ > 0) return rows_;
    if (rows_ == 0) return std::max<int64_t>(batch_rows, 1);
    return std::max(kShardRows, (batch_rows + kMostShards * 16 - 1) / (kMostShards * 16) * 16);
  }

  /// Calls loss(begin, end, run) for every shard of a batch of that many rows, each under a tape, and runs them backward. The random
  /// streams of an added batch go on where those before it stopped: batches of one shard each are the shards of one large batch.
  template <class LossFunction>
  BatchLoss gradients(int64_t batch_rows, const Run& run, const LossFunction& loss, BatchPart part = BatchPart::alone) {
    const int64_t size = shard_rows(batch_rows);
    first_ = part == BatchPart::added ? first_ + used_ : 0;
    used_ = static_cast<size_t>((batch_rows + size - 1) / size);
    while (shards_.size() < used_) shards_.push_back(std::make_unique<Shard>(parameters_));
    const auto work = [&](int64_t s) {
      Shard& shard = *shards_[static_cast<size_t>(s)];
      PoolScope pool(shard.pool);
      Tape tape(shard.gradient);
      Run here = run;
      here.rng = run.rng.at_shard(static_cast<uint32_t>(first_ + static_cast<size_t>(s)));
      Loss result = loss(s * size, std::min(batch_rows, (s + 1) * size), here);
      shard.loss = {result.sum, result.count};
      tape.backward(result.objective);
    };
    // One shard runs here, so that its ops may use all threads.
    if (used_ == 1) work(0);
    else parallel_for(static_cast<int64_t>(used_), kParallelNanoseconds, work);
    return sum_up(part);
  }

  /// The gradient of the last batch, or of the batches added up, laid out like the parameters.
  const Tensor& gradient() const { return in_place_ ? shards_[0]->gradient.flat() : total_; }
  /// Buffers that any shard's pool had to ask from the system so far.
  int64_t pool_misses() const;

 private:
  struct Shard {
    explicit Shard(const Parameters& parameters) : gradient(parameters.grad_arena()) {}
    Pool pool;
    GradArena gradient;
    BatchLoss loss;
  };
  BatchLoss sum_up(BatchPart part);

  const Parameters& parameters_;
  int64_t rows_;
  size_t used_ = 0;        // shards of the last batch
  size_t first_ = 0;       // shards of the batches that it was added to
  bool in_place_ = false;  // the gradient is that of the only shard, not copied
  std::vector<std::unique_ptr<Shard>> shards_;
  Tensor total_;
};

}  // namespace qkv
