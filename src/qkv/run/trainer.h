// The training of a run, for any task: builds optimizer, schedule, callbacks and observers from the configuration, and
// writes the result to the folder.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/run/callbacks.h"
#include "qkv/run/run_folder.h"
#include "qkv/run/training_plan.h"
#include "qkv/train/fit.h"
#include "qkv/train/metrics.h"

namespace QKV_API qkv {

/// Which weights the model has after the training.
enum class Kept { last, best, mean_of_last, running_mean };

struct TrainResult : FitResult {
  Kept kept = Kept::last;
  std::optional<double> kept_loss;  // their validation loss, if it was measured
};

/// What a training needs to know about a task besides its batches and their loss.
struct TrainedModel {
  const Parameters& parameters;
  std::function<void(const std::string& path)> save;         // writes the weights to a file
  int64_t data_fingerprint = 0;                              // a hash of the data
  std::function<Validated()> validate = {};                  // on held-out data; empty: there is none
  std::function<AttentionSnapshots::Maps()> attention = {};  // maps of a few examples; empty: the task has none
};

class Trainer {
 public:
  /// `config_text` is the content of config.yaml.
  Trainer(const TrainingConfig& config, const RunFolder& folder, std::string config_text, TrainedModel model,
          Ranks* ranks = nullptr);

  /// Trains to the end, or until stop is set. At the end the model has the final weights, and the folder has them in a
  /// file.
  template <class Task>
  TrainResult train(const Task& task, std::span<Observer* const> observers = {},
                    const std::atomic<bool>* stop = nullptr) {
    FitOptions options = this->options(task.batches());
    options.stop = stop;
    if (ranks_) {
      const Text note = check_ranks(task.rows(task.batch(0, 0)), options);
      for (Observer* o : observers)
        if (!note.empty()) o->note(note);
    }
    return finish(fit(model_.parameters, *optimizer_, options, task, all_observers(observers)));
  }

 private:
  FitOptions options(int64_t batches);
  Text check_ranks(int64_t batch_rows, const FitOptions& options) const;
  std::vector<Observer*> all_observers(std::span<Observer* const> others);
  TrainResult finish(const FitResult& result) const;
  Kept put_kept_weights() const;

  const TrainingConfig& config_;
  const RunFolder& folder_;
  TrainedModel model_;
  Ranks* ranks_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<std::unique_ptr<Observer>> files_;  // metrics.jsonl, train.log
  RunRecord record_;
  std::unique_ptr<AttentionSnapshots> snapshots_;
  std::unique_ptr<Validation> validation_;
  std::unique_ptr<BestWeights> best_;
  std::unique_ptr<WeightAverage> average_;
  std::vector<Callback*> callbacks_;
};

}  // namespace qkv
