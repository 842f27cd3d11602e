// PyTorch's tiny language models step for step: logits, every gradient of the first step, ten losses, the weights after
// them.
#include <gtest/gtest.h>

#include <algorithm>

#include "qkv/io/safetensors.h"
#include "qkv/models/language_model.h"
#include "qkv/ops/linear_loss.h"
#include "qkv/train/optimizer.h"
#include "support/near.h"

namespace qkv::tests {
namespace {

using qkv_test::expect_near_largest;

// A bias of all keys changes no weight: its gradient is rounding error, in PyTorch as here.
bool without_effect(const std::string& name) { return name.ends_with("to_k.bias"); }

void expect_ten_steps(const LanguageModelConfig& config, int64_t tokens, const std::string& name) {
  const SafetensorsFile file(QKV_SOURCE_DIR "/tests/golden/" + name);
  const Ids ids = file.array("input.ids").to_ids("ids"), wanted = file.array("input.wanted").to_ids("wanted");
  LanguageModel model(config, tokens, Rng(1));
  const Parameters all = flatten(model);
  size_t count = 0;
  for (const std::string& entry : file.names()) count += entry.starts_with("start.");
  ASSERT_EQ(all.entries().size(), count);
  for (size_t i = 0; i < count; ++i) {
    const auto& entry = all.entries()[i];
    ASSERT_TRUE(file.has("start." + entry.name)) << entry.name;
    const Tensor values = file.tensor("start." + entry.name);
    ASSERT_EQ(values.shape(), entry.shape) << entry.name;
    std::copy_n(values.ptr(), values.numel(), all.values(i).mutable_ptr());
  }
  expect_near_largest(model.output()(model.features(ids, {})), file.tensor("logits"), 1e-5, "logits");
  Adam adam({.beta2 = 0.99f, .decay = 0.1f, .decay_vectors = false});
  GradArena arena = all.grad_arena();
  const Tensor losses = file.tensor("losses");
  for (int64_t step = 0; step < 10; ++step) {
    Tape tape(arena);
    const Tensor x = model.features(ids, {.training = true});
    const Tensor loss = linear_cross_entropy(x, model.output().weight, model.output().bias, wanted, {.ignore_id = -1});
    EXPECT_NEAR(loss.item(), losses.ptr()[step], 1e-5 * losses.ptr()[step]) << "step " << step;
    tape.backward(loss);
    for (size_t i = 0; step == 0 && i < count; ++i)
      if (!without_effect(all.entries()[i].name))
        expect_near_largest(all.in(arena.flat(), i), file.tensor("grad." + all.entries()[i].name), 1e-5,
                            "gradient of " + all.entries()[i].name);
    adam.step(all, arena.flat(), 0.005f, clip_factor(norm(arena.flat()), 1));
  }
  for (size_t i = 0; i < count; ++i)
    if (!without_effect(all.entries()[i].name))
      expect_near_largest(all.values(i), file.tensor("end." + all.entries()[i].name), 1e-4,
                          "end of " + all.entries()[i].name);
}

LanguageModelConfig config_of(LanguageObjective objective, int64_t context, int64_t hidden, int64_t heads,
                              int64_t ffn) {
  LanguageModelConfig c{.objective = objective, .context = context};
  c.transformer.hidden = hidden;
  c.transformer.heads = heads;
  c.transformer.ffn = ffn;
  c.transformer.layers = 2;
  c.transformer.dropout = 0;
  return c;
}

TEST(LanguageGolden, Gpt2sLayoutFollowsPyTorchForTenSteps) {
  expect_ten_steps(config_of(LanguageObjective::causal, 7, 16, 4, 24), 13, "language_causal.safetensors");
}

TEST(LanguageGolden, WithoutBiasesItFollowsPyTorchForTenSteps) {
  LanguageModelConfig c = config_of(LanguageObjective::causal, 9, 12, 3, 48);
  c.transformer.bias = c.transformer.ffn_bias = c.transformer.norm_bias = false;
  expect_ten_steps(c, 11, "language_nano.safetensors");
  c.transformer.recompute = true;
  expect_ten_steps(c, 11, "language_nano.safetensors");
}

TEST(LanguageGolden, AMaskedModelFollowsPyTorchForTenSteps) {
  expect_ten_steps(config_of(LanguageObjective::masked, 9, 16, 2, 32), 12, "language_masked.safetensors");
}

}  // namespace
}  // namespace qkv::tests
