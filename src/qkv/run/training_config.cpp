// Checks settings of training that depend on each other.
#include "qkv/run/training_config.h"

#include <cmath>

#include "qkv/core/check.h"
#include "qkv/core/names.h"

namespace qkv {

int64_t TrainingConfig::averaged_epochs() const {
  const int64_t count = std::llround(average_last * static_cast<double>(epochs));
  return count > 1 ? count : 0;
}

void TrainingConfig::check(bool validates) const {
  require(patience == 0 || validates, "training.patience is {epochs}, but there is no validation data",
          "epochs"_a = patience);
  require(
      patience == 0 || average_last == 0,
      "training.patience and training.average_last exclude each other: it is not known in advance which epochs are the "
      "last (--average-last 0 turns averaging off)");
  require(average_decay == 0 || average_last == 0,
          "training.average_decay and training.average_last exclude each other (--average-last 0 turns it off)");
  require(momentum == 0 || optimizer == OptimizerKind::sgd,
          "training.momentum is {momentum}, but training.optimizer is {optimizer}: only sgd has momentum",
          "momentum"_a = momentum, "optimizer"_a = optimizer);
  require(min_rate == 0 || (schedule == ScheduleKind::cosine && min_rate <= rate),
          "training.min_rate is {min_rate}: it needs training.schedule cosine and at most training.rate, {rate}",
          "min_rate"_a = min_rate, "rate"_a = rate);
  require(decayed == DecayedWeights::all || optimizer == OptimizerKind::adamw,
          "training.decayed matrices needs training.optimizer adamw, got {optimizer}", "optimizer"_a = optimizer);
  require(schedule != ScheduleKind::warmup || warmup > 0, "training.schedule warmup needs training.warmup above 0");
}

}  // namespace qkv
