// attend against PyTorch's own attention: values and gradients of tests/golden/attention.safetensors.
#include <gtest/gtest.h>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/io/safetensors.h"
#include "qkv/tensor/tape.h"
#include "unit/attention/cases.h"

namespace qkv::tests {

TEST(AttentionGolden, ValuesAndGradientsAreThoseOfPyTorch) {
  const SafetensorsFile file(QKV_SOURCE_DIR "/tests/golden/attention.safetensors");
  for (const std::string name : {"plain", "causal", "unequal", "grouped", "keep", "bias"})
    for (AttendPath path : {AttendPath::fused, AttendPath::composed}) {
      const auto leaf = [&](const char* part) { return parameter(file.tensor(name + "." + part)); };
      const auto golden = [&](const std::string& part) { return Array(file.tensor(name + "." + part)); };
      const Tensor q = leaf("q"), k = leaf("k"), v = leaf("v"), bias = name == "bias" ? leaf("bias") : Tensor();
      Tape tape;
      Mask mask;
      if (name == "causal") mask = Mask::causal();
      if (name == "keep") mask = Mask::keep(file.array(name + ".keep").to_ids(name));
      if (name == "bias") mask = Mask::bias(bias);
      const Tensor y = attend(ScaledDot{}, q, k, v, mask, {}, {.path = path}).output;
      tape.backward(y, file.tensor(name + ".dy"));
      expect_near(y, golden("output"), 1e-5, name);
      expect_near(tape.grad(q), golden("dq"), 1e-5, name + ", dq");
      expect_near(tape.grad(k), golden("dk"), 1e-5, name + ", dk");
      expect_near(tape.grad(v), golden("dv"), 1e-5, name + ", dv");
      if (bias.defined()) expect_near(tape.grad(bias), golden("dbias"), 1e-5, name + ", dbias");
    }
}

}  // namespace qkv::tests
