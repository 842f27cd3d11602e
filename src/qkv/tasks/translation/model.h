// A translation model of any kind, with one interface for training, decoding, saving and loading.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "qkv/attention/edits.h"
#include "qkv/core/api.h"
#include "qkv/decode/step_model.h"
#include "qkv/models/seq2seq.h"
#include "qkv/models/transformer.h"
#include "qkv/tasks/translation/config.h"

namespace QKV_API qkv {

class SafetensorsFile;

class TranslationModel {
 public:
  TranslationModel(const TranslationConfig& config, const VocabularySizes& words, const Rng& rng);
  TranslationModel(const TranslationModel&) = delete;
  TranslationModel& operator=(const TranslationModel&) = delete;

  /// A model that has its weights, which stay where they are.
  explicit TranslationModel(Transformer model);
  /// The model with the weights of a file, which may be a checkpoint. A file of a different model is refused before
  /// memory is allocated; the message names the first difference.
  TranslationModel(const TranslationConfig& config, const VocabularySizes& words, const std::string& weights);

  const Parameters& parameters() const { return parameters_; }
  ModelFacts facts() const;
  /// The input of the output layer: source (B, T), lengths (B), target_in (B, T') -> (B, T', width). With target_lens
  /// (B) a model may skip positions beyond them.
  Tensor features(const Ids& source, const Ids& lengths, const Ids& target_in, const Run& run,
                  const Ids& target_lens = {}) const;
  const Linear& output() const;
  /// The model itself, for things that only one kind can do; null if it is of another kind.
  const Transformer* transformer() const { return std::get_if<Transformer>(&model_); }
  /// A decoder with its own state; the model must outlive it. Edits that the model cannot have are refused.
  std::unique_ptr<SourceStepModel> decoder(const AttentionEdits& edits = {}) const;

  /// The weights by name, without anything else.
  void save(const std::string& path) const;

 private:
  TranslationModel(const TranslationConfig& config, const VocabularySizes& words, const SafetensorsFile& weights);

  std::variant<Seq2Seq, Transformer> model_;
  Parameters parameters_;
};

}  // namespace qkv
