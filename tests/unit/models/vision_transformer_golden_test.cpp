// PyTorch's tiny vision Transformers step for step: outputs, every gradient of the first step, ten losses, the weights
// after them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "qkv/io/safetensors.h"
#include "qkv/models/vision_transformer.h"
#include "qkv/ops/loss.h"
#include "qkv/train/optimizer.h"
#include "support/near.h"

namespace qkv::tests {
namespace {

using qkv_test::expect_near_largest;

double largest(const Tensor& t) {
  double most = 0;
  for (const float v : t.data()) most = std::max(most, std::abs(double{v}));
  return most;
}

// Softmax is invariant to a constant added to all keys: the gradient of their bias is rounding error.
bool without_effect(const std::string& name) { return name.ends_with("to_k.bias"); }

void expect_ten_steps(VisionTransformer model, const std::string& name, Optimizer& optimizer, float rate,
                      const CrossEntropyOptions& options) {
  const SafetensorsFile file(QKV_SOURCE_DIR "/tests/golden/" + name);
  const Tensor images = file.tensor("input.images"), losses = file.tensor("losses");
  const Ids labels = file.array("input.labels").to_ids("labels");
  const Parameters all = flatten(model);
  size_t count = 0;
  for (const std::string& tensor : file.names()) count += tensor.starts_with("start.");
  ASSERT_EQ(all.entries().size(), count);
  for (size_t i = 0; i < count; ++i) {
    const std::string& entry = all.entries()[i].name;
    ASSERT_TRUE(file.has("start." + entry)) << entry;
    const Tensor values = file.tensor("start." + entry);
    ASSERT_EQ(values.shape(), all.entries()[i].shape) << entry;
    std::copy_n(values.ptr(), values.numel(), all.values(i).mutable_ptr());
  }
  expect_near_largest(model.logits(images, {}), file.tensor("logits"), 1e-5, "logits");
  GradArena arena = all.grad_arena();
  optimizer.begin(all);
  for (int64_t step = 0; step < 10; ++step) {
    Tape tape(arena);
    const Tensor loss = cross_entropy(model.logits(images, {.training = true}), labels, options);
    EXPECT_NEAR(loss.item(), losses.ptr()[step], 1e-5 * losses.ptr()[step]) << "step " << step;
    tape.backward(loss);
    if (step == 0)
      for (const auto& p : parameters(model)) {
        const Tensor gradient = tape.grad(p.tensor), reference = file.tensor("grad." + p.name);
        if (!without_effect(p.name)) {
          expect_near_largest(gradient, reference, 1e-5, "gradient of " + p.name);
          continue;
        }
        const std::string query = std::string(p.name).replace(p.name.size() - 9, 9, "to_q.bias");
        EXPECT_LE(largest(gradient), 1e-5 * largest(file.tensor("grad." + query))) << p.name;
      }
    optimizer.step(all, arena.flat(), rate, 1);
  }
  for (const auto& p : parameters(model))
    if (!without_effect(p.name)) expect_near_largest(p.tensor, file.tensor("end." + p.name), 1e-4, "end of " + p.name);
}

TEST(VisionTransformerGolden, TheBooksModelFollowsPyTorchForTenSteps) {
  VisionTransformerConfig config{.patch = 4, .hidden = 8, .ffn = 12, .heads = 2, .layers = 2};
  config.dropout = config.embedding_dropout = 0;
  Sgd sgd;
  expect_ten_steps(VisionTransformer(config, {1, 8, 12}, 4, Rng(1)), "vision_book.safetensors", sgd, 0.1f, {});
}

TEST(VisionTransformerGolden, TheMeanOfPatchesFollowsPyTorchsOwnLayersForTenSteps) {
  VisionTransformerConfig config{.patch = 2, .hidden = 8, .ffn = 16, .heads = 4, .layers = 2, .pooling = Pooling::mean};
  config.dropout = config.embedding_dropout = 0;
  config.bias = true;
  Adam adam;
  expect_ten_steps(VisionTransformer(config, {3, 6, 6}, 4, Rng(1)), "vision_mean.safetensors", adam, 0.005f,
                   {.label_smoothing = 0.1f});
}

}  // namespace
}  // namespace qkv::tests
