// Scores of translations as values, as sacreBLEU's lines, as a table of systems, as a list of sentences, and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/language.h"
#include "qkv/eval/significance.h"

namespace QKV_API qkv {
namespace report {

using Lines = std::vector<std::string>;

/// The score of one system by one metric.
struct SystemScore {
  double value = 0;
  std::string detail;
  std::optional<Interval> interval;
  std::optional<double> p_value;  // against the first system
};

/// The scores of all systems by one metric.
struct MetricScores {
  std::string name, signature;
  int digits = 1;
  std::vector<SystemScore> systems;
};

/// Whether scores get an interval, and how systems are compared with the first one.
struct ScorePlan {
  bool intervals = false;
  PairedTest test = PairedTest::bootstrap;
  std::optional<int64_t> resamples;  // absent: the default of the method
  uint64_t seed = kSignificanceSeed;
  int decimals = 1;  // of a score from 0 to 100; a score from 0 to 1 has two more
};

/// Scores every system. References: one list per reference file.
MetricScores scored(const Metric& metric, const std::vector<Lines>& systems, const std::vector<Lines>& references,
                    const ScorePlan& plan);

/// "BLEU|nrefs:1|... = 26.3 (μ = 26.3 ± 1.2) 60.0/...", one metric per line, with aligned equal signs.
std::string score_lines(const std::vector<MetricScores>& metrics);
/// One row per system, one column per metric, then the signatures and the test that gave the p values.
std::string score_table(const Lines& systems, const std::vector<MetricScores>& metrics, PairedTest test,
                        Language language);
/// {"references": 1, "lines": 1000, "systems": [{"system": "hyp.txt", "scores": [{"name": "BLEU", "score": 26.3,
/// ...}]}]}
std::string score_json(const Lines& systems, const std::vector<MetricScores>& metrics, size_t references, size_t lines);

/// The scores of every sentence by one metric.
struct SentenceScores {
  std::string name;
  int digits = 1;
  std::vector<double> values;
};
SentenceScores sentence_scores(const Metric& metric, const Lines& system, const std::vector<Lines>& references,
                               int decimals);
/// "line\tBLEU\tchrF2\n1\t61.30\t74.18...".
std::string sentence_table(const std::vector<SentenceScores>& metrics);
/// {"sentences": [{"line": 1, "BLEU": 61.3}, ...]}
std::string sentence_json(const std::vector<SentenceScores>& metrics);

}  // namespace report
}  // namespace qkv
