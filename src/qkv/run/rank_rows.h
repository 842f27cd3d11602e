// Whether so many ranks can have a part of a step.
#pragma once

#include <cstdint>

#include "qkv/run/training_config.h"

namespace qkv {

/// Refuses more ranks than rows of a step of batches with that many rows.
void check_rank_rows(int ranks, int64_t batch_rows, const TrainingConfig& config);

}  // namespace qkv
