// The gradient of a batch, or of several batches together, in fixed shards of rows: each has its own tape, pool and
// gradient arena. Shards are summed by a fixed tree over their indices (train/tree_sum.h), and so are the batches of an
// update, so the bits do not depend on the number of threads or processes.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/parallel.h"
#include "qkv/nn/module.h"
#include "qkv/tensor/run.h"
#include "qkv/train/loss.h"
#include "qkv/train/shard_plan.h"
#include "qkv/train/tree_sum.h"
#include "qkv/train/update_plan.h"

namespace QKV_API qkv {

class Shards {
 public:
  explicit Shards(const Parameters& parameters) : Shards(parameters, ShardPolicy::automatic(parameters.count())) {}
  Shards(const Parameters& parameters, const ShardPolicy& policy) : parameters_(parameters), policy_(policy) {}

  /// An update with one batch: begin, add, finish.
  template <class LossFunction>
  BatchLoss gradients(int64_t batch_rows, double divisor, const Run& run, const LossFunction& loss) {
    begin(1);
    add(batch_rows, divisor, run, loss);
    return finish();
  }

  /// Begins an update of `batches` batches.
  void begin(int64_t batches);
  /// The same for an update that several ranks share: only the shards of this rank are computed. Where it has a single
  /// one, the listener is told about parts of the gradient that are ready.
  void begin(const UpdatePlan& plan, int rank, GradListener* listener);
  /// The shards of every batch.
  std::vector<int64_t> counts(std::span<const int64_t> batch_rows) const {
    std::vector<int64_t> out;
    for (const int64_t rows : batch_rows) out.push_back(policy_.plan(rows).count());
    return out;
  }
  /// Calls loss(begin, end, run) for every shard of a batch of that many rows, each under a tape, and differentiates
  /// their sum / divisor: the divisor is that of the whole update, so that neither its shards nor its batches show. Its
  /// result is the loss of the batch. The random streams of a batch continue those of the batch before it:
  /// batches of one shard each are the shards of one large batch.
  template <class LossFunction>
  BatchLoss add(int64_t batch_rows, double divisor, const Run& run, const LossFunction& loss) {
    const ShardPlan plan = policy_.plan(batch_rows);
    const UpdatePlan::Range own = own_shards(plan.count());
    used_ = static_cast<size_t>(own.end - own.begin);
    while (shards_.size() < used_) shards_.push_back(std::make_unique<Shard>(parameters_));
    const auto work = [&](int64_t s) {
      Shard& shard = *shards_[static_cast<size_t>(s - own.begin)];
      PoolScope pool(shard.pool);
      Tape tape(shard.gradient, in_place_ ? listener_ : nullptr);
      Run here = run;
      here.rng = run.rng.at_shard(static_cast<uint32_t>(first_ + s));
      differentiate(tape, loss(plan.begin(s), plan.end(s), here), divisor, shard);
    };
    // One shard runs here, so that its ops may use all threads.
    if (used_ == 1)
      work(own.begin);
    else
      parallel_for(static_cast<int64_t>(used_), kParallelNanoseconds, [&](int64_t i) { work(own.begin + i); });
    const BatchLoss batch = plan_ ? sum_pieces(own) : sum_up();
    first_ += plan.count();
    ++batch_;
    return batch;
  }
  /// The loss of the update.
  BatchLoss finish();
  /// The gradient of the update, laid out like the parameters.
  const Tensor& gradient() const { return in_place_ ? shards_[0]->gradient.flat() : sums_[0].gradient; }
  /// In an update that ranks share: gradients and losses of the pieces of this rank. The sum of all ranks belongs into
  /// gradient().
  std::vector<Tensor> piece_gradients() const;
  std::vector<BatchLoss> piece_losses() const;
  /// Parameters outside the model that the last update's losses depend on, each once, in the order of their numbers.
  std::vector<OutsideLeaf> outside() const;
  /// Buffers that any shard's pool had to ask from the system so far.
  int64_t pool_misses() const;

 private:
  struct Shard {
    explicit Shard(const Parameters& parameters) : gradient(parameters.grad_arena()) {}
    Pool pool;
    GradArena gradient;
    BatchLoss loss;
    std::vector<OutsideLeaf> outside;  // of all batches of the update
  };
  struct Sum {
    Tensor gradient;
    BatchLoss loss;
  };
  static void differentiate(Tape& tape, const Loss& loss, double divisor, Shard& shard);
  UpdatePlan::Range own_shards(int64_t count) const;
  void reserve_sums(size_t count);
  void sum_node(int64_t begin, int64_t end, Sum& sum);
  BatchLoss sum_up();
  BatchLoss sum_pieces(const UpdatePlan::Range& own);
  void join(int64_t left);

  const Parameters& parameters_;
  ShardPolicy policy_;
  int64_t batches_ = 1;    // of the update
  size_t used_ = 0;        // shards of the last batch that were computed here
  int64_t first_ = 0;      // shards of the batches before it
  int64_t batch_ = 0;      // number of the next batch
  bool in_place_ = false;  // the gradient is that of the only shard, without a copy
  const UpdatePlan* plan_ = nullptr;
  int rank_ = 0;
  GradListener* listener_ = nullptr;
  size_t pieces_ = 0;  // of this rank that are complete: the first of sums_
  std::vector<std::unique_ptr<Shard>> shards_;
  std::vector<Sum> sums_;  // pieces, and nodes of the tree over the batches of the next one
  TreeStack tree_;
};

}  // namespace qkv
