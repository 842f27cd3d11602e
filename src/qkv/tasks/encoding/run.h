// A run of a text encoder: a folder with a configuration, the pretrained tokenizer, checkpoints and a model, and the
// training that fills it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "qkv/core/api.h"
#include "qkv/run/trainer.h"
#include "qkv/tasks/encoding/task.h"
#include "qkv/tasks/pretrained/start.h"

namespace QKV_API qkv {

class EncodingRun {
 public:
  /// Reads the texts and makes the model; for the rest as TranslationRun.
  EncodingRun(const EncodingConfig& config, std::string folder, ExistingRun existing = ExistingRun::resume,
              Ranks* ranks = nullptr);
  EncodingRun(const EncodingRun&) = delete;
  EncodingRun& operator=(const EncodingRun&) = delete;

  const EncodingConfig& config() const { return config_; }
  const EncoderModel& model() const { return model_; }
  const Parameters& parameters() const { return parameters_; }
  const EncodingData& data() const { return data_; }
  /// What was loaded from the folder that the training starts from; null in a run that resumes.
  const TrainingStart* start() const { return start_ ? &*start_ : nullptr; }
  const std::string& folder() const { return folder_.path(); }
  const EncodingTask& task() const { return *task_; }

  /// Trains to the end, or until stop is set. Afterwards the model has the final weights.
  TrainResult train(std::span<Observer* const> observers = {}, const std::atomic<bool>* stop = nullptr);
  /// Number of updates of the whole training.
  int64_t updates() const {
    return config_.training.epochs * updates_of(task_->batches(), config_.training.accumulate);
  }

 private:
  EncodingConfig config_;
  Ranks* ranks_;
  RunFolder folder_;
  std::optional<PretrainedTokenizer> tokenizer_;
  EncodingData data_;
  EncoderModel model_;
  Parameters parameters_;
  std::unique_ptr<EncodingTask> task_;
  std::optional<TrainingStart> start_;
};

/// The tokenizer of a run's folder or of a pretrained one.
PretrainedTokenizer open_encoder_tokenizer(const std::string& folder, Architecture architecture);

}  // namespace qkv
