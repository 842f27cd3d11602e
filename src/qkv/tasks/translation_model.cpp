// Building a model from its configuration, and its weights as a file.
#include "qkv/tasks/translation_model.h"

#include <algorithm>

#include "qkv/attention/weights.h"
#include "qkv/core/check.h"
#include "qkv/io/safetensors.h"
#include "qkv/tensor/probe.h"

namespace qkv {
namespace {

ScorerKind scorer_kind(const std::string& name) {
  if (name == "none") return ScorerKind::none;
  if (name == "additive") return ScorerKind::additive;
  if (name == "dot") return ScorerKind::dot;
  if (name == "scaled-dot") return ScorerKind::scaled_dot;
  if (name == "bilinear") return ScorerKind::bilinear;
  if (name == "cosine") return ScorerKind::cosine;
  fail("model.attention: there is no scorer \"", name, "\"");
}

Seq2SeqOptions seq2seq_options(const TranslationModelConfig& config, int64_t source_vocabulary, int64_t target_vocabulary) {
  return {.source_vocabulary = source_vocabulary,
          .target_vocabulary = target_vocabulary,
          .embed = config.embed,
          .hidden = config.hidden,
          .layers = config.layers,
          .dropout = static_cast<float>(config.dropout),
          .cell = config.cell == "lstm" ? CellKind::lstm : CellKind::gru,
          .attention = scorer_kind(config.attention),
          .bidirectional = config.bidirectional,
          .skip_padding = config.skip_padding,
          .embed_dropout = static_cast<float>(config.embed_dropout),
          .values = config.values == "words" ? SourceValues::words : SourceValues::states};
}

// Decoding, with the weights of the last step kept.
class Seq2SeqSteps : public StepModel, private Probe {
 public:
  explicit Seq2SeqSteps(const Seq2Seq& model) : model_(model) { run_.probe = this; }
  void start(const Ids& source, const Ids& lengths) override { state_ = model_.start(source, lengths, Run{}); }
  Tensor step(const Ids& tokens) override { return model_.step(state_, tokens, run_); }
  void select(std::span<const int32_t> rows) override { model_.select(state_, rows); }
  Tensor attention() const override { return weights_; }

 private:
  void attention(std::string_view, const Weights& weights) override {
    const Tensor all = weights.matrix();  // (R, 1, 1, T)
    weights_ = all.viewed({all.size(0), 1, all.size(3)});
  }
  const Seq2Seq& model_;
  Seq2Seq::State state_;
  Run run_;
  Tensor weights_;
};

}  // namespace

TranslationModel::TranslationModel(const TranslationModelConfig& config, int64_t source_vocabulary, int64_t target_vocabulary, const Rng& rng)
    : model_(seq2seq_options(config, source_vocabulary, target_vocabulary), rng), parameters_(flatten(model_)) {}

Tensor TranslationModel::features(const Ids& source, const Ids& lengths, const Ids& target_in, const Run& run, const Ids& target_lens) const {
  return model_.features(source, lengths, target_in, run, target_lens);
}

std::unique_ptr<StepModel> TranslationModel::decoder() const { return std::make_unique<Seq2SeqSteps>(model_); }

void TranslationModel::save(const std::string& path) const {
  std::map<std::string, Tensor> tensors;
  for (size_t i = 0; i < parameters_.entries().size(); ++i) tensors[parameters_.entries()[i].name] = parameters_.values(i);
  write_safetensors(path, tensors);
}

void TranslationModel::load(const std::string& path) {
  const SafetensorsFile file(path);
  std::vector<Tensor> read;
  for (const auto& entry : parameters_.entries()) {
    check(file.has(entry.name), path, ": has no tensor \"", entry.name, "\": it holds another model than the configuration says");
    check(file.info(entry.name).shape == entry.shape, path, ": \"", entry.name, "\" has shape ", file.info(entry.name).shape,
          ", the configuration says ", entry.shape);
    read.push_back(file.tensor(entry.name));
  }
  for (const std::string& name : file.names()) {
    const bool known = std::any_of(parameters_.entries().begin(), parameters_.entries().end(), [&](const auto& e) { return e.name == name; });
    check(known || name.starts_with("adam.") || name.starts_with("companion."), path, ": the configuration's model has no \"", name, "\"");
  }
  for (size_t i = 0; i < read.size(); ++i) std::copy_n(read[i].ptr(), read[i].numel(), parameters_.values(i).mutable_ptr());
}

}  // namespace qkv
