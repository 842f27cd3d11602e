// PyTorch's tiny Transformers step for step: outputs, every gradient of the first step, ten losses, the weights after
// them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "qkv/io/safetensors.h"
#include "qkv/models/transformer.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/linear_loss.h"
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

// Softmax is invariant to a constant added to all keys: PyTorch's gradient of their bias is rounding error, and ours
// may be a different one.
bool without_effect(const std::string& name) { return name.ends_with("to_k.bias"); }

struct Golden {
  SafetensorsFile file;
  Ids source, source_lens, target_in, wanted;

  explicit Golden(const std::string& name) : file(QKV_SOURCE_DIR "/tests/golden/" + name) {
    const auto ids = [&](const std::string& key) { return file.array("input." + key).to_ids(key); };
    source = ids("source");
    source_lens = ids("source_lens");
    target_in = ids("target_in");
    wanted = ids("targets");
    const Ids lens = ids("target_lens");
    for (int64_t i = 0; i < wanted.numel(); ++i)
      if (i % wanted.size(1) >= lens.ptr()[i / wanted.size(1)]) wanted.mutable_ptr()[i] = -1;
  }

  // The file has the values of every parameter, and no others.
  void fill(const Transformer& model) const {
    size_t count = 0;
    for (const std::string& name : file.names()) count += name.starts_with("start.");
    const auto all = parameters(model);
    ASSERT_EQ(all.size(), count);
    for (const auto& p : all) {
      ASSERT_TRUE(file.has("start." + p.name)) << p.name;
      const Tensor values = file.tensor("start." + p.name);
      ASSERT_EQ(values.shape(), p.tensor.shape()) << p.name;
      std::copy_n(values.ptr(), values.numel(), detail::writable(p.tensor));
    }
  }

  void expect_gradients(const Transformer& model, const Tape& tape) const {
    for (const auto& p : parameters(model)) {
      const Tensor gradient = tape.grad(p.tensor), reference = file.tensor("grad." + p.name);
      if (!without_effect(p.name)) {
        expect_near_largest(gradient, reference, 1e-5, "gradient of " + p.name);
        continue;
      }
      const std::string query = std::string(p.name).replace(p.name.size() - 9, 9, "to_q.bias");
      ASSERT_EQ(gradient.shape(), reference.shape());
      EXPECT_LE(largest(gradient), 1e-5 * largest(file.tensor("grad." + query))) << p.name;
      EXPECT_LE(largest(reference), 1e-5 * largest(file.tensor("grad." + query))) << p.name;
    }
  }

  void expect_ten_steps(Transformer model,
                        const std::function<Tensor(const Transformer&, const Tensor&)>& loss_of) const {
    Parameters all = flatten(model);
    fill(model);
    if (testing::Test::HasFatalFailure()) return;
    expect_near_largest(model.logits(source, source_lens, target_in, {}), file.tensor("logits"), 1e-5, "logits");
    Adam adam;
    GradArena arena = all.grad_arena();
    const Tensor losses = file.tensor("losses");
    for (int64_t step = 0; step < 10; ++step) {
      Tape tape(arena);
      const Tensor loss = loss_of(model, model.features(source, source_lens, target_in, {.training = true}));
      EXPECT_NEAR(loss.item(), losses.ptr()[step], 1e-5 * losses.ptr()[step]) << "step " << step;
      tape.backward(loss);
      if (step == 0) expect_gradients(model, tape);
      adam.step(all, arena.flat(), 0.005f, clip_factor(norm(arena.flat()), 1));
    }
    for (const auto& p : parameters(model))
      if (!without_effect(p.name))
        expect_near_largest(p.tensor, file.tensor("end." + p.name), 1e-4, "end of " + p.name);
  }
};

TEST(TransformerGolden, TheBooksBlocksFollowPyTorchForTenSteps) {
  const Golden golden("transformer_post.safetensors");
  const Transformer model({.hidden = 8, .ffn = 16, .heads = 2, .layers = 2, .dropout = 0}, {13, 11}, Rng(1));
  golden.expect_ten_steps(model, [&](const Transformer& m, const Tensor& y) {
    const Linear& output = m.decoder.output;
    return scale(linear_cross_entropy(y, output.weight, output.bias, golden.wanted,
                                      {.ignore_id = -1, .reduction = Reduction::sum}),
                 0.25f);
  });
}

TEST(TransformerGolden, PreNormSharedKeysAndTiedEmbeddingsFollowPyTorchForTenSteps) {
  const Golden golden("transformer_pre.safetensors");
  const Transformer model({.hidden = 8,
                           .ffn = 16,
                           .heads = 4,
                           .key_heads = 2,
                           .layers = 1,
                           .decoder_layers = 2,
                           .dropout = 0,
                           .norm = NormPlace::pre,
                           .activation = Activation::gelu,
                           .bias = true,
                           .tied = true},
                          {12, 12}, Rng(1));
  golden.expect_ten_steps(model, [&](const Transformer& m, const Tensor& y) {
    const Linear& output = m.decoder.output;
    return linear_cross_entropy(y, output.weight, output.bias, golden.wanted,
                                {.ignore_id = -1, .label_smoothing = 0.1f});
  });
}

}  // namespace
}  // namespace qkv::tests
