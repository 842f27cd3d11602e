// The optimizer and schedule that settings define, and which settings may change when a run resumes.
#pragma once

#include <memory>

#include "qkv/core/api.h"
#include "qkv/run/run_folder.h"
#include "qkv/run/training_config.h"
#include "qkv/train/optimizer.h"

namespace QKV_API qkv {

std::unique_ptr<Optimizer> make_optimizer(const TrainingConfig& config);
Schedule make_schedule(const TrainingConfig& config, int64_t updates_per_epoch);
/// Throws if the warm-up of a cosine schedule takes all of that many updates: the rate falls after the warm-up, so some
/// updates must follow it.
void check_warmup(const TrainingConfig& config, int64_t updates);

/// The settings of block "training" that may change between two starts of the same run.
ResumeRules training_changes(const TrainingConfig& saved, const TrainingConfig& asked);

}  // namespace qkv
