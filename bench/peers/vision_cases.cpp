// The vision Transformer against a framework: a training step at the book's size.
#include <algorithm>

#include "qkv/models/vision_transformer.h"
#include "qkv/ops/loss.h"
#include "qkv/ops/shape.h"
#include "qkv/train/optimizer.h"
#include "qkv/train/shards.h"
#include "side.h"

namespace qkv::peers {
namespace {

// Plain SGD with rate 0.1; no dropout where results are compared.
class VisionStep : public Case {
 public:
  explicit VisionStep(const Arrays& inputs)
      : inputs_(inputs),
        images_(inputs.at("images").to_tensor(verbatim("images"))),
        labels_(inputs.at("labels").to_ids("labels")) {
    start(0.1f);
  }
  void run() override { step(); }
  Arrays results() override {
    start(0);
    Tensor losses = Tensor::empty({inputs_.at("compared").to_ids("compared").ptr()[0]});
    for (int64_t i = 0; i < losses.numel(); ++i) losses.mutable_ptr()[i] = static_cast<float>(step());
    start(0.1f);
    return {{"losses", Array(losses)}};
  }

 private:
  struct Training {
    VisionTransformer model;
    Parameters all;
    Sgd sgd;
    Shards shards;
    uint64_t steps = 0;
    explicit Training(const VisionTransformer& start) : model(start), all(flatten(model)), shards(all) {
      sgd.begin(all);
    }
  };

  void start(float dropout) {
    training_.reset();  // free its memory first
    VisionTransformerConfig config{.patch = 16, .hidden = 512, .ffn = 2048, .heads = 8, .layers = 2};
    config.dropout = config.embedding_dropout = dropout;
    if (inputs_.at("has_cls").to_ids("has_cls").ptr()[0] == 0) config.pooling = Pooling::mean;
    VisionTransformer model(config, {1, 96, 96}, 10, Rng(0));
    for (const auto& p : parameters(model)) {
      const Array& values = inputs_.at(p.name);
      check(values.shape() == p.tensor.shape(), "[peers] \"", p.name, "\" has shape ", values.shape(), ", expected ",
            p.tensor.shape());
      std::ranges::copy(values.values<float>(), qkv::detail::writable(p.tensor));
    }
    training_ = std::make_unique<Training>(model);
  }

  double step() {
    Training& t = *training_;
    const auto rows = static_cast<double>(images_.size(0));
    const Run run{.training = true, .rng = Rng(1).at_step(t.steps++)};
    const auto loss_of = [&](int64_t begin, int64_t end, const Run& r) -> Loss {
      const Tensor logits = t.model.logits(slice(images_, 0, begin, end), r);
      return {cross_entropy(logits, slice(labels_, 0, begin, end), {.reduction = Reduction::sum}),
              static_cast<double>(end - begin)};
    };
    const BatchLoss loss = t.shards.gradients(images_.size(0), rows, run, loss_of);
    t.sgd.step(t.all, t.shards.gradient(), 0.1f, 1);
    return loss.sum / rows;
  }

  Arrays inputs_;
  Tensor images_;
  Ids labels_;
  std::unique_ptr<Training> training_;
};

}  // namespace

std::unique_ptr<Case> vision_case(const std::string& name, const Arrays& inputs) {
  if (name == "vision-step" || name == "vision-mean-step") return std::make_unique<VisionStep>(inputs);
  return nullptr;
}

}  // namespace qkv::peers
