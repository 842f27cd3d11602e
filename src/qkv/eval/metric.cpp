// Counting over segments, and signatures.
#include "qkv/eval/metric.h"

#include "qkv/core/check.h"
#include "qkv/core/parallel.h"
#include "qkv/core/version.h"

namespace qkv {

std::vector<double> SegmentCounts::sums() const {
  std::vector<double> sums(width, 0.0);
  for (size_t s = 0; s < segments(); ++s)
    for (size_t i = 0; i < width; ++i) sums[i] += rows[s * width + i];
  return sums;
}

SegmentCounts count_segments(const Metric& metric, const std::vector<std::string>& hypotheses,
                             const std::vector<std::vector<std::string>>& references) {
  check(!references.empty(), "[", metric.name(), "] there is no reference");
  check(!hypotheses.empty(), "[", metric.name(), "] there is nothing to score: 0 lines");
  for (const auto& reference : references)
    check(reference.size() == hypotheses.size(), "[", metric.name(), "] numbers of lines differ: hypothesis ",
          hypotheses.size(), ", reference ", reference.size());
  SegmentCounts counts{metric.width(), std::vector<double>(hypotheses.size() * metric.width())};
  constexpr int64_t kBlock = 64;
  constexpr double kSegmentNanoseconds = 10000;
  const auto segments = static_cast<int64_t>(hypotheses.size());
  parallel_ranges(segments, kBlock, kSegmentNanoseconds * static_cast<double>(segments),
                  [&](int64_t begin, int64_t end) {
                    std::vector<std::string_view> lines(references.size());
                    for (auto s = static_cast<size_t>(begin); s < static_cast<size_t>(end); ++s) {
                      for (size_t r = 0; r < references.size(); ++r) lines[r] = references[r][s];
                      metric.count(hypotheses[s], lines, {counts.rows.data() + s * counts.width, counts.width});
                    }
                  });
  return counts;
}

double corpus_score(const Metric& metric, const std::vector<std::string>& hypotheses,
                    const std::vector<std::vector<std::string>>& references) {
  return metric.score(count_segments(metric, hypotheses, references).sums());
}

std::string signature(const Metric& metric, size_t references, const Resampling& resampling) {
  std::string out = text(metric.name(), "|nrefs:", references);
  if (resampling.bootstrap > 0) out += text("|bs:", resampling.bootstrap);
  if (resampling.randomization > 0) out += text("|ar:", resampling.randomization);
  if (resampling.bootstrap > 0 || resampling.randomization > 0) out += text("|seed:", resampling.seed);
  return out + text("|", metric.settings(), "|version:qkv-", version());
}

}  // namespace qkv
