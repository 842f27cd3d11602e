// The Transformer against a framework: training steps, beam search, and the memory of a long step.
#include "qkv/models/transformer.h"

#include <algorithm>

#include "qkv/decode/search.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/linear_loss.h"
#include "qkv/train/optimizer.h"
#include "qkv/train/shards.h"
#include "side.h"

namespace qkv::peers {
namespace {

Ids ids_of(const Arrays& inputs, const std::string& name) { return inputs.at(name).to_ids(name); }
int64_t number(const Arrays& inputs, const std::string& name) { return ids_of(inputs, name).ptr()[0]; }

// Sizes and weights as the runner wrote them.
Transformer transformer(const Arrays& inputs, float dropout) {
  const auto size = [&](const char* name) { return number(inputs, std::string("size.") + name); };
  Transformer model({.hidden = size("width"),
                     .ffn = size("ffn"),
                     .heads = size("heads"),
                     .layers = size("encoder_layers"),
                     .decoder_layers = size("decoder_layers"),
                     .dropout = dropout,
                     .norm = size("pre_norm") ? NormPlace::pre : NormPlace::post,
                     .bias = size("bias") != 0,
                     .tied = size("tied") != 0},
                    {size("source"), size("target")}, Rng(0));
  for (const auto& p : parameters(model)) {
    const Array& values = inputs.at(p.name);
    check(values.shape() == p.tensor.shape(), "[peers] \"", p.name, "\" has shape ", values.shape(), ", expected ",
          p.tensor.shape());
    std::ranges::copy(values.values<float>(), qkv::detail::writable(p.tensor));
  }
  return model;
}

// A model with everything that its training needs.
template <class Model>
struct Training {
  Model model;
  Parameters all;
  Adam adam;
  Shards shards;
  uint64_t steps = 0;
  explicit Training(const Model& start) : model(start), all(flatten(model)), shards(all) {}

  Run next() { return {.training = true, .rng = Rng(1).at_step(steps++)}; }
  void update(float rate) { adam.step(all, shards.gradient(), rate, clip_factor(norm(shards.gradient()), 1)); }
};

// Teacher forcing, loss over the number of target steps, clipping to norm 1, Adam; no dropout where results are
// compared.
class TransformerStep : public Case {
 public:
  explicit TransformerStep(const Arrays& inputs)
      : inputs_(inputs),
        source_(ids_of(inputs, "source")),
        source_lens_(ids_of(inputs, "source_lens")),
        target_in_(ids_of(inputs, "target_in")),
        wanted_(ids_of(inputs, "targets")),
        rate_(inputs.at("rate").values<float>()[0]),
        dropout_(inputs.at("size.dropout").values<float>()[0]) {
    const Ids target_lens = ids_of(inputs, "target_lens");
    const int64_t steps = wanted_.size(1);
    for (int64_t i = 0; i < wanted_.numel(); ++i)
      if (i % steps >= target_lens.ptr()[i / steps]) wanted_.mutable_ptr()[i] = -1;
    start(dropout_);
  }
  void run() override { step(); }
  Arrays results() override {
    start(0);
    Tensor losses = Tensor::empty({number(inputs_, "compared")});
    for (int64_t i = 0; i < losses.numel(); ++i) losses.mutable_ptr()[i] = static_cast<float>(step());
    start(dropout_);
    return {{"losses", Array(losses)}};
  }

 private:
  void start(float dropout) {
    training_.reset();  // free its memory first
    training_ = std::make_unique<Training<Transformer>>(transformer(inputs_, dropout));
  }
  double step() {
    auto& t = *training_;
    const Linear& output = t.model.decoder.output;
    const auto steps = static_cast<double>(wanted_.size(1));
    const BatchLoss loss =
        t.shards.gradients(source_.size(0), steps, t.next(), [&](int64_t begin, int64_t end, const Run& run) -> Loss {
          const int64_t n = end - begin;
          const auto rows = [&](const Ids& x) { return x.part(begin * x.size(1), {n, x.size(1)}); };
          const Tensor y = t.model.features(rows(source_), source_lens_.part(begin, {n}), rows(target_in_), run);
          const Tensor sum = linear_cross_entropy(y, output.weight, output.bias, rows(wanted_),
                                                  {.ignore_id = -1, .reduction = Reduction::sum});
          return {sum, 1};
        });
    t.update(rate_);
    return loss.sum / steps;
  }

  Arrays inputs_;
  Ids source_, source_lens_, target_in_, wanted_;
  float rate_, dropout_;
  std::unique_ptr<Training<Transformer>> training_;
};

class Decoder : public SourceStepModel {
 public:
  explicit Decoder(const Transformer& model) : model_(model) {}
  void start(const Ids& source, const Ids& lengths) override { state_ = model_.start(source, lengths, {}); }
  Tensor step(const Ids& tokens) override { return model_.step(state_, tokens, {}); }
  void select(std::span<const int32_t> rows) override { model_.select(state_, rows); }

 private:
  const Transformer& model_;
  Transformer::State state_;
};

// Sentences are sorted by length.
class Beam : public Case {
 public:
  explicit Beam(const Arrays& inputs)
      : model_(transformer(inputs, 0)),
        source_(ids_of(inputs, "source")),
        lens_(ids_of(inputs, "source_lens")),
        options_{.beam = number(inputs, "beam"),
                 .length_penalty = inputs.at("length_penalty").values<double>()[0],
                 .max_length = number(inputs, "max_length"),
                 .never = {1}} {}
  void run() override { decode(); }
  Arrays results() override {
    const auto outputs = decode();
    Ids ids = Ids::empty({static_cast<int64_t>(outputs.size()), options_.max_length});
    std::fill_n(ids.mutable_ptr(), ids.numel(), -1);
    for (size_t i = 0; i < outputs.size(); ++i)
      std::ranges::copy(outputs[i], ids.mutable_ptr() + static_cast<int64_t>(i) * ids.size(1));
    return {{"outputs", Array(ids)}};
  }

 private:
  static constexpr int64_t kRows = 64;  // sentences at once, as in the program's translate

  std::vector<std::vector<int32_t>> decode() const {
    std::vector<std::vector<int32_t>> outputs;
    Decoder decoder(model_);
    for (int64_t begin = 0; begin < lens_.size(0); begin += kRows) {
      const int64_t count = std::min(kRows, lens_.size(0) - begin), longest = lens_.ptr()[begin + count - 1];
      Ids part = Ids::empty({count, longest});
      for (int64_t b = 0; b < count; ++b)
        std::copy_n(source_.ptr() + (begin + b) * source_.size(1), longest, part.mutable_ptr() + b * longest);
      for (auto& found : search(decoder, part, lens_.part(begin, {count}), options_))
        outputs.push_back(std::move(found.front().tokens));
    }
    return outputs;
  }

  Transformer model_;
  Ids source_, lens_;
  SearchOptions options_;
};

// A language model's step on one long text.
class LongStep : public Case {
 public:
  explicit LongStep(const Arrays& inputs)
      : tokens_(ids_of(inputs, "tokens")),
        targets_(ids_of(inputs, "targets")),
        training_(TransformerDecoder({.hidden = 512, .ffn = 2048, .heads = 8, .layers = 6, .recompute = true}, 8000,
                                     Cross::no, Rng(1))) {}
  void run() override {
    training_.shards.gradients(1, 1, training_.next(), [&](int64_t, int64_t, const Run& run) -> Loss {
      const Linear& output = training_.model.output;
      const Tensor loss =
          linear_cross_entropy(training_.model.features(tokens_, {}, run), output.weight, output.bias, targets_);
      return {loss, 1};
    });
    training_.update(1e-4f);
  }
  Arrays results() override { return {}; }

 private:
  Ids tokens_, targets_;
  Training<TransformerDecoder> training_;
};

}  // namespace

std::unique_ptr<Case> transformer_case(const std::string& name, const Arrays& inputs) {
  if (name == "transformer-beam") return std::make_unique<Beam>(inputs);
  if (name == "transformer-long-step") return std::make_unique<LongStep>(inputs);
  if (name.rfind("transformer-", 0) == 0) return std::make_unique<TransformerStep>(inputs);
  return nullptr;
}

}  // namespace qkv::peers
