// Whole models against a framework: the book's Bahdanau training step.
#include "qkv/models/seq2seq.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/linear_loss.h"
#include "qkv/train/optimizer.h"
#include "qkv/train/shards.h"
#include "side.h"

namespace qkv::peers {
namespace {

// Teacher forcing, masked loss over the number of steps, clipping to norm 1, Adam; dropout 0.1 except where results are
// compared.
class BahdanauStep : public Case {
 public:
  explicit BahdanauStep(const Arrays& inputs)
      : inputs_(inputs),
        source_(ids("source")),
        source_lens_(ids("source_lens")),
        target_in_(ids("target_in")),
        wanted_(ids("targets")),
        target_lens_(ids("target_lens")) {
    const int64_t steps = wanted_.size(1);
    for (int64_t i = 0; i < wanted_.numel(); ++i)
      if (i % steps >= target_lens_.ptr()[i / steps]) wanted_.mutable_ptr()[i] = -1;
    start(0.1f);
  }
  void run() override { step(); }
  Arrays results() override {
    start(0);
    Tensor losses = Tensor::empty({10});
    for (int64_t i = 0; i < 10; ++i) losses.mutable_ptr()[i] = static_cast<float>(step());
    start(0.1f);
    return {{"losses", Array(losses)}};
  }

 private:
  struct Training {
    Seq2Seq model;
    Parameters all;
    Adam adam;
    Shards shards;
    uint64_t steps = 0;
    explicit Training(const Seq2Seq& start) : model(start), all(flatten(model)), shards(all) {}
  };

  Ids ids(const std::string& name) const { return inputs_.at(name).to_ids(name); }
  void start(float dropout) {
    Seq2Seq model({.embed = 32, .hidden = 32, .layers = 2, .dropout = dropout, .skip_padding = false}, {184, 201},
                  Rng(0));
    each_tensor(model, [&](const std::string& name, Tensor& t) { t = parameter(inputs_.at(name).to_tensor(name)); });
    training_ = std::make_unique<Training>(model);
  }
  double step() {
    Training& t = *training_;
    const auto steps = static_cast<double>(wanted_.size(1));
    const Run run{.training = true, .rng = Rng(1).at_step(t.steps++)};
    const BatchLoss loss =
        t.shards.gradients(source_.size(0), steps, run, [&](int64_t begin, int64_t end, const Run& r) -> Loss {
          const int64_t n = end - begin;
          const auto rows = [&](const Ids& x) { return x.part(begin * x.size(1), {n, x.size(1)}); };
          const auto lens = [&](const Ids& x) { return x.part(begin, {n}); };
          const Tensor y = t.model.features(rows(source_), lens(source_lens_), rows(target_in_), r, lens(target_lens_));
          const Tensor sum = linear_cross_entropy(y, t.model.output.weight, t.model.output.bias, rows(wanted_),
                                                  {.ignore_id = -1, .reduction = Reduction::sum});
          return {sum, 1};
        });
    t.adam.step(t.all, t.shards.gradient(), 5e-3f, clip_factor(norm(t.shards.gradient()), 1));
    return loss.sum / steps;
  }

  Arrays inputs_;
  Ids source_, source_lens_, target_in_, wanted_, target_lens_;
  std::unique_ptr<Training> training_;
};

}  // namespace

std::unique_ptr<Case> model_case(const std::string& name, const Arrays& inputs) {
  if (name.rfind("bahdanau-step", 0) == 0) return std::make_unique<BahdanauStep>(inputs);
  return nullptr;
}

}  // namespace qkv::peers
