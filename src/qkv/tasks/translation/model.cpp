// Builds a model from its configuration, and reads and writes its weights.
#include "qkv/tasks/translation/model.h"

#include <algorithm>

#include "qkv/attention/weights.h"
#include "qkv/core/check.h"
#include "qkv/models/attention_paths.h"
#include "qkv/run/model_file.h"
#include "qkv/tensor/probe.h"

namespace qkv {
namespace {

// Decoding that keeps handles to the attention weights of the last step; they are computed on demand.
template <class Model>
class DecoderSteps : public SourceStepModel, private Probe {
 public:
  DecoderSteps(const Model& model, const AttentionEdits& edits) : model_(model), editor_(edits) {
    DecoderSteps::keep_attention(true);
  }
  void start(const Ids& source, const Ids& lengths) override {
    const Run run{.probe = edited() ? &editor_ : nullptr};
    if constexpr (std::is_same_v<Model, Transformer>)
      state_ = model_.start(source, lengths, run, state_.weights);
    else
      state_ = model_.start(source, lengths, run);
  }
  Tensor step(const Ids& tokens) override {
    seen_.clear();
    return model_.step(state_, tokens, run_);
  }
  void select(std::span<const int32_t> rows) override { model_.select(state_, rows); }
  void keep_attention(bool wanted) override {
    Probe* kept = wanted ? this : nullptr;
    editor_.show_to(kept);
    run_.probe = edited() ? &editor_ : kept;
  }

  Tensor attention() const override {
    if (seen_.empty()) return {};
    const Shape one = seen_[0].shape();  // (R, heads, 1, T)
    const auto layers = static_cast<int64_t>(seen_.size());
    int64_t most = 0;  // heads; layers with fewer have maps of zeros
    for (const Weights& w : seen_) most = std::max(most, w.shape()[1]);
    Tensor out = zeros({one[0], layers * most, one[3]});
    for (int64_t l = 0; l < layers; ++l) {
      const Tensor weights = seen_[static_cast<size_t>(l)].matrix();
      const int64_t size = weights.size(1) * one[3];
      for (int64_t r = 0; r < one[0]; ++r)
        std::copy_n(weights.ptr() + r * size, size, out.mutable_ptr() + (r * layers + l) * most * one[3]);
    }
    return out;
  }

 private:
  // In a Transformer, the attention to the source, layer by layer, but not self-attention.
  void attention(std::string_view path, const Weights& weights) override {
    if (!path.ends_with(".self")) seen_.push_back(weights);
  }
  bool edited() const { return !editor_.edits().empty(); }

  const Model& model_;
  EditProbe editor_;
  typename Model::State state_;
  Run run_;
  std::vector<Weights> seen_;
};

std::variant<Seq2Seq, Transformer> make_model(const TranslationConfig& config, const VocabularySizes& words,
                                              const Rng& rng) {
  if (const auto* seq2seq = std::get_if<Seq2SeqConfig>(&config.model)) return Seq2Seq(*seq2seq, words, rng);
  Transformer model(std::get<TransformerConfig>(config.model), words, rng);
  model.decoder.advance_positions = !config.book.positions;
  return model;
}

const TranslationConfig& checked(const TranslationConfig& config, const VocabularySizes& words,
                                 const SafetensorsFile& file) {
  check_layout(file, std::visit([&](const auto& model) { return model.layout(words); }, config.model));
  return config;
}

}  // namespace

TranslationModel::TranslationModel(const TranslationConfig& config, const VocabularySizes& words, const Rng& rng)
    : model_(make_model(config, words, rng)),
      parameters_(std::visit([](auto& model) { return flatten(model); }, model_)) {}

TranslationModel::TranslationModel(const TranslationConfig& config, const VocabularySizes& words,
                                   const SafetensorsFile& weights)
    : TranslationModel(checked(config, words, weights), words, Rng(0)) {
  read_weights(weights, parameters_);
}

TranslationModel::TranslationModel(const TranslationConfig& config, const VocabularySizes& words,
                                   const std::string& weights)
    : TranslationModel(config, words, SafetensorsFile(weights)) {}

TranslationModel::TranslationModel(Transformer model)
    : model_(std::move(model)), parameters_(in_place(std::get<Transformer>(model_))) {}

ModelFacts TranslationModel::facts() const {
  return std::visit([](const auto& model) { return model.config.facts(); }, model_);
}

Tensor TranslationModel::features(const Ids& source, const Ids& lengths, const Ids& target_in, const Run& run,
                                  const Ids& target_lens) const {
  if (const auto* model = std::get_if<Seq2Seq>(&model_))
    return model->features(source, lengths, target_in, run, target_lens);
  return std::get<Transformer>(model_).features(source, lengths, target_in, run);
}

const Linear& TranslationModel::output() const {
  if (const auto* model = std::get_if<Seq2Seq>(&model_)) return model->output;
  return std::get<Transformer>(model_).decoder.output;
}

std::unique_ptr<SourceStepModel> TranslationModel::decoder(const AttentionEdits& edits) const {
  check_edits(edits, facts());
  return std::visit(
      [&]<class Model>(const Model& model) -> std::unique_ptr<SourceStepModel> {
        return std::make_unique<DecoderSteps<Model>>(model, edits);
      },
      model_);
}

void TranslationModel::save(const std::string& path) const { write_weights(path, parameters_); }

}  // namespace qkv
