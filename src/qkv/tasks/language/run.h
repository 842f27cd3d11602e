// A run of a language model: a folder with a configuration, a tokenizer, checkpoints and a model, and the training that
// fills it.
#pragma once

#include <memory>
#include <string>

#include "qkv/core/api.h"
#include "qkv/run/trainer.h"
#include "qkv/tasks/language/data.h"
#include "qkv/tasks/language/task.h"
#include "qkv/tasks/pretrained/start.h"

namespace QKV_API qkv {

class LanguageRun {
 public:
  /// Reads the text and makes the model. Resumes a run with the same configuration. Throws if the configuration differs
  /// (naming the setting) or if another process is training in the folder. With `discard`, an existing run is deleted
  /// only after all inputs of the new one were read. An empty folder name keeps everything in memory.
  /// With `ranks`, they share the training; only rank 0 has a folder.
  LanguageRun(const LanguageConfig& config, std::string folder, ExistingRun existing = ExistingRun::resume,
              Ranks* ranks = nullptr);
  LanguageRun(const LanguageRun&) = delete;
  LanguageRun& operator=(const LanguageRun&) = delete;

  const LanguageConfig& config() const { return config_; }
  const TextTokenizer& tokenizer() const { return text_->tokenizer; }
  const LanguageModel& model() const { return model_; }
  const Parameters& parameters() const { return parameters_; }
  /// What was loaded from the folder that the training starts from; null without one, and in a run that resumes.
  const TrainingStart* start() const { return start_ ? &*start_ : nullptr; }
  const std::string& folder() const { return folder_.path(); }
  const LanguageText& text() const { return *text_; }
  const LanguageTask& task() const { return *task_; }

  /// Trains to the end, or until stop is set. Afterwards the model has the final weights: the average, the best, or the
  /// last, as configured.
  TrainResult train(std::span<Observer* const> observers = {}, const std::atomic<bool>* stop = nullptr);
  /// Number of updates of the whole training.
  int64_t updates() const {
    return config_.training.epochs * updates_of(task_->batches(), config_.training.accumulate);
  }

 private:
  void check_existing() const;
  void check_validation() const;

  LanguageConfig config_;
  Ranks* ranks_;
  RunFolder folder_;
  std::unique_ptr<LanguageText> text_;
  LanguageModel model_;
  Parameters parameters_;
  std::unique_ptr<LanguageTask> task_;
  std::optional<TrainingStart> start_;
};

}  // namespace qkv
