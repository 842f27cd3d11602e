// Makes optimizers and schedules from settings, and says which settings may change.
#include "qkv/run/training_plan.h"

#include <algorithm>

#include "qkv/core/check.h"
#include "qkv/core/counts.h"

namespace qkv {

std::unique_ptr<Optimizer> make_optimizer(const TrainingConfig& config) {
  const auto decay = static_cast<float>(config.weight_decay), beta2 = static_cast<float>(config.beta2);
  switch (config.optimizer) {
    case OptimizerKind::sgd:
      return std::make_unique<Sgd>(SgdOptions{.momentum = static_cast<float>(config.momentum), .l2 = decay});
    case OptimizerKind::adam:
      return std::make_unique<Adam>(AdamOptions{.beta2 = beta2, .l2 = decay});
    case OptimizerKind::adamw:
      break;
  }
  return std::make_unique<Adam>(
      AdamOptions{.beta2 = beta2, .decay = decay, .decay_vectors = config.decayed == DecayedWeights::all});
}

Schedule make_schedule(const TrainingConfig& config, int64_t updates_per_epoch) {
  const auto rate = static_cast<float>(config.rate);
  const auto updates = [&](int64_t epochs) { return std::max<int64_t>(epochs * updates_per_epoch, 1); };
  switch (config.schedule) {
    case ScheduleKind::warmup:
      return warmup_inverse_sqrt(rate, config.warmup);
    case ScheduleKind::cosine:
      return cosine_rate(rate, updates(config.epochs), config.warmup, static_cast<float>(config.min_rate));
    case ScheduleKind::step:
      return step_rate(rate, updates(config.decay_epochs), static_cast<float>(config.decay_factor));
    case ScheduleKind::constant:
      break;
  }
  return constant_rate(rate);
}

void check_warmup(const TrainingConfig& config, int64_t updates) {
  if (config.schedule == ScheduleKind::cosine && updates > 0 && config.warmup >= updates)
    throw Error(tr("training.warmup is {warmup}, but the whole training has {updates}", "warmup"_a = config.warmup,
                   "updates"_a = update_count(static_cast<uint64_t>(updates))),
                tr("use a smaller --warmup or more --epochs"));
}

ResumeRules training_changes(const TrainingConfig& saved, const TrainingConfig& asked) {
  ResumeRules rules{.may_change = {"training.checkpoint_seconds", "training.patience", "training.attention_every"}};
  const bool depends_on_length =
      asked.schedule == ScheduleKind::cosine || saved.averaged_epochs() != 0 || asked.averaged_epochs() != 0;
  if (asked.epochs < saved.epochs)
    rules.reasons["training.epochs"] = tr("a run can be made longer, but not shorter");
  else if (depends_on_length)
    rules.reasons["training.epochs"] = tr("the learning rates, or the mean of the last weights, depend on it");
  else
    rules.may_change.insert("training.epochs");
  return rules;
}

}  // namespace qkv
