// Corpus metrics: counts for every segment, and a score from their sum.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/api.h"

namespace QKV_API qkv {

/// A metric whose corpus score is a function of the sum of one row of counts per segment; resampling needs nothing
/// else.
class Metric {
 public:
  virtual ~Metric() = default;
  /// "BLEU", "chrF2++".
  virtual std::string name() const = 0;
  /// What the score depends on besides the text, in sacreBLEU's notation: "case:mixed|eff:no|tok:13a|smooth:exp".
  virtual std::string settings() const = 0;
  /// The number of counts per segment; count() fills a row for a hypothesis and its references, at least one.
  virtual size_t width() const = 0;
  virtual void count(std::string_view hypothesis, std::span<const std::string_view> references,
                     std::span<double> row) const = 0;
  virtual double score(std::span<const double> sums) const = 0;
  /// Text after the score on its line: BLEU's precisions, penalty and lengths.
  virtual std::string detail(std::span<const double>) const { return ""; }
  /// The score of a perfect translation.
  virtual double best() const { return 100; }
  /// The largest number of references it is defined for.
  virtual size_t most_references() const { return SIZE_MAX; }
  /// Whether it tokenises plain text itself, so that text that is already tokenised gets a different score from the one
  /// others report.
  virtual bool tokenizes() const { return false; }
};

/// The counts of every segment of one hypothesis file.
struct SegmentCounts {
  size_t width = 0;
  std::vector<double> rows;  // (segments, width)
  size_t segments() const { return rows.size() / width; }
  std::span<const double> row(size_t segment) const { return {rows.data() + segment * width, width}; }
  std::vector<double> sums() const;
};

/// Counts on all threads. References: one list per reference file, each as long as the hypotheses; other lengths are an
/// error.
SegmentCounts count_segments(const Metric& metric, const std::vector<std::string>& hypotheses,
                             const std::vector<std::vector<std::string>>& references);

/// The score of a corpus, 0 to 100 (d2l-bleu: 0 to 1).
double corpus_score(const Metric& metric, const std::vector<std::string>& hypotheses,
                    const std::vector<std::vector<std::string>>& references);

/// The number of resamples and the seed; 0: not resampled.
struct Resampling {
  int64_t bootstrap = 0, randomization = 0;
  uint64_t seed = 0;
};

/// "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:qkv-0.1.0": sacreBLEU's signature, with our name in the
/// version because the numbers are computed here. They agree with sacreBLEU 2 under the same settings; resampled
/// numbers agree up to the random numbers.
std::string signature(const Metric& metric, size_t references, const Resampling& resampling = {});

}  // namespace qkv
