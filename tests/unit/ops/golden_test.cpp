// Ops one by one against PyTorch: values, and the gradients of all inputs (tests/golden/make_ops.py).
#include <gtest/gtest.h>

#include <functional>

#include "qkv/io/safetensors.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/matmul.h"
#include "qkv/ops/norm.h"
#include "qkv/ops/reduce.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/tape.h"
#include "support/near.h"

namespace qkv {
namespace {

using Tensors = std::vector<Tensor>;

struct GoldenOp {
  const char* name;
  std::vector<std::string> inputs;
  std::function<Tensors(const Tensors&)> call;
};

const SafetensorsFile& golden() {
  static const SafetensorsFile file(QKV_SOURCE_DIR "/tests/golden/ops.safetensors");
  return file;
}

std::vector<GoldenOp> golden_ops() {
  const Ids rows = golden().array("gather_rows.rows").to_ids("rows");
  return {
      {"silu", {"x"}, [](const Tensors& in) { return Tensors{silu(in[0])}; }},
      {"gelu_tanh", {"x"}, [](const Tensors& in) { return Tensors{gelu_tanh(in[0])}; }},
      {"gated",
       {"x", "gate", "up"},
       [](const Tensors& in) {
         return Tensors{mul(linear(in[0], in[1], {}, Activation::silu), linear(in[0], in[2]))};
       }},
      {"clamp", {"x"}, [](const Tensors& in) { return Tensors{clamp(in[0], -1, 0.5f)}; }},
      {"rms_norm", {"x", "gamma"}, [](const Tensors& in) { return Tensors{rms_norm(in[0], in[1], 1e-5f)}; }},
      {"linear_silu",
       {"x", "w", "b"},
       [](const Tensors& in) { return Tensors{linear(in[0], in[1], in[2], Activation::silu)}; }},
      {"patches", {"x"}, [](const Tensors& in) { return Tensors{patches(in[0], 2)}; }},
      {"gather_rows", {"x"}, [rows](const Tensors& in) { return Tensors{gather_rows(in[0], rows)}; }},
      {"broadcast_to",
       {"x"},
       [](const Tensors& in) {
         return Tensors{broadcast_to(in[0], {2, 3, 4, 5})};
       }},
      {"stack", {"a", "b", "c"}, [](const Tensors& in) { return Tensors{stack(in, 1)}; }},
      {"split",
       {"x"},
       [](const Tensors& in) {
         return split(in[0], {2, 1, 4}, 1);
       }},
      {"min", {"x"}, [](const Tensors& in) { return Tensors{min(in[0], 1)}; }},
  };
}

TEST(Golden, OpsAgreeWithPyTorch) {
  for (const GoldenOp& op : golden_ops()) {
    const std::string base = std::string(op.name) + ".";
    Tensors inputs;
    for (const std::string& input : op.inputs) inputs.push_back(parameter(golden().tensor(base + input)));
    Tape tape;
    const Tensors outputs = op.call(inputs);
    Tensor loss = scalar(0);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string at = std::to_string(i);
      qkv_test::expect_near_largest(outputs[i], golden().tensor(base + "y" + at), 1e-6, base + "y" + at);
      loss = loss + sum(outputs[i] * golden().tensor(base + "dy" + at));
    }
    EXPECT_FALSE(golden().has(base + "y" + std::to_string(outputs.size()))) << base << " has more outputs";
    tape.backward(loss);
    for (size_t i = 0; i < inputs.size(); ++i)
      qkv_test::expect_near_largest(tape.grad(inputs[i]), golden().tensor(base + "d" + op.inputs[i]), 2e-6,
                                    base + "d" + op.inputs[i]);
  }
}

TEST(Golden, ArgmaxAgreesWithPyTorch) {
  const Ids found = argmax(golden().tensor("argmax.x"), 1), wanted = golden().array("argmax.y0").to_ids("argmax.y0");
  ASSERT_EQ(found.shape(), wanted.shape());
  EXPECT_TRUE(std::equal(found.ptr(), found.ptr() + found.numel(), wanted.ptr()));
}

}  // namespace
}  // namespace qkv
