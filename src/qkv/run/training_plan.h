// What the settings of a training stand for: its optimizer, its schedule, and what of them may change when it resumes.
#pragma once

#include <memory>

#include "qkv/run/run_folder.h"
#include "qkv/run/training_config.h"
#include "qkv/train/optimizer.h"

namespace qkv {

std::unique_ptr<Optimizer> make_optimizer(const TrainingConfig& config);
Schedule make_schedule(const TrainingConfig& config, int64_t updates_per_epoch);
/// Throws if the warm-up of a cosine takes all of that many updates: it falls after the warm-up, so there must be
/// something after it.
void check_warmup(const TrainingConfig& config, int64_t updates);

/// The settings of block "training" that may change between two starts of one run.
ResumeRules training_changes(const TrainingConfig& saved, const TrainingConfig& asked);

}  // namespace qkv
