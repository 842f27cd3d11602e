// A translation run: a folder with a configuration, vocabularies, checkpoints and a model, and the training that fills
// it.
#pragma once

#include <memory>
#include <string>

#include "qkv/core/api.h"
#include "qkv/run/trainer.h"
#include "qkv/tasks/translation/task.h"

namespace QKV_API qkv {

class TranslationRun {
 public:
  /// Reads the data and makes the model. Resumes a run with the same configuration. Throws if the configuration differs
  /// (naming the setting) or if another process is training in the folder. With `discard`, an existing run is deleted
  /// only after all inputs of the new one were read. An empty folder name keeps everything in memory.
  /// With `ranks`, they share the training; only rank 0 has a folder.
  TranslationRun(const TranslationConfig& config, std::string folder, ExistingRun existing = ExistingRun::resume,
                 Ranks* ranks = nullptr);

  const TranslationConfig& config() const { return config_; }
  const Tokenizers& tokenizers() const { return text_->tokenizers; }
  const TranslationModel& model() const { return *model_; }
  const std::string& folder() const { return folder_.path(); }
  int64_t training_pairs() const { return std::ssize(task_->pairs()); }
  int64_t validation_pairs() const { return std::ssize(task_->valid_pairs()); }
  const TranslationText& text() const { return *text_; }

  /// Trains to the end, or until stop is set. Afterwards the model has the final weights: the average, the best, or the
  /// last, as configured.
  TrainResult train(std::span<Observer* const> observers = {}, const std::atomic<bool>* stop = nullptr);
  /// Number of updates of the whole training.
  int64_t updates() const {
    return config_.training.epochs * updates_of(task_->batches(), config_.training.accumulate);
  }

 private:
  void check_existing();

  TranslationConfig config_;
  Ranks* ranks_;
  RunFolder folder_;
  std::unique_ptr<TranslationText> text_;
  std::unique_ptr<TranslationModel> model_;
  std::unique_ptr<TranslationTask> task_;
};

/// The book's four sentences and their translations; its presets end by translating them.
struct BookSentence {
  const char *source, *target;
};
std::span<const BookSentence> book_sentences();

}  // namespace qkv
