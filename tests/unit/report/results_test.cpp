// Results as text and JSON: what commands print, and what pages and other programs read.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "qkv/attention/scorers.h"
#include "qkv/eval/metrics.h"
#include "qkv/io/npy.h"
#include "qkv/report/attention.h"
#include "qkv/report/files.h"
#include "qkv/report/regression.h"
#include "qkv/report/scores.h"
#include "support/files.h"

namespace qkv::report {
namespace {

using Json = nlohmann::json;

TEST(Report, ScoresOfSeveralSystemsCompareThemWithTheFirst) {
  const Lines reference = {"the cat sleeps .", "the dog barks ."}, other = {"the cat sleeps .", "a dog barked ."};
  const auto metric = make_metric("d2l-bleu");
  const ScorePlan plan{.resamples = 20};
  const MetricScores scores = scored(*metric, {reference, other}, {reference}, plan);
  EXPECT_EQ(scores.digits, 3);
  ASSERT_EQ(scores.systems.size(), 2u);
  EXPECT_DOUBLE_EQ(scores.systems[0].value, 1);
  EXPECT_FALSE(scores.systems[0].p_value);
  EXPECT_TRUE(scores.systems[1].p_value);
  const Json json = Json::parse(score_json({"a", "b"}, {scores}, 1, 2));
  EXPECT_EQ(json["systems"][1]["system"], "b");
  EXPECT_EQ(json["systems"][1]["scores"][0]["p_value"], *scores.systems[1].p_value);
}

TEST(Report, SentencesHaveTheDigitsOfTheirMetric) {
  const Lines reference = {"va !"};
  const SentenceScores bleu = sentence_scores(*make_metric("chrf"), reference, {reference}, 1);
  const SentenceScores book = sentence_scores(*make_metric("d2l-bleu"), reference, {reference}, 1);
  EXPECT_EQ(sentence_table({bleu, book}), "line\tchrF2\td2l-bleu\n1\t100.0\t1.000\n");
  EXPECT_EQ(Json::parse(sentence_json({book}))["sentences"][0]["d2l-bleu"], 1);
}

TEST(Report, ARegressionIsATableAndJson) {
  const RegressionData data{
      .x_names = {"1"}, .y_names = {"weight"}, .x = Points::of({1, 2}), .y = Points::of({3, 5}), .dropped = 0};
  const KernelRegression regression(data.x, data.y, {.kernel = KernelShape::boxcar, .bandwidth = {0.5}});
  RegressionResult result;
  result.options = {.kernel = KernelShape::boxcar, .bandwidth = {0.5}};
  result.at = Points::of({1, 9});
  result.predictions = regression.predict(result.at);
  const Table table = prediction_table(data, result);
  EXPECT_EQ(table.names, (std::vector<std::string>{"x", "prediction"}));
  const Json json = Json::parse(to_json(data, result, JsonRows::with));
  EXPECT_EQ(json["absent"], 1);
  EXPECT_EQ(json["predictions"][0]["prediction"], 3);
  EXPECT_TRUE(json["predictions"][1]["prediction"].is_null());
  EXPECT_FALSE(Json::parse(to_json(data, result, JsonRows::without)).contains("predictions"));
  EXPECT_EQ(fit_figure(data, result).panels.size(), 1u);
}

TEST(Report, AnAttentionHasItsShapeInJsonAndAMapForEveryBatchRow) {
  const Tensor x({2, 1, 2}, {1, 0, 0, 1});
  const Attended attended = attend(ScaledDot{}, x, x, x);
  const Json json = Json::parse(to_json(attended));
  EXPECT_EQ(json["shape"], (std::vector<int>{2, 1, 2}));
  EXPECT_EQ(json["output"][1][0][1], 1);
  EXPECT_EQ(weight_maps(attended.weights, x.rank()).panels.size(), 2u);
}

TEST(Report, AnArrayFileIsReadToItsEnd) {
  const qkv_test::TempFolder folder;
  write_npy(folder / "w.npy", Tensor({2}, {1, 3}));
  const FileReport report = report_file(folder / "w.npy");
  EXPECT_NE(to_text(report, Language::en).find("npy, 1 array, 2 elements, "), std::string::npos);
  EXPECT_EQ(Json::parse(to_json(report))["arrays"][0]["mean"], 2);
}

}  // namespace
}  // namespace qkv::report
