// Language models against a framework: a training step at nanoGPT's setting for a CPU, and writing with a cache.
#include <algorithm>

#include "qkv/decode/generate.h"
#include "qkv/models/language_model.h"
#include "qkv/ops/linear_loss.h"
#include "qkv/train/optimizer.h"
#include "qkv/train/shards.h"
#include "side.h"

namespace qkv::peers {
namespace {

Ids ids_of(const Arrays& inputs, const std::string& name) { return inputs.at(name).to_ids(name); }
int64_t number(const Arrays& inputs, const std::string& name) { return ids_of(inputs, name).ptr()[0]; }

// Sizes and weights as the runner wrote them.
LanguageModel language_model(const Arrays& inputs) {
  const auto size = [&](const char* name) { return number(inputs, std::string("size.") + name); };
  LanguageModelConfig c{.context = size("context")};
  c.transformer.hidden = size("width");
  c.transformer.ffn = size("ffn");
  c.transformer.heads = size("heads");
  c.transformer.layers = size("layers");
  c.transformer.dropout = 0;
  c.transformer.bias = c.transformer.ffn_bias = c.transformer.norm_bias = size("bias") != 0;
  LanguageModel model(c, size("vocabulary"), Rng(0));
  for (const auto& p : parameters(model)) {
    const Array& values = inputs.at(p.name);
    check(values.shape() == p.tensor.shape(), "[peers] \"", p.name, "\" has shape ", values.shape(), ", expected ",
          p.tensor.shape());
    std::ranges::copy(values.values<float>(), qkv::detail::writable(p.tensor));
  }
  return model;
}

// Mean loss, clipping to norm 1, AdamW on matrices.
class LanguageStep : public Case {
 public:
  explicit LanguageStep(const Arrays& inputs)
      : inputs_(inputs),
        read_(ids_of(inputs, "read")),
        wanted_(ids_of(inputs, "wanted")),
        rate_(inputs.at("rate").values<float>()[0]) {
    start();
  }
  void run() override { step(); }
  Arrays results() override {
    start();
    Tensor losses = Tensor::empty({number(inputs_, "compared")});
    for (int64_t i = 0; i < losses.numel(); ++i) losses.mutable_ptr()[i] = static_cast<float>(step());
    start();
    return {{"losses", Array(losses)}};
  }

 private:
  struct Training {
    LanguageModel model;
    Parameters all;
    Adam adam{{.beta2 = 0.99f, .decay = 0.1f, .decay_vectors = false}};
    Shards shards;
    explicit Training(const LanguageModel& start) : model(start), all(flatten(model)), shards(all) {}
  };

  void start() {
    training_.reset();  // free its memory first
    training_ = std::make_unique<Training>(language_model(inputs_));
  }
  double step() {
    Training& t = *training_;
    const auto tokens = static_cast<double>(wanted_.numel());
    const int64_t n = read_.size(1);
    const Run run{.training = true};
    const BatchLoss loss =
        t.shards.gradients(read_.size(0), tokens, run, [&](int64_t begin, int64_t end, const Run& r) -> Loss {
          const Shape shape{end - begin, n};
          const Tensor x = t.model.features(read_.part(begin * n, shape), r);
          return {linear_cross_entropy(x, t.model.output().weight, t.model.output().bias,
                                       wanted_.part(begin * n, shape), {.reduction = Reduction::sum}),
                  static_cast<double>(shape.numel())};
        });
    t.adam.step(t.all, t.shards.gradient(), rate_, clip_factor(norm(t.shards.gradient()), 1));
    return loss.sum / tokens;
  }

  Arrays inputs_;
  Ids read_, wanted_;
  float rate_;
  std::unique_ptr<Training> training_;
};

// The likeliest tokens after one prompt.
class LanguageGenerate : public Case {
 public:
  explicit LanguageGenerate(const Arrays& inputs)
      : model_(language_model(inputs)), prompt_(ids_of(inputs, "prompt")), count_(number(inputs, "new")) {}
  void run() override { written(); }
  Arrays results() override { return {{"written", Array(Ids({count_}, written()))}}; }

 private:
  std::vector<int32_t> written() const {
    return generate(*model_.single, prompt_.data(), {.temperature = 0, .max_length = count_, .end = kNoEnd}).front();
  }

  LanguageModel model_;
  Ids prompt_;
  int64_t count_;
};

}  // namespace

std::unique_ptr<Case> language_case(const std::string& name, const Arrays& inputs) {
  if (name == "language-generate") return std::make_unique<LanguageGenerate>(inputs);
  if (name == "language-step") return std::make_unique<LanguageStep>(inputs);
  return nullptr;
}

}  // namespace qkv::peers
