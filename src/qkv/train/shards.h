// The gradient of a batch, or of several together, cut into fixed shards of their rows: each has its own tape, pool and gradient arena, and
// their gradients are summed in shard order, so the bits do not depend on how many threads took part.
#pragma once

#include <memory>
#include <vector>

#include "qkv/core/parallel.h"
#include "qkv/nn/module.h"
#include "qkv/tensor/run.h"
#include "qkv/train/loss.h"
#include "qkv/train/shard_plan.h"

namespace qkv {

/// Whether a batch's gradient stands alone or is a part of an update's: the first, or added to those before it.
enum class BatchPart { alone, first, added };

class Shards {
 public:
  explicit Shards(const Parameters& parameters) : Shards(parameters, ShardPolicy::automatic(parameters.count())) {}
  Shards(const Parameters& parameters, const ShardPolicy& policy) : parameters_(parameters), policy_(policy) {}

  /// Calls loss(begin, end, run) for every shard of a batch of that many rows, each under a tape, and runs them backward. The random
  /// streams of an added batch go on where those before it stopped: batches of one shard each are the shards of one large batch.
  template <class LossFunction>
  BatchLoss gradients(int64_t batch_rows, const Run& run, const LossFunction& loss, BatchPart part = BatchPart::alone) {
    const ShardPlan plan = policy_.plan(batch_rows);
    first_ = part == BatchPart::added ? first_ + used_ : 0;
    used_ = static_cast<size_t>(plan.count());
    while (shards_.size() < used_) shards_.push_back(std::make_unique<Shard>(parameters_));
    const auto work = [&](int64_t s) {
      Shard& shard = *shards_[static_cast<size_t>(s)];
      PoolScope pool(shard.pool);
      Tape tape(shard.gradient);
      Run here = run;
      here.rng = run.rng.at_shard(static_cast<uint32_t>(first_ + static_cast<size_t>(s)));
      Loss result = loss(plan.begin(s), plan.end(s), here);
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
  ShardPolicy policy_;
  size_t used_ = 0;        // shards of the last batch
  size_t first_ = 0;       // shards of the batches that it was added to
  bool in_place_ = false;  // the gradient is that of the only shard, not copied
  std::vector<std::unique_ptr<Shard>> shards_;
  Tensor total_;
};

}  // namespace qkv
