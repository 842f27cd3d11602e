// The engine against a framework: the cost of a recorded op, and a perceptron's training step.
#include "qkv/nn/layers.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/loss.h"
#include "qkv/train/optimizer.h"
#include "qkv/train/shards.h"
#include "side.h"

namespace qkv::peers {
namespace {

Tensor input(const Arrays& inputs, const std::string& name) { return inputs.at(name).to_tensor(name); }

// 100 products of 8 elements in a row, forward and backward.
class RecordedOps : public Case {
 public:
  explicit RecordedOps(const Arrays& inputs) : w_(parameter(input(inputs, "w"))), c_(input(inputs, "c")) {}
  void run() override { chain(); }
  Arrays results() override { return {{"gradient", Array(chain())}}; }

 private:
  Tensor chain() {
    Tape tape;
    Tensor y = w_;
    for (int i = 0; i < 100; ++i) y = mul(y, c_);
    tape.backward(y, c_);
    return tape.grad(w_);
  }
  Tensor w_, c_;
};

struct Perceptron {
  Linear first, second, third;
  Tensor operator()(const Tensor& x) const { return third(second(first(x, Activation::relu), Activation::relu)); }
  void visit(auto&& f) {
    f("0", first);
    f("2", second);
    f("4", third);
  }
};

// 640 x 32 -> 64 -> 32 -> 201 with cross-entropy, clipping to norm 1 and Adam.
class PerceptronStep : public Case {
 public:
  explicit PerceptronStep(const Arrays& inputs)
      : x_(input(inputs, "x")),
        targets_(inputs.at("targets").to_ids("targets")),
        model_(load(inputs)),
        all_(flatten(model_)),
        shards_(all_) {}
  void run() override { step(); }
  Arrays results() override {
    Tensor losses = Tensor::empty({10});
    for (int64_t i = 0; i < 10; ++i) losses.mutable_ptr()[i] = static_cast<float>(step());
    return {{"losses", Array(losses)}};
  }

 private:
  static Perceptron load(const Arrays& inputs) {
    Perceptron model{Linear(32, 64, Rng(0)), Linear(64, 32, Rng(0)), Linear(32, 201, Rng(0))};
    each_tensor(model, [&](const std::string& name, Tensor& t) { t = parameter(input(inputs, name)); });
    return model;
  }
  double step() {
    const int64_t rows = x_.size(0);
    const BatchLoss loss = shards_.gradients(
        rows, static_cast<double>(rows), {.training = true}, [&](int64_t begin, int64_t end, const Run&) -> Loss {
          const Tensor sum = cross_entropy(model_(x_.part(begin * 32, {end - begin, 32})),
                                           targets_.part(begin, {end - begin}), {.reduction = Reduction::sum});
          return {sum, static_cast<double>(end - begin)};
        });
    adam_.step(all_, shards_.gradient(), 1e-3f, clip_factor(norm(shards_.gradient()), 1));
    return loss.sum / loss.count;
  }
  Tensor x_;
  Ids targets_;
  Perceptron model_;
  Parameters all_;
  Adam adam_;
  Shards shards_;
};

}  // namespace

std::unique_ptr<Case> engine_case(const std::string& name, const Arrays& inputs) {
  if (name == "recorded-op") return std::make_unique<RecordedOps>(inputs);
  if (name == "perceptron-step") return std::make_unique<PerceptronStep>(inputs);
  return nullptr;
}

}  // namespace qkv::peers
