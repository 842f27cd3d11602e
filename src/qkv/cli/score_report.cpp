// What `qkv score` prints.
#include "qkv/cli/score_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "qkv/cli/terminal.h"
#include "qkv/plot/text.h"

namespace qkv::cli {
namespace {

using Json = nlohmann::ordered_json;
constexpr double kSignificant = 0.05;

// "27.0 (27.0 ± 1.1, p = 0.0320 *)"
std::string cell(const SystemScore& score, int digits) {
  std::string beside;
  if (score.interval) beside = fmt::format("{:.{}f} ± {:.{}f}", score.interval->mean, digits, score.interval->half_width, digits);
  if (score.p_value)
    beside += fmt::format("{}p = {:.4f}{}", beside.empty() ? "" : ", ", *score.p_value, *score.p_value < kSignificant ? " *" : "");
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

}  // namespace

std::string score_lines(const std::vector<MetricScores>& metrics) {
  size_t widest = 0;
  for (const MetricScores& metric : metrics) widest = std::max(widest, metric.signature.size());
  std::string out;
  for (const MetricScores& metric : metrics) {
    const SystemScore& score = metric.systems.at(0);
    const int digits = metric.digits;
    out += fmt::format("{:>{}} = {:.{}f}", metric.signature, widest, score.value, digits);
    if (score.interval) out += fmt::format(" (μ = {:.{}f} ± {:.{}f})", score.interval->mean, digits, score.interval->half_width, digits);
    out += (score.detail.empty() ? "" : " ") + score.detail + "\n";
  }
  return out;
}

std::string score_table(const std::vector<std::string>& systems, const std::vector<MetricScores>& metrics, const std::string& test,
                        Language language) {
  std::vector<std::vector<std::string>> columns = {{Text{"system", "系统"}.in(language)}};
  for (const std::string& system : systems) columns[0].push_back(printable(system));
  for (const MetricScores& metric : metrics) {
    columns.push_back({metric.name});
    for (const SystemScore& score : metric.systems) columns.back().push_back(cell(score, metric.digits));
  }
  std::string out = joined_columns(columns) + "\n";
  for (const MetricScores& metric : metrics) out += metric.signature + "\n";
  const Text bootstrap{"paired bootstrap", "成对自助法"}, randomization{"paired approximate randomization", "成对近似随机化"};
  const std::string kind = (test == "bootstrap" ? bootstrap : randomization).in(language), base = printable(systems[0]);
  out += Text{fmt::format("p: {} test against {}; * where p < {}\n", kind, base, kSignificant),
              fmt::format("p：与 {} 比较的{}检验；* 表示 p < {}\n", base, kind, kSignificant)}.in(language);
  return out;
}

std::string score_json(const std::vector<std::string>& systems, const std::vector<MetricScores>& metrics, size_t references, size_t lines) {
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
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";  // a file name may be no UTF-8
}

}  // namespace qkv::cli
