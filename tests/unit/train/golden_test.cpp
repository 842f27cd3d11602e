// Two small models against PyTorch: outputs, every gradient of the first step, ten losses, weights after ten steps.
#include <gtest/gtest.h>

#include <cmath>

#include "qkv/io/safetensors.h"
#include "qkv/nn/layers.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/loss.h"
#include "qkv/ops/norm.h"
#include "qkv/ops/shape.h"
#include "qkv/ops/softmax.h"
#include "qkv/train/optimizer.h"

namespace qkv {
namespace {

struct Perceptron {
  Linear first, second;
  Tensor operator()(const Tensor& x) const { return second(tanh(first(x))); }
  void visit(auto&& f) {
    f("first", first);
    f("second", second);
  }
};

struct AttentionBlock {
  Linear to_q, to_k, to_v, out;
  LayerNorm norm;

  Tensor operator()(const Tensor& x) const {  // (B, L, 8) -> (B, L, 6), two heads
    const int64_t B = x.size(0), L = x.size(1);
    const auto heads = [&](const Linear& f) { return permute(reshape(f(x), {B, L, 2, 4}), {0, 2, 1, 3}); };
    const Tensor q = heads(to_q), k = heads(to_k), v = heads(to_v);
    const Tensor weights = softmax(scale(matmul(q, k, Transpose::no, Transpose::yes), 0.5f));
    const Tensor mixed = reshape(permute(matmul(weights, v), {0, 2, 1, 3}), {B, L, 8});
    return out(norm(add(x, mixed)));
  }
  void visit(auto&& f) {
    f("to_q", to_q);
    f("to_k", to_k);
    f("to_v", to_v);
    f("norm", norm);
    f("out", out);
  }
};

// PyTorch calls gamma and beta of a layer norm weight and bias.
std::string torch_name(std::string name) {
  if (name == "norm.gamma") return "norm.weight";
  if (name == "norm.beta") return "norm.bias";
  return name;
}

void expect_near_largest(const Tensor& a, const Tensor& b, double tolerance, const std::string& what) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  double largest = 0, worst = 0;
  for (int64_t i = 0; i < a.numel(); ++i) {
    largest = std::max(largest, std::abs(double{b.ptr()[i]}));
    worst = std::max(worst, std::abs(double{a.ptr()[i]} - b.ptr()[i]));
    ASSERT_TRUE(std::isfinite(a.ptr()[i])) << what;
  }
  EXPECT_LE(worst, tolerance * largest) << what;
}

template <class Model>
void follow(Model model, const std::string& file) {
  const SafetensorsFile golden(QKV_SOURCE_DIR "/tests/golden/" + file);
  each_tensor(model,
              [&](const std::string& name, Tensor& t) { t = parameter(golden.tensor("start." + torch_name(name))); });
  Parameters all = flatten(model);
  Adam adam;
  GradArena arena = all.grad_arena();
  const Tensor x = golden.tensor("input.x"), losses = golden.tensor("losses");
  const Ids targets = golden.array("input.targets").to_ids("targets");
  for (int64_t step = 0; step < 10; ++step) {
    Tape tape(arena);
    const Tensor y = model(x);
    const Tensor loss = cross_entropy(y, targets);
    EXPECT_NEAR(loss.item(), losses.ptr()[step], 1e-5 * losses.ptr()[step]) << file << ", step " << step;
    tape.backward(loss);
    if (step == 0) {
      expect_near_largest(y, golden.tensor("output"), 1e-5, file + ", output");
      for (const auto& p : parameters(model))
        expect_near_largest(tape.grad(p.tensor), golden.tensor("grad." + torch_name(p.name)), 1e-5,
                            file + ", gradient of " + p.name);
    }
    adam.step(all, arena.flat(), 0.01f);
  }
  ASSERT_FALSE(parameters(model).empty());
  for (const auto& p : parameters(model))
    expect_near_largest(p.tensor, golden.tensor("end." + torch_name(p.name)), 1e-4, file + ", end of " + p.name);
}

TEST(Golden, PerceptronFollowsPyTorchForTenSteps) {
  const Rng rng(1);
  follow(Perceptron{Linear(12, 16, rng), Linear(16, 5, rng)}, "perceptron.safetensors");
}

TEST(Golden, AttentionBlockFollowsPyTorchForTenSteps) {
  const Rng rng(1);
  const auto plain = [&] { return Linear(8, 8, rng, Linear::Bias::no); };
  follow(AttentionBlock{plain(), plain(), plain(), Linear(8, 6, rng), LayerNorm(8)}, "attention_block.safetensors");
}

}  // namespace
}  // namespace qkv
