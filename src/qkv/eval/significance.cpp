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

constexpr double kDrawNanoseconds = 10;
constexpr int64_t kTogether = 8;  // resamples per pass over the counts

double p_value(int64_t beyond, int64_t samples) {
  return static_cast<double>(beyond + 1) / static_cast<double>(samples + 1);
}

// Scores of resampled corpora: weigh(sample, weights) sets how often each segment occurs, and score(sums) is the score
// of the weighted sums of rows (segments, width). Weights first, then one pass in order, is several times faster than
// jumping from row to row.
template <class Weigh, class Score>
std::vector<double> resampled(const std::vector<double>& rows, size_t width, int64_t samples, const Weigh& weigh,
                              const Score& score) {
  const size_t segments = rows.size() / width;
  std::vector<double> scores(static_cast<size_t>(samples));
  const double work = kDrawNanoseconds * static_cast<double>(samples) * static_cast<double>(segments);
  parallel_ranges(samples, kTogether, work, [&](int64_t begin, int64_t end) {
    const auto together = static_cast<size_t>(end - begin);
    std::vector<int32_t> weights(together * segments, 0);
    for (size_t s = 0; s < together; ++s)
      weigh(begin + static_cast<int64_t>(s), std::span(weights).subspan(s * segments, segments));
    std::vector<double> sums(together * width, 0.0);
    for (size_t i = 0; i < segments; ++i)
      for (size_t s = 0; s < together; ++s) {
        const double weight = weights[s * segments + i];
        for (size_t j = 0; j < width; ++j) sums[s * width + j] += weight * rows[i * width + j];
      }
    for (size_t s = 0; s < together; ++s)
      scores[static_cast<size_t>(begin) + s] = score(std::span<const double>(sums).subspan(s * width, width));
  });
  return scores;
}

// Segments drawn with replacement; a Philox word times the number of segments, shifted, is an index.
void draw_segments(const Rng& stream, std::span<int32_t> weights) {
  const auto segments = static_cast<uint64_t>(weights.size());
  for (uint64_t i = 0; i < segments; i += 4) {
    const auto words = philox({stream.step(), stream.shard(), static_cast<uint32_t>(i / 4), 0}, stream.key());
    for (uint64_t k = 0; k < 4 && i + k < segments; ++k) ++weights[(words[k] * segments) >> 32];
  }
}

// 1 for segments that are swapped, each with probability 1/2.
void draw_swaps(const Rng& stream, std::span<int32_t> weights) {
  uint32_t bits = 0;
  for (size_t i = 0; i < weights.size(); ++i, bits >>= 1) {
    if (i % 32 == 0) bits = stream.word(i / 32);
    weights[i] = static_cast<int32_t>(bits & 1);
  }
}

}  // namespace

std::vector<double> bootstrap_scores(const Metric& metric, const SegmentCounts& counts, int64_t samples,
                                     uint64_t seed) {
  check(samples >= 1, "[bootstrap] needs at least 1 sample, got ", samples);
  check(counts.segments() < (uint64_t{1} << 31), "[bootstrap] too many segments: ", counts.segments());
  const Rng rng = Rng(seed).at("bootstrap");
  return resampled(
      counts.rows, counts.width, samples,
      [&](int64_t sample, std::span<int32_t> weights) {
        draw_segments(rng.at_step(static_cast<uint64_t>(sample)), weights);
      },
      [&](std::span<const double> sums) { return metric.score(sums); });
}

Interval interval95(std::vector<double> scores) {
  check(!scores.empty(), "[interval95] there are no scores");
  const double mean = std::accumulate(scores.begin(), scores.end(), 0.0) / static_cast<double>(scores.size());
  std::sort(scores.begin(), scores.end());
  const size_t cut = scores.size() / 40;
  return {mean, 0.5 * (scores[scores.size() - cut - 1] - scores[cut])};
}

double paired_bootstrap_p(std::span<const double> baseline, std::span<const double> system, double real_difference) {
  check(baseline.size() == system.size() && !baseline.empty(),
        "[paired bootstrap] numbers of samples differ or are 0: ", baseline.size(), " and ", system.size());
  if (real_difference == 0) return 1;  // they do not differ: no samples needed
  std::vector<double> differences;
  for (size_t i = 0; i < system.size(); ++i) differences.push_back(std::abs(system[i] - baseline[i]));
  const double mean =
      std::accumulate(differences.begin(), differences.end(), 0.0) / static_cast<double>(differences.size());
  const auto beyond = std::count_if(differences.begin(), differences.end(),
                                    [&](double d) { return d - mean > std::abs(real_difference); });
  return p_value(beyond, static_cast<int64_t>(differences.size()));
}

double paired_randomization_p(const Metric& metric, const SegmentCounts& baseline, const SegmentCounts& system,
                              int64_t trials, uint64_t seed) {
  check(trials >= 1, "[paired randomization] needs at least 1 trial, got ", trials);
  check(baseline.rows.size() == system.rows.size() && baseline.width == system.width,
        "[paired randomization] numbers of segments differ: ", baseline.segments(), " and ", system.segments());
  const std::vector<double> base_sums = baseline.sums(), system_sums = system.sums();
  const double real = std::abs(metric.score(base_sums) - metric.score(system_sums));
  if (real == 0) return 1;
  std::vector<double> change(baseline.rows.size());  // what a swap adds to the first sum and takes from the second
  for (size_t i = 0; i < change.size(); ++i) change[i] = system.rows[i] - baseline.rows[i];

  const Rng rng = Rng(seed).at("randomization");
  const auto differences = resampled(
      change, baseline.width, trials,
      [&](int64_t trial, std::span<int32_t> weights) {
        draw_swaps(rng.at_step(static_cast<uint64_t>(trial)), weights);
      },
      [&](std::span<const double> changes) {
        std::vector<double> first = base_sums, second = system_sums;
        for (size_t j = 0; j < changes.size(); ++j) {
          first[j] += changes[j];
          second[j] -= changes[j];
        }
        return std::abs(metric.score(first) - metric.score(second));
      });
  return p_value(std::count_if(differences.begin(), differences.end(), [real](double d) { return d > real; }), trials);
}

}  // namespace qkv
