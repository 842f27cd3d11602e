// A run of image classification: a folder with a configuration, the names of the classes, checkpoints and a model, and
// the training that fills it.
#pragma once

#include <memory>
#include <string>

#include "qkv/core/api.h"
#include "qkv/run/trainer.h"
#include "qkv/tasks/pretrained/start.h"
#include "qkv/tasks/vision/task.h"

namespace QKV_API qkv {

class VisionRun {
 public:
  /// Reads the data and makes the model; for the rest as TranslationRun.
  /// With `ranks`, they share the training; only rank 0 has a folder.
  VisionRun(const VisionConfig& config, std::string folder, ExistingRun existing = ExistingRun::resume,
            Ranks* ranks = nullptr);

  const VisionConfig& config() const { return config_; }
  const VisionTransformer& model() const { return *model_; }
  const Parameters& parameters() const { return parameters_; }
  const VisionData& data() const { return data_; }
  /// What was loaded from the folder that the training starts from; null without one, and in a run that resumes.
  const TrainingStart* start() const { return start_ ? &*start_ : nullptr; }
  const std::string& folder() const { return folder_.path(); }

  /// Trains to the end, or until stop is set. Afterwards the model has the final weights.
  TrainResult train(std::span<Observer* const> observers = {}, const std::atomic<bool>* stop = nullptr);
  /// Number of updates of the whole training.
  int64_t updates() const {
    return config_.training.epochs * updates_of(task_->batches(), config_.training.accumulate);
  }
  /// Loss and accuracy of the weights as they are, on the validation images; there must be some.
  Validated validate() const { return task_->validate(); }

 private:
  VisionConfig config_;
  Ranks* ranks_;
  RunFolder folder_;
  VisionData data_;
  std::unique_ptr<VisionTransformer> model_;
  Parameters parameters_;
  std::unique_ptr<VisionTask> task_;
  std::optional<TrainingStart> start_;
};

}  // namespace qkv
