// The steps of a training that several ranks share: who computes which shards, the sum of gradients and losses, and
// what all ranks must agree on.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/nn/module.h"
#include "qkv/ranks/ranks.h"
#include "qkv/train/callback.h"
#include "qkv/train/checkpoint.h"
#include "qkv/train/gradient_exchange.h"
#include "qkv/train/shards.h"

namespace QKV_API qkv {

/// Where the time of a rank goes, in seconds.
struct RankTimes {
  double compute = 0, wait = 0, communicate = 0;  // wait: for the slowest rank
  double sum() const { return compute + wait + communicate; }
};

class RankSteps {
 public:
  RankSteps(Ranks& ranks, const Parameters& parameters);
  ~RankSteps();
  RankSteps(const RankSteps&) = delete;
  RankSteps& operator=(const RankSteps&) = delete;

  /// Begins an update of batches with that many rows.
  void begin(Shards& shards, std::span<const int64_t> batch_rows, int64_t step);
  /// Sums gradients (into shards.gradient()) and losses over all ranks. `stops`: this rank was asked to stop.
  BatchLoss finish(Shards& shards, bool stops);
  /// After an update: the norm of the weights, which must be the same everywhere.
  void updated(double weight_norm, double seconds);

  /// Whether a rank was asked to stop before the last update.
  bool stops() const { return stops_; }
  /// The time of rank 0 after the update before the last.
  double seconds() const { return seconds_; }
  /// Which rank computes longest, and the share of its time that this is.
  void report(Progress& progress) const;
  /// Sums over the updates so far, and of the last one.
  const RankTimes& times() const { return times_; }
  const UpdatePlan& plan() const { return plan_; }

 private:
  struct Word;
  void begin_exchange(const Shards& shards);
  void read_words(const std::vector<std::string>& words);

  Ranks& ranks_;
  std::shared_ptr<GradientExchange> exchange_;
  std::vector<Tensor> under_way_;  // what messages refer to until the exchange is complete
  UpdatePlan plan_;
  std::optional<Ranks::Background> background_;
  bool overlaps_ = false, stops_ = false;
  int64_t step_ = 0;
  double weight_norm_, seconds_ = 0, own_seconds_ = 0;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  RankTimes times_;
  std::vector<RankTimes> all_times_;
  std::vector<BatchLoss> losses_;
};

/// The checkpoint of rank 0, or nothing, on all ranks.
std::optional<Checkpoint> shared_checkpoint(Ranks& ranks, std::optional<Checkpoint> own);

}  // namespace qkv
