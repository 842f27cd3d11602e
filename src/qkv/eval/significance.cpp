// Resampling of segment counts.
#include "qkv/eval/significance.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "qkv/core/check.h"
#include "qkv/core/parallel.h"
#include "qkv/core/rng.h"

namespace qkv {
namespace {

constexpr double kDrawNanoseconds = 20;

double p_value(int64_t beyond, int64_t samples) { return static_cast<double>(beyond + 1) / static_cast<double>(samples + 1); }

}  // namespace

std::vector<double> bootstrap_scores(const Metric& metric, const SegmentCounts& counts, int64_t samples, uint64_t seed) {
  check(samples >= 1, "[bootstrap] needs at least 1 sample, got ", samples);
  std::vector<double> scores(static_cast<size_t>(samples));
  const Rng rng = Rng(seed).at("bootstrap");
  const size_t segments = counts.segments(), width = counts.width;
  parallel_for(samples, kDrawNanoseconds * static_cast<double>(samples) * static_cast<double>(segments), [&](int64_t sample) {
    const Rng stream = rng.at_step(static_cast<uint64_t>(sample));
    std::vector<double> sums(width, 0.0);
    for (size_t i = 0; i < segments; ++i) {
      const double* row = counts.rows.data() + stream.below(segments, i) * width;
      for (size_t j = 0; j < width; ++j) sums[j] += row[j];
    }
    scores[static_cast<size_t>(sample)] = metric.score(sums);
  });
  return scores;
}

Interval interval95(std::vector<double> scores) {
  check(!scores.empty(), "[interval95] there are no scores");
  const double mean = std::accumulate(scores.begin(), scores.end(), 0.0) / static_cast<double>(scores.size());
  std::sort(scores.begin(), scores.end());
  const size_t cut = scores.size() / 40;
  return {mean, 0.5 * (scores[scores.size() - cut - 1] - scores[cut])};
}

double paired_bootstrap_p(std::span<const double> baseline, std::span<const double> system, double real_difference) {
  check(baseline.size() == system.size() && !baseline.empty(), "[paired bootstrap] numbers of samples differ or are 0: ", baseline.size(),
        " and ", system.size());
  std::vector<double> differences;
  for (size_t i = 0; i < system.size(); ++i) differences.push_back(std::abs(system[i] - baseline[i]));
  const double mean = std::accumulate(differences.begin(), differences.end(), 0.0) / static_cast<double>(differences.size());
  const auto beyond = std::count_if(differences.begin(), differences.end(), [&](double d) { return d - mean > std::abs(real_difference); });
  return p_value(beyond, static_cast<int64_t>(differences.size()));
}

double paired_randomization_p(const Metric& metric, const SegmentCounts& baseline, const SegmentCounts& system, int64_t trials,
                              uint64_t seed) {
  check(trials >= 1, "[paired randomization] needs at least 1 trial, got ", trials);
  check(baseline.rows.size() == system.rows.size() && baseline.width == system.width,
        "[paired randomization] numbers of segments differ: ", baseline.segments(), " and ", system.segments());
  const std::vector<double> base_sums = baseline.sums(), system_sums = system.sums();
  const double real = std::abs(metric.score(base_sums) - metric.score(system_sums));
  const size_t segments = baseline.segments(), width = baseline.width;
  std::vector<double> change(baseline.rows.size());  // what swapping a segment does to the first of the two
  for (size_t i = 0; i < change.size(); ++i) change[i] = system.rows[i] - baseline.rows[i];

  const Rng rng = Rng(seed).at("randomization");
  std::vector<char> beyond(static_cast<size_t>(trials), 0);
  parallel_for(trials, kDrawNanoseconds * static_cast<double>(trials) * static_cast<double>(segments), [&](int64_t trial) {
    const Rng stream = rng.at_step(static_cast<uint64_t>(trial));
    std::vector<double> first = base_sums, second = system_sums;
    uint32_t bits = 0;
    for (size_t i = 0; i < segments; ++i) {
      if (i % 32 == 0) bits = stream.word(i / 32);
      if (!(bits >> (i % 32) & 1)) continue;
      for (size_t j = 0; j < width; ++j) {
        first[j] += change[i * width + j];
        second[j] -= change[i * width + j];
      }
    }
    beyond[static_cast<size_t>(trial)] = std::abs(metric.score(first) - metric.score(second)) > real;
  });
  return p_value(std::count(beyond.begin(), beyond.end(), 1), trials);
}

}  // namespace qkv
