// A run: a folder with a configuration, vocabularies, checkpoints and a model, and the training that fills it.
//
//   config.yaml  vocab.*  model.safetensors  metrics.jsonl  train.log  checkpoints/{last,best}.safetensors  attention/
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "qkv/io/file_lock.h"
#include "qkv/tasks/translation/task.h"

namespace qkv {

/// What becomes of a run that the folder holds already.
enum class OldRun { gone_on_with, removed };

class TranslationRun {
 public:
  /// Reads the data and makes the model. A folder with a run of the same configuration is gone on with; of another one, refused: the
  /// message names the setting. So is one that another training is at work in. An old run is removed only when all that the new one needs has been read. An empty folder name keeps
  /// everything in memory.
  TranslationRun(const TranslationConfig& config, std::string folder, OldRun old = OldRun::gone_on_with);

  const TranslationConfig& config() const { return config_; }
  const Tokenizers& tokenizers() const { return text_->tokenizers; }
  const TranslationModel& model() const { return *model_; }
  const std::string& folder() const { return folder_; }
  int64_t training_pairs() const { return static_cast<int64_t>(train_.size()); }
  int64_t validation_pairs() const { return static_cast<int64_t>(valid_.size()); }
  const TranslationText& text() const { return *text_; }

  /// Trains to the end, or until stop is set. Afterwards the model has the weights that the run is for: the average, the best, or the last.
  FitResult train(std::span<Observer* const> observers = {}, const std::atomic<bool>* stop = nullptr);
  /// Updates that the whole training takes.
  int64_t updates() const { return config_.training.epochs * epoch_updates_; }
  /// Which weights those are, known when the training has ended, and their validation loss if it was measured.
  enum class Kept { last, best, mean_of_last, running_mean };
  Kept kept() const { return kept_; }
  std::optional<double> kept_loss() const { return kept_loss_; }

 private:
  TranslationConfig settings_before() const;
  void lock_folder();
  std::string in_folder(const char* name) const { return folder_.empty() ? std::string() : folder_ + "/" + name; }

  TranslationConfig config_;
  std::string folder_;
  FileLock lock_;  // of the folder, until the training has ended
  std::unique_ptr<TranslationText> text_;
  std::vector<IdPair> train_, valid_;
  std::unique_ptr<TranslationModel> model_;
  int64_t epoch_updates_ = 0;
  Kept kept_ = Kept::last;
  std::optional<double> kept_loss_;
};

/// The book's four sentences, their translations, and nothing else: what its presets end with.
struct BookSentence {
  const char *source, *target;
};
std::span<const BookSentence> book_sentences();

/// Folder of `--model RUN`: the weights to use, model.safetensors or the best or last checkpoint.
std::string run_weights(const std::string& folder);

}  // namespace qkv
