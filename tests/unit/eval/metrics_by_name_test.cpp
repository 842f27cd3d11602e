// Metrics by name.
#include <gtest/gtest.h>

#include "qkv/eval/metrics.h"
#include "support/files.h"

namespace qkv {
namespace {

TEST(Metrics, EveryNameMakesAMetricThatScoresItsOwnReferenceBest) {
  const std::vector<std::string> line = {"the cat sleeps on the warm roof ."};
  for (const std::string& name : metric_names()) {
    const auto metric = make_metric(name);
    EXPECT_NEAR(corpus_score(*metric, line, {line}), metric->best(), 1e-9) << name;
  }
}

TEST(Metrics, TakeTheOptionsThatTheyKnow) {
  const MetricOptions options{.bleu = {.tokenizer = BleuTokenizer::none}, .d2l_k = 3, .lowercase = true};
  EXPECT_EQ(make_metric("bleu", options)->settings(), "case:lc|eff:no|tok:none|smooth:exp");
  EXPECT_FALSE(make_metric("bleu", options)->tokenizes());
  EXPECT_TRUE(make_metric("bleu")->tokenizes());
  EXPECT_EQ(make_metric("d2l-bleu", options)->settings(), "case:lc|k:3");
  EXPECT_EQ(make_metric("d2l-bleu")->most_references(), 1u);
  EXPECT_EQ(make_metric("chrf++")->name(), "chrF2++");
}

TEST(Metrics, AnUnknownNameIsRefusedWithThoseThereAre) {
  EXPECT_EQ(qkv_test::error_of([] { make_metric("blue"); }),
            "metric: got \"blue\", expected one of bleu, chrf, chrf++, d2l-bleu");
}

}  // namespace
}  // namespace qkv
