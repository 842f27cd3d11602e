// The vision Transformer: the book's size, the class token alone against the whole stack, batch mates, gradients,
// threads, memory, errors.
#include "qkv/models/vision_transformer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "qkv/attention/attention_of.h"
#include "qkv/core/parallel.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/loss.h"
#include "qkv/ops/reduce.h"
#include "qkv/ops/shape.h"
#include "support/near.h"
#include "support/threads.h"
#include "unit/ops/expect_error.h"

namespace qkv::tests {
namespace {

constexpr ImageSize kSize{2, 6, 9};

struct Variant {
  std::string name;
  VisionTransformerConfig config;
};

std::vector<Variant> variants() {
  const VisionTransformerConfig base{.patch = 3, .hidden = 8, .ffn = 12, .heads = 2, .layers = 2};
  std::vector<Variant> list;
  const auto add = [&](const char* name, auto&& change) {
    list.push_back({name, base});
    change(list.back().config);
  };
  add("class token", [](VisionTransformerConfig&) {});
  add("mean", [](VisionTransformerConfig& c) { c.pooling = Pooling::mean; });
  add("the book's start", [](VisionTransformerConfig& c) { c.init = VisionTransformerConfig::Init::pytorch; });
  add("post-norm, relu, biases", [](VisionTransformerConfig& c) {
    c.norm = NormPlace::post;
    c.activation = Activation::relu;
    c.bias = true;
  });
  add("no positions, one layer", [](VisionTransformerConfig& c) {
    c.positions = PositionKind::none;
    c.layers = 1;
  });
  add("sinusoidal, additive", [](VisionTransformerConfig& c) {
    c.positions = PositionKind::sinusoidal;
    c.attention = ScorerKind::additive;
  });
  add("recomputed", [](VisionTransformerConfig& c) { c.recompute = true; });
  return list;
}

VisionTransformer model_of(const VisionTransformerConfig& config) { return {config, kSize, 5, Rng(3)}; }

Tensor some_images(int64_t rows) { return uniform({rows, kSize.channels, kSize.height, kSize.width}, Rng(9), 0, 1); }

TEST(VisionTransformer, HasTheBooksNumberOfParameters) {
  VisionTransformerConfig config{.patch = 16, .hidden = 512, .ffn = 2048, .heads = 8, .layers = 2};
  int64_t count = 0;
  for (const NamedShape& p : config.layout({1, 96, 96}, 10)) count += p.shape.numel();
  EXPECT_EQ(count, 6'457'866);
  EXPECT_EQ(config.patches({1, 96, 96}), 36);
  EXPECT_EQ(config.tokens({1, 96, 96}), 37);
}

TEST(VisionTransformer, ListsItsParametersAndItsMaps) {
  for (const Variant& v : variants()) {
    VisionTransformer model = model_of(v.config);
    const Parameters all = flatten(model);
    const std::vector<NamedShape> said = v.config.layout(kSize, 5);
    ASSERT_EQ(said.size(), all.entries().size()) << v.name;
    for (size_t i = 0; i < said.size(); ++i) {
      EXPECT_EQ(said[i].name, all.entries()[i].name) << v.name;
      EXPECT_EQ(said[i].shape, all.entries()[i].shape) << v.name;
    }
    const int64_t tokens = v.config.tokens(kSize);
    const AttentionWeights seen = attention_of(model, some_images(2));
    EXPECT_EQ(std::ssize(seen), v.config.facts().maps[0].layers) << v.name;
    EXPECT_EQ(seen.at("encoder.0.self").shape(), (Shape{2, 2, tokens, tokens})) << v.name;
  }
}

// Without a probe the last block computes the class token alone; with one, all tokens.
TEST(VisionTransformer, TheClassTokenAloneIsTheClassTokenOfAll) {
  for (const Variant& v : variants()) {
    const VisionTransformer model = model_of(v.config);
    const Tensor images = some_images(3);
    detail::WeightsByPath probe;
    const Tensor whole = model.logits(images, qkv::Run{.probe = &probe}), alone = model.logits(images, {});
    qkv_test::expect_near_largest(alone, whole, 1e-6, v.name);
  }
}

TEST(VisionTransformer, ImagesOfABatchDoNotDependOnEachOther) {
  for (const Variant& v : variants()) {
    const VisionTransformer model = model_of(v.config);
    const Tensor images = some_images(5), all = model.logits(images, {});
    for (int64_t i = 0; i < 5; ++i) {
      const Tensor one = model.logits(slice(images, 0, i, i + 1), {});
      for (int64_t c = 0; c < 5; ++c) EXPECT_EQ(one.ptr()[c], all.ptr()[i * 5 + c]) << v.name << ", image " << i;
    }
  }
}

// Only positions tell patches apart: without them the mean does not see their order.
TEST(VisionTransformer, PositionsMakeTheOrderOfPatchesMatter) {
  VisionTransformerConfig config{.patch = 3, .hidden = 8, .ffn = 12, .heads = 2, .layers = 2, .pooling = Pooling::mean};
  const Tensor image = some_images(1);
  const Tensor left = slice(image, 3, 0, 3), rest = slice(image, 3, 3, 9), moved = concat({rest, left}, 3);
  const VisionTransformer placed = model_of(config);
  config.positions = PositionKind::none;
  const VisionTransformer unplaced = model_of(config);
  const auto change = [&](const VisionTransformer& m) {
    return max(abs(sub(m.logits(image, {}), m.logits(moved, {})))).item();
  };
  EXPECT_LT(change(unplaced), 1e-5);
  EXPECT_GT(change(placed), 1e-4);
}

TEST(VisionTransformer, GradientsAgreeWithDifferences) {
  for (const Variant& v : variants()) {
    VisionTransformerConfig config = v.config;
    if (config.activation == Activation::relu) continue;  // kinks
    const VisionTransformer model = model_of(config);
    // A layer norm of values close to zero, as these start, is far from linear within a step.
    for (const Tensor& small : {model.cls, model.positions})
      for (int64_t i = 0; small.defined() && small.is_parameter() && i < small.numel(); ++i)
        detail::writable(small)[i] = Rng(6).normal(static_cast<uint64_t>(i));
    const Tensor images = some_images(4), dy = uniform({4, 5}, Rng(5), -1, 1);
    const qkv::Run training{.training = true, .rng = Rng(4)};
    const auto loss = [&] { return sum(mul(model.logits(images, training), dy)); };
    Tape tape;
    tape.backward(loss());
    const TapePause pause;
    for (const auto& p : parameters(model)) {
      const Tensor gradient = tape.grad(p.tensor);
      const float most = max(abs(gradient)).item();
      for (const int64_t i : {int64_t{0}, p.tensor.numel() / 2}) {
        float& value = detail::writable(p.tensor)[i];
        const float before = value, step = 5e-3f;
        value = before + step;
        const double above = loss().item();
        value = before - step;
        const double below = loss().item();
        value = before;
        EXPECT_NEAR(gradient.ptr()[i], (above - below) / (2 * step), 4e-3 * (most + 0.02)) << v.name << " " << p.name;
      }
    }
  }
}

TEST(VisionTransformer, TrainingHasTheSameBitsAtAnyNumberOfThreads) {
  for (const Variant& v : variants()) {
    std::vector<float> first;
    for (const int threads : {1, 2, 8}) {
      const qkv_test::ThreadsScope scope(threads);
      const VisionTransformer model = model_of(v.config);
      Tape tape;
      tape.backward(sum(model.logits(some_images(40), {.training = true, .rng = Rng(4)})));
      std::vector<float> all;
      for (const auto& p : parameters(model)) {
        const Tensor gradient = tape.grad(p.tensor);
        all.insert(all.end(), gradient.data().begin(), gradient.data().end());
      }
      if (threads == 1)
        first = all;
      else
        EXPECT_EQ(all, first) << v.name << ", " << threads << " threads";
    }
  }
}

TEST(VisionTransformer, RecomputingChangesNoBit) {
  std::vector<Tensor> gradients;
  for (const bool again : {false, true}) {
    VisionTransformerConfig config{.patch = 3, .hidden = 8, .ffn = 12, .heads = 2, .layers = 3};
    config.recompute = again;
    const VisionTransformer model = model_of(config);
    Tape tape;
    tape.backward(sum(model.logits(some_images(4), {.training = true, .rng = Rng(4)})));
    gradients.push_back(tape.grad(model.embed.weight));
  }
  for (int64_t i = 0; i < gradients[0].numel(); ++i) EXPECT_EQ(gradients[0].ptr()[i], gradients[1].ptr()[i]);
}

TEST(VisionTransformer, RefusesSizesThatDoNotFit) {
  VisionTransformerConfig config{.patch = 4, .hidden = 8, .ffn = 12, .heads = 2, .layers = 2};
  expect_error(
      [&] {
        config.check({1, 28, 30});
      },
      "model.patch is 4, but the images have 28 x 30 pixels, which are not multiples of it");
  expect_error([&] { model_of(config); }, "[vision_transformer] 6 x 9 pixels cannot be cut into patches of size 4");
  config.heads = 3;
  expect_error([&] { config.check(); }, "model.hidden 8 is not divisible by model.heads 3");
  config = {.patch = 3, .hidden = 8, .ffn = 12, .heads = 2, .layers = 2};
  expect_error(
      [&] {
        model_of(config).logits(ones({1, 1, 6, 9}), {});
      },
      "[vision_transformer] expected images (B, 2, 6, 9), got (1, 1, 6, 9)");
}

}  // namespace
}  // namespace qkv::tests
