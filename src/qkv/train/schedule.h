// Learning rates as functions of the step (0, 1, 2, ...).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

#include "qkv/core/api.h"

namespace QKV_API qkv {

/// The schedules below, by their names in a configuration.
enum class ScheduleKind { constant, warmup, cosine, step };
constexpr std::array<std::string_view, 4> names(ScheduleKind) { return {"constant", "warmup", "cosine", "step"}; }

using Schedule = std::function<float(int64_t step)>;

/// Always the same rate.
Schedule constant_rate(float rate);
/// Rises linearly to the peak over `warmup` steps, then falls as 1 / sqrt(step) (Vaswani et al., 2017).
Schedule warmup_inverse_sqrt(float peak, int64_t warmup);
/// Rises linearly to the peak over `warmup` steps, then follows half a cosine down to `floor` at step `total`.
Schedule cosine_rate(float peak, int64_t total, int64_t warmup = 0, float floor = 0);
/// Multiplies the rate by `factor` every `every` steps.
Schedule step_rate(float rate, int64_t every, float factor);

}  // namespace qkv
