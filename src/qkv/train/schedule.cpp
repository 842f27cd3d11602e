// Schedules.
#include "qkv/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "qkv/core/check.h"

namespace qkv {

Schedule constant_rate(float rate) {
  return [=](int64_t) { return rate; };
}

Schedule warmup_inverse_sqrt(float peak, int64_t warmup) {
  check(warmup >= 1, "[schedule] warm-up must be at least one step, got ", warmup);
  return [=](int64_t step) {
    const double t = static_cast<double>(step + 1), w = static_cast<double>(warmup);
    return static_cast<float>(peak * std::min(t / w, std::sqrt(w / t)));
  };
}

Schedule cosine_rate(float peak, int64_t total, int64_t warmup, float floor) {
  check(warmup >= 0 && total > warmup, "[schedule] a cosine needs more total steps than warm-up steps, got ", total,
        " and ", warmup);
  return [=](int64_t step) {
    if (step < warmup) return peak * static_cast<float>(step + 1) / static_cast<float>(warmup);
    const double done = std::min(1.0, static_cast<double>(step - warmup) / static_cast<double>(total - warmup));
    return static_cast<float>(floor + (peak - floor) * 0.5 * (1 + std::cos(std::numbers::pi * done)));
  };
}

Schedule step_rate(float rate, int64_t every, float factor) {
  check(every >= 1, "[schedule] the rate must change every 1 or more steps, got ", every);
  return [=](int64_t step) {
    return static_cast<float>(rate * std::pow(double{factor}, static_cast<double>(step / every)));
  };
}

}  // namespace qkv
