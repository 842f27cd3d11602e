// What `qkv score` prints: sacreBLEU's lines, a table of systems, scores of lines, JSON.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "qkv/core/language.h"
#include "qkv/eval/significance.h"

namespace qkv::cli {

/// One system under one metric.
struct SystemScore {
  double value = 0;
  std::string detail;
  std::optional<Interval> interval;
  std::optional<double> p_value;  // against the first system
};

/// One metric over all systems.
struct MetricScores {
  std::string name, signature;
  int digits = 1;
  std::vector<SystemScore> systems;
};

/// "BLEU|nrefs:1|... = 26.3 (μ = 26.3 ± 1.2) 60.0/...", a metric a line, the equal signs under each other.
std::string score_lines(const std::vector<MetricScores>& metrics);
/// A row a system, a column a metric, then the signatures and which test the p values come from.
std::string score_table(const std::vector<std::string>& systems, const std::vector<MetricScores>& metrics, const std::string& test,
                        Language language);
/// {"references": 1, "lines": 1000, "systems": [{"system": "hyp.txt", "scores": [{"name": "BLEU", "score": 26.3, ...}]}]}
std::string score_json(const std::vector<std::string>& systems, const std::vector<MetricScores>& metrics, size_t references, size_t lines);

}  // namespace qkv::cli
