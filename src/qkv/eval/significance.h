// How certain a corpus score is: bootstrap intervals, and paired tests of two systems on the same segments (Koehn,
// 2004; Riezler and Maxwell, 2005), with the statistics that sacreBLEU uses. Random numbers are Philox streams: the
// same for any number of threads.
#pragma once

#include <array>
#include <string_view>

#include "qkv/core/api.h"
#include "qkv/eval/metric.h"

namespace QKV_API qkv {

inline constexpr int64_t kBootstrapSamples = 1000, kRandomizationTrials = 10000;
inline constexpr uint64_t kSignificanceSeed = 12345;

/// How two systems are compared.
enum class PairedTest { bootstrap, randomization };
constexpr std::array<std::string_view, 2> names(PairedTest) { return {"bootstrap", "randomization"}; }

/// Scores of corpora whose segments are drawn with replacement. Sample i draws the same segments for every system and
/// metric.
std::vector<double> bootstrap_scores(const Metric& metric, const SegmentCounts& counts,
                                     int64_t samples = kBootstrapSamples, uint64_t seed = kSignificanceSeed);

/// Mean of the resampled scores, and half the width of the interval with the middle 95 % of them.
struct Interval {
  double mean = 0, half_width = 0;
};
Interval interval95(std::vector<double> scores);

/// Paired bootstrap: how often the resampled scores of the two systems differ by more than their mean difference plus
/// the real one. p = (that count + 1) / (samples + 1).
double paired_bootstrap_p(std::span<const double> baseline, std::span<const double> system, double real_difference);

/// Paired approximate randomization: how often systems made by swapping segments at random differ by more than the real
/// ones. p = (that count + 1) / (trials + 1).
double paired_randomization_p(const Metric& metric, const SegmentCounts& baseline, const SegmentCounts& system,
                              int64_t trials = kRandomizationTrials, uint64_t seed = kSignificanceSeed);

}  // namespace qkv
