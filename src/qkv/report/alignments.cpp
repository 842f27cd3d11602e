// Alignments as text and JSON.
#include "qkv/report/alignments.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "qkv/core/check.h"
#include "qkv/core/counts.h"

namespace qkv::report {
namespace {

using Json = nlohmann::ordered_json;

Text percent(const std::optional<double>& value) {
  return value ? verbatim(fmt::format("{:.1f} %", 100 * *value)) : tr("undefined");
}
Json number_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

// With its error rate, if there are scores.
Json reading_json(const AlignmentChoice& choice, size_t r) {
  const AlignmentReading& reading = choice.readings[r];
  Json out = {
      {"layer", reading.map / choice.heads + 1}, {"head", reading.map % choice.heads + 1}, {"shift", reading.shift}};
  if (!choice.scores.empty()) out["aer"] = number_or_null(choice.scores[r].error_rate());
  return out;
}

}  // namespace

std::string score_text(const AlignmentScore& score, size_t lines, Language language) {
  return tr("AER {rate}  precision {precision}  recall {recall}  F {f}  ({links}, gold {sure} sure and "
            "{possible} possible, {lines})\n",
            "rate"_a = percent(score.error_rate()), "precision"_a = percent(score.precision()),
            "recall"_a = percent(score.recall()), "f"_a = percent(score.f_score()),
            "links"_a = link_count(static_cast<uint64_t>(score.links)), "sure"_a = score.sure,
            "possible"_a = score.possible - score.sure, "lines"_a = line_count(lines))
      .in(language);
}

std::string to_json(const AlignmentScore& score, size_t lines, const AlignmentChoice* choice) {
  Json json = {{"aer", number_or_null(score.error_rate())},
               {"precision", number_or_null(score.precision())},
               {"recall", number_or_null(score.recall())},
               {"f", number_or_null(score.f_score())},
               {"links", score.links},
               {"sure", score.sure},
               {"possible", score.possible - score.sure},
               {"in_sure", score.in_sure},
               {"in_sure_or_possible", score.in_possible},
               {"lines", lines}};
  if (choice) {
    json["by"] = reading_json(*choice, choice->best);
    json["heads"] = Json::array();
    for (size_t r = 0; r < choice->readings.size(); ++r) json["heads"].push_back(reading_json(*choice, r));
  }
  return json.dump();
}

Text best_name(const AlignmentChoice& choice) {
  const AlignmentReading& reading = choice.readings[choice.best];
  const int64_t layer = reading.map / choice.heads + 1, head = reading.map % choice.heads + 1;
  return tr("layer {layer}, head {head}, shift {shift}", "layer"_a = layer, "head"_a = head, "shift"_a = reading.shift);
}

std::string choice_table(const AlignmentChoice& choice, Language language) {
  const auto& readings = choice.readings;
  const bool both = readings[0].map == readings[1].map;
  std::string out =
      both ? tr("layer  head    AER, shift {shift}      shift 1", "shift"_a = readings[0].shift).in(language)
           : tr("layer  head    AER, shift {shift}", "shift"_a = readings[0].shift).in(language);
  out += '\n';
  for (size_t r = 0; r < readings.size(); ++r) {
    if (r == 0 || readings[r].map != readings[r - 1].map)
      out += fmt::format("{:5}  {:4}    ", readings[r].map / choice.heads + 1, readings[r].map % choice.heads + 1);
    const bool ends = r + 1 == readings.size() || readings[r + 1].map != readings[r].map;
    out += fmt::format("{:>10}{}{}", percent(choice.scores[r].error_rate()).in(language),
                       r == choice.best ? " *"
                       : ends           ? ""
                                        : "  ",
                       ends ? "\n" : " ");
  }
  const Text rate = percent(choice.scores[choice.best].error_rate());
  return out + tr("{reading}: AER {rate}", "reading"_a = best_name(choice), "rate"_a = rate).in(language) + "\n";
}

std::string links_json(const AlignmentChoice& choice, const std::vector<Alignment>& alignments, int64_t base) {
  Json lines = Json::array();
  for (const Alignment& links : alignments) {
    Json& line = lines.emplace_back(Json::array());
    for (const AlignmentLink& link : links) line.push_back({link.source + base, link.target + base});
  }
  return Json{{"by", reading_json(choice, choice.best)}, {"alignments", lines}}.dump();
}

Figure alignments_figure(std::vector<DrawnAlignment> pairs, Text title) {
  Figure figure{.title = std::move(title), .colours = {.low = 0, .high = 1}};
  for (DrawnAlignment& pair : pairs) {
    HeatMap map{.values = pair.weights, .x_tokens = std::move(pair.source), .y_tokens = std::move(pair.target)};
    for (const AlignmentLink& link : pair.links) map.boxes.push_back({link.target, link.source});
    figure.panels.push_back({.content = std::move(map)});
  }
  figure.cols = figure.panels.size() % 2 == 0 ? 2 : 1;
  figure.rows = static_cast<int>(figure.panels.size()) / figure.cols;
  return figure;
}

}  // namespace qkv::report
