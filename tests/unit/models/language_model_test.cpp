// Language models of all objectives: parameters, initial values, reading in one pass and step by step.
#include "qkv/models/language_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "qkv/ops/reduce.h"
#include "support/files.h"
#include "unit/models/model_checks.h"

namespace qkv::tests {
namespace {

LanguageModelConfig small(LanguageObjective objective) {
  LanguageModelConfig c{.objective = objective, .context = 12};
  c.transformer.hidden = 16;
  c.transformer.ffn = 32;
  c.transformer.heads = 2;
  c.transformer.layers = 2;
  c.transformer.dropout = 0;
  return c;
}

double deviation(const Tensor& t) {
  double squares = 0;
  for (const float v : t.data()) squares += double{v} * v;
  return std::sqrt(squares / static_cast<double>(t.numel()));
}

TEST(LanguageModel, ConfigurationsListTheParametersOfTheModel) {
  for (const LanguageObjective objective : every<LanguageObjective>())
    for (const bool biases : {true, false}) {
      LanguageModelConfig c = small(objective);
      c.transformer.bias = c.transformer.ffn_bias = c.transformer.norm_bias = c.transformer.output_bias = biases;
      const std::vector<NamedShape> said = c.layout(9);
      LanguageModel model(c, 9, Rng(1));
      const Parameters all = flatten(model);
      ASSERT_EQ(said.size(), all.entries().size());
      for (size_t i = 0; i < said.size(); ++i) {
        EXPECT_EQ(said[i].name, all.entries()[i].name);
        EXPECT_EQ(said[i].shape, all.entries()[i].shape);
        if (!biases) {
          EXPECT_FALSE(said[i].name.ends_with(".bias") || said[i].name.ends_with(".beta")) << said[i].name;
        }
      }
    }
}

// 4 layers of 128 with a context of 64: nanoGPT counts 0.80 million without positions for 65 characters.
TEST(LanguageModel, NanoGptsSettingHasItsParameters) {
  LanguageModelConfig c{.context = 64};
  c.transformer.bias = c.transformer.ffn_bias = c.transformer.norm_bias = false;
  EXPECT_EQ(count_parameters(LanguageModel(c, 65, Rng(1))), 65 * 128 + 64 * 128 + 4 * (12 * 128 * 128 + 2 * 128) + 128);
}

TEST(LanguageModel, StartsLikeGpt2) {
  LanguageModelConfig c{.context = 64};
  const LanguageModel model(c, 200, Rng(3));
  const TransformerBlock& block = model.single->stack.blocks[1];
  EXPECT_NEAR(deviation(model.single->embedding.weight), 0.02, 0.0005);
  EXPECT_NEAR(deviation(block.self.to_q.weight), 0.02, 0.0005);
  EXPECT_NEAR(deviation(block.ffn.as<FeedForward>()->first.weight), 0.02, 0.0005);
  EXPECT_NEAR(deviation(block.self.to_out.weight), 0.02 / std::sqrt(8), 0.0002);
  EXPECT_NEAR(deviation(block.ffn.as<FeedForward>()->second.weight), 0.02 / std::sqrt(8), 0.0002);
  EXPECT_EQ(deviation(block.self.to_q.bias), 0);
  EXPECT_EQ(deviation(block.ffn.as<FeedForward>()->first.bias), 0);
  EXPECT_EQ(model.output().weight.ptr(), model.single->embedding.weight.ptr());
  EXPECT_FALSE(model.output().bias.defined());
  // Untied, the output layer starts like every other matrix.
  c.transformer.tied = false;
  const LanguageModel untied(c, 200, Rng(3));
  EXPECT_NEAR(deviation(untied.output().weight), 0.02, 0.0005);
}

TEST(LanguageModel, APromptReadInOnePassGivesTheLogitsOfReadingItStepByStep) {
  LanguageModelConfig c = small(LanguageObjective::causal);
  c.transformer.init = TransformerConfig::Init::scaled;  // larger weights: sharper attention
  for (const bool biases : {true, false}) {
    c.transformer.bias = c.transformer.ffn_bias = c.transformer.norm_bias = biases;
    const LanguageModel model(c, 9, Rng(2));
    const TransformerDecoder& decoder = *model.single;
    const Ids ids = some_ids(3, 10, 9, 5);
    DecoderState once = decoder.start(3), stepwise = decoder.start(3);
    const Tensor prefilled = decoder.prefill(once, ids, {}, {});
    Tensor stepped;
    for (int64_t t = 0; t < 10; ++t) stepped = decoder.step(stepwise, column(ids, t), {});
    const float largest = max(abs(prefilled)).item();
    for (int64_t i = 0; i < prefilled.numel(); ++i)
      EXPECT_NEAR(prefilled.ptr()[i], stepped.ptr()[i], 1e-6 * std::max(largest, 1.0f));
    // And the next step after either is the same, too.
    const Ids next({3}, {1, 2, 3});
    const Tensor a = decoder.step(once, next, {}), b = decoder.step(stepwise, next, {});
    for (int64_t i = 0; i < a.numel(); ++i) EXPECT_NEAR(a.ptr()[i], b.ptr()[i], 1e-6 * std::max(largest, 1.0f));
  }
}

TEST(LanguageModel, OnlyAMaskedModelSeesLaterTokens) {
  Ids ids = some_ids(1, 8, 9, 1), changed = some_ids(1, 8, 9, 1);
  changed.mutable_ptr()[7] = (ids.ptr()[7] + 1) % 9;
  for (const LanguageObjective objective : {LanguageObjective::causal, LanguageObjective::masked}) {
    const LanguageModel model(small(objective), 9, Rng(1));
    const Tensor a = model.features(ids, {}), b = model.features(changed, {});
    const bool same = std::equal(a.ptr(), a.ptr() + 7 * 16, b.ptr());
    EXPECT_EQ(same, objective == LanguageObjective::causal);
  }
}

TEST(LanguageModel, SpecialTokensFollowThoseOfTheTokenizer) {
  const LanguageModel causal(small(LanguageObjective::causal), 9, Rng(1)),
      masked(small(LanguageObjective::masked), 9, Rng(1)), spans(small(LanguageObjective::spans), 9, Rng(1));
  EXPECT_EQ(causal.output().weight.size(0), 9);
  EXPECT_EQ(masked.output().weight.size(0), 10);
  EXPECT_EQ(masked.mask(), 9);
  EXPECT_EQ(spans.config.spans_of(12), 1);  // 2 of 12 tokens are hidden
  EXPECT_EQ(spans.output().weight.size(0), 9 + 2 + 1);
  EXPECT_EQ(spans.begin(), 11);
}

TEST(LanguageModel, RefusesWhatDoesNotFit) {
  LanguageModelConfig c = small(LanguageObjective::causal);
  c.transformer.decoder_layers = 3;
  EXPECT_EQ(
      qkv_test::error_of([&] { c.check(); }),
      "model.decoder_layers is for model.objective spans, which has an encoder and a decoder; this one is causal");
  c = small(LanguageObjective::masked);
  c.mask_random = 0.7;
  c.mask_kept = 0.6;
  EXPECT_EQ(qkv_test::error_of([&] { c.check(); }),
            "model.mask_random 0.7 and model.mask_kept 0.6 are more than 1 together");
}

}  // namespace
}  // namespace qkv::tests
