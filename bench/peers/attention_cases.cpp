// Attention against a framework's: forward, and forward + backward with dropout.
#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/tensor/tape.h"
#include "side.h"

namespace qkv::peers {
namespace {

class AttentionCase : public Case {
 public:
  AttentionCase(const Arrays& inputs, bool backward)
      : backward_(backward),
        causal_(inputs.at("causal").to_ids("causal").ptr()[0] != 0),
        dropout_(inputs.at("dropout").to_tensor(verbatim("dropout")).ptr()[0]) {
    const auto leaf = [&](const char* name) { return parameter(inputs.at(name).to_tensor(verbatim(name))); };
    q_ = leaf("q");
    k_ = leaf("k");
    v_ = leaf("v");
    if (backward) dy_ = inputs.at("dy").to_tensor(verbatim("dy"));
  }
  void run() override {
    if (backward_)
      gradients(dropout_);
    else
      forward(0);
  }
  /// Random masks differ between the sides, so results are compared without dropout.
  Arrays results() override {
    if (!backward_) return {{"output", Array(forward(0))}};
    gradients(0);
    return {{"dq", Array(dq_)}, {"dk", Array(dk_)}, {"dv", Array(dv_)}};
  }

 private:
  Tensor forward(float dropout) const {
    return attend(ScaledDot{}, q_, k_, v_, causal_ ? Mask::causal() : Mask::none(),
                  {.training = dropout > 0, .rng = Rng(1)}, {.dropout = dropout})
        .output;
  }
  void gradients(float dropout) {
    Tape tape;
    tape.backward(forward(dropout), dy_);
    dq_ = tape.grad(q_);
    dk_ = tape.grad(k_);
    dv_ = tape.grad(v_);
  }
  bool backward_, causal_;
  float dropout_;
  Tensor q_, k_, v_, dy_, dq_, dk_, dv_;
};

}  // namespace

std::unique_ptr<Case> attention_case(const std::string& name, const Arrays& inputs) {
  if (name.starts_with("attention-forward")) return std::make_unique<AttentionCase>(inputs, false);
  if (name.starts_with("attention-training")) return std::make_unique<AttentionCase>(inputs, true);
  return nullptr;
}

}  // namespace qkv::peers
