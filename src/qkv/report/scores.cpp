// Scoring, and scores as text and JSON.
#include "qkv/report/scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "qkv/data/text.h"
#include "qkv/plot/text.h"

namespace qkv::report {
namespace {

using Json = nlohmann::ordered_json;
constexpr double kSignificant = 0.05;

// "27.0 (27.0 ± 1.1, p = 0.0320 *)"
std::string cell(const SystemScore& score, int digits) {
  std::string beside;
  if (score.interval)
    beside = fmt::format("{:.{}f} ± {:.{}f}", score.interval->mean, digits, score.interval->half_width, digits);
  if (score.p_value)
    beside += fmt::format("{}p = {:.4f}{}", beside.empty() ? "" : ", ", *score.p_value,
                          *score.p_value < kSignificant ? " *" : "");
  return fmt::format("{:.{}f}{}", score.value, digits, beside.empty() ? "" : " (" + beside + ")");
}

size_t width(const std::string& text) { return static_cast<size_t>(plotting::display_width(text)); }

std::string joined_columns(const std::vector<std::vector<std::string>>& columns) {
  std::string out;
  for (size_t row = 0; row < columns[0].size(); ++row) {
    std::string line;
    for (size_t c = 0; c < columns.size(); ++c) {
      line += columns[c][row];
      if (c + 1 == columns.size()) break;
      size_t widest = 0;
      for (const std::string& text : columns[c]) widest = std::max(widest, width(text));
      line.append(widest - width(columns[c][row]) + 2, ' ');
    }
    out += line + "\n";
  }
  return out;
}

int digits_of(const Metric& metric, int decimals) { return decimals + (metric.best() > 1 ? 0 : 2); }

}  // namespace

MetricScores scored(const Metric& metric, const std::vector<Lines>& systems, const std::vector<Lines>& references,
                    const ScorePlan& plan) {
  const bool paired = systems.size() > 1, by_bootstrap = paired && plan.test == PairedTest::bootstrap,
             by_swaps = paired && !by_bootstrap;
  Resampling resampling{.seed = plan.seed};
  if (plan.intervals || by_bootstrap)
    resampling.bootstrap = by_swaps ? kBootstrapSamples : plan.resamples.value_or(kBootstrapSamples);
  if (by_swaps) resampling.randomization = plan.resamples.value_or(kRandomizationTrials);

  MetricScores out{
      metric.name(), signature(metric, references.size(), resampling), digits_of(metric, plan.decimals), {}};
  SegmentCounts first;
  std::vector<double> first_samples;
  for (const Lines& system : systems) {
    SegmentCounts counts = count_segments(metric, system, references);
    const std::vector<double> sums = counts.sums();
    SystemScore& score = out.systems.emplace_back(SystemScore{metric.score(sums), metric.detail(sums), {}, {}});
    std::vector<double> samples;
    if (resampling.bootstrap > 0) {
      samples = bootstrap_scores(metric, counts, resampling.bootstrap, plan.seed);
      score.interval = interval95(samples);
    }
    if (out.systems.size() == 1) {
      first = std::move(counts);
      first_samples = std::move(samples);
    } else if (by_bootstrap) {
      score.p_value = paired_bootstrap_p(first_samples, samples, score.value - out.systems[0].value);
    } else {
      score.p_value = paired_randomization_p(metric, first, counts, resampling.randomization, plan.seed);
    }
  }
  return out;
}

std::string score_lines(const std::vector<MetricScores>& metrics) {
  size_t widest = 0;
  for (const MetricScores& metric : metrics) widest = std::max(widest, metric.signature.size());
  std::string out;
  for (const MetricScores& metric : metrics) {
    const SystemScore& score = metric.systems.at(0);
    const int digits = metric.digits;
    out += fmt::format("{:>{}} = {:.{}f}", metric.signature, widest, score.value, digits);
    if (score.interval)
      out += fmt::format(" (μ = {:.{}f} ± {:.{}f})", score.interval->mean, digits, score.interval->half_width, digits);
    out += (score.detail.empty() ? "" : " ") + score.detail + "\n";
  }
  return out;
}

std::string score_table(const Lines& systems, const std::vector<MetricScores>& metrics, PairedTest test,
                        Language language) {
  std::vector<std::vector<std::string>> columns = {{tr("system").in(language)}};
  for (const std::string& system : systems) columns[0].push_back(printable(system));
  for (const MetricScores& metric : metrics) {
    columns.push_back({metric.name});
    for (const SystemScore& score : metric.systems) columns.back().push_back(cell(score, metric.digits));
  }
  std::string out = joined_columns(columns) + "\n";
  for (const MetricScores& metric : metrics) out += metric.signature + "\n";
  const Text bootstrap = tr("paired bootstrap"), randomization = tr("paired approximate randomization");
  const std::string kind = (test == PairedTest::bootstrap ? bootstrap : randomization).in(language),
                    base = printable(systems[0]);
  out += tr("p: {kind} test against {base}; * where p < {significant}\n", "kind"_a = kind, "base"_a = base,
            "significant"_a = kSignificant)
             .in(language);
  return out;
}

std::string score_json(const Lines& systems, const std::vector<MetricScores>& metrics, size_t references,
                       size_t lines) {
  Json list = Json::array();
  for (size_t s = 0; s < systems.size(); ++s) {
    Json scores = Json::array();
    for (const MetricScores& metric : metrics) {
      const SystemScore& score = metric.systems[s];
      Json entry = {{"name", metric.name}, {"score", score.value}, {"signature", metric.signature}};
      if (!score.detail.empty()) entry["verbose_score"] = score.detail;
      if (score.interval) entry["confidence_mean"] = score.interval->mean;
      if (score.interval) entry["confidence_var"] = score.interval->half_width;
      if (score.p_value) entry["p_value"] = *score.p_value;
      scores.push_back(std::move(entry));
    }
    list.push_back({{"system", systems[s]}, {"scores", std::move(scores)}});
  }
  const Json json = {{"references", references}, {"lines", lines}, {"systems", std::move(list)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";  // a file name may not be UTF-8
}

SentenceScores sentence_scores(const Metric& metric, const Lines& system, const std::vector<Lines>& references,
                               int decimals) {
  SentenceScores out{metric.name(), digits_of(metric, decimals), {}};
  const SegmentCounts counts = count_segments(metric, system, references);
  for (size_t line = 0; line < counts.segments(); ++line) out.values.push_back(metric.score(counts.row(line)));
  return out;
}

std::string sentence_table(const std::vector<SentenceScores>& metrics) {
  std::string out = "line";
  for (const SentenceScores& metric : metrics) out += "\t" + metric.name;
  for (size_t line = 0; line < metrics.at(0).values.size(); ++line) {
    out += fmt::format("\n{}", line + 1);
    for (const SentenceScores& metric : metrics) out += fmt::format("\t{:.{}f}", metric.values[line], metric.digits);
  }
  return out + "\n";
}

std::string sentence_json(const std::vector<SentenceScores>& metrics) {
  Json list = Json::array();
  for (size_t line = 0; line < metrics.at(0).values.size(); ++line) {
    Json entry = {{"line", line + 1}};
    for (const SentenceScores& metric : metrics) entry[metric.name] = metric.values[line];
    list.push_back(std::move(entry));
  }
  return Json{{"sentences", std::move(list)}}.dump() + "\n";
}

}  // namespace qkv::report
