// BLEU and chrF against what sacreBLEU printed, to the character (tests/golden/make_bleu.py).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "qkv/core/names.h"
#include "qkv/core/version.h"
#include "qkv/eval/bleu.h"
#include "qkv/eval/chrf.h"
#include "qkv/eval/unicode.h"

namespace qkv {
namespace {

using Json = nlohmann::json;
using Lines = std::vector<std::string>;

const Json& golden() {
  static const Json json = [] {
    std::ifstream file(QKV_SOURCE_DIR "/tests/golden/bleu.json");
    return Json::parse(file);
  }();
  return json;
}

// What sacreBLEU prints after the equals sign, with four decimals.
std::string printed(const Metric& metric, const Json& corpus) {
  const auto sums =
      count_segments(metric, corpus["hypothesis"].get<Lines>(), corpus["references"].get<std::vector<Lines>>()).sums();
  const std::string detail = metric.detail(sums);
  return fmt::format("{:.4f}{}{}", metric.score(sums), detail.empty() ? "" : " ", detail);
}

void expect_agreement(const Metric& metric, const Json& entry) {
  std::string signed_by_us = signature(metric, 1);
  const std::string ours = std::string("qkv-") + version();
  ASSERT_TRUE(signed_by_us.ends_with(ours));
  signed_by_us.replace(signed_by_us.size() - ours.size(), ours.size(), "VERSION");
  EXPECT_EQ(signed_by_us, entry["signature"]);
  ASSERT_EQ(entry["scores"].size(), golden()["corpora"].size());
  for (const auto& [name, expected] : entry["scores"].items())
    EXPECT_EQ(printed(metric, golden()["corpora"][name]), expected) << name << " under " << entry["settings"];
}

BleuOptions bleu_options(const Json& settings) {
  BleuOptions options;
  options.tokenizer = parse_name<BleuTokenizer>(settings["tokenize"].get<std::string>(), "tokenize");
  options.smoothing = parse_name<Smoothing>(settings["smooth_method"].get<std::string>(), "smooth_method");
  if (!settings["smooth_value"].is_null()) options.smooth_value = settings["smooth_value"].get<double>();
  options.lowercase = settings["lowercase"];
  options.effective_order = settings["effective_order"];
  return options;
}

TEST(SacreBleu, TokenisersLeaveTheSameText) {
  ASSERT_GT(golden()["lines"].size(), 50u);
  for (const Json& entry : golden()["lines"]) {
    const std::string line = entry["line"];
    for (const BleuTokenizer tokenizer : every<BleuTokenizer>())
      EXPECT_EQ(tokenized(right_stripped(line), tokenizer), entry[std::string(name_of(tokenizer))])
          << name_of(tokenizer) << " of " << line;
  }
}

TEST(SacreBleu, LowerCaseIsPythons) {
  for (const Json& entry : golden()["lines"])
    EXPECT_EQ(full_lower_case(entry["line"].get<std::string>()), entry["lower"]);
}

TEST(SacreBleu, BleuPrintsTheSameUnderEverySetting) {
  ASSERT_EQ(golden()["bleu"].size(), 72u);
  for (const Json& entry : golden()["bleu"]) expect_agreement(Bleu(bleu_options(entry["settings"])), entry);
}

TEST(SacreBleu, ChrfPrintsTheSameUnderEverySetting) {
  ASSERT_EQ(golden()["chrf"].size(), 24u);
  for (const Json& entry : golden()["chrf"]) {
    const Json& s = entry["settings"];
    expect_agreement(Chrf({.word_order = s["word_order"],
                           .lowercase = s["lowercase"],
                           .whitespace = s["whitespace"],
                           .eps_smoothing = s["eps_smoothing"]}),
                     entry);
  }
}

TEST(SacreBleu, ScoresOfSentencesAreTheSame) {
  const Bleu bleu({.effective_order = true});
  const Chrf chrf, chrf_words({.word_order = 2});
  for (const auto& [name, corpus] : golden()["corpora"].items()) {
    std::vector<Lines> columns;
    for (const Metric* metric : std::initializer_list<const Metric*>{&bleu, &chrf, &chrf_words}) {
      const auto counts =
          count_segments(*metric, corpus["hypothesis"].get<Lines>(), corpus["references"].get<std::vector<Lines>>());
      columns.emplace_back();
      for (size_t s = 0; s < counts.segments(); ++s)
        columns.back().push_back(fmt::format("{:.4f}", metric->score(counts.row(s))));
    }
    for (size_t s = 0; s < columns[0].size(); ++s)
      EXPECT_EQ((Lines{columns[0][s], columns[1][s], columns[2][s]}), corpus["sentences"][s].get<Lines>())
          << name << " line " << s + 1;
  }
}

}  // namespace
}  // namespace qkv
