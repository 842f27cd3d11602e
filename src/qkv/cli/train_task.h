// What `qkv train` needs of a task: a run that trains, and what to say before and after it. One train_TASK.cpp each.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>

#include "qkv/cli/command.h"
#include "qkv/run/trainer.h"
#include "qkv/tasks/encoding/config.h"
#include "qkv/tasks/language/config.h"
#include "qkv/tasks/pretrained/start.h"
#include "qkv/tasks/translation/config.h"
#include "qkv/tasks/vision/config.h"

namespace qkv::cli {

class TrainTask {
 public:
  virtual ~TrainTask() = default;
  /// What is trained: data, sizes, notes about settings; on standard error.
  virtual void say_start(const Global& global) const = 0;
  virtual TrainResult train(std::span<Observer* const> observers, const std::atomic<bool>* stop) = 0;
  /// What the model can do now, and the command to type next. `trained` is false if there was nothing left to train, or
  /// if nothing but results may be printed.
  virtual void say_end(const Progress& last, bool trained, const Global& global) const = 0;
};

/// What the command line says besides the configuration.
struct TrainRequest {
  std::string folder;
  ExistingRun existing = ExistingRun::resume;
  std::set<std::string> given;  // settings that an option sets: "data.tokenizer"
  Ranks* ranks = nullptr;       // that share the training; only rank 0 has a folder
};

/// Reads the data and makes the model. One for each task of RunConfig.
std::unique_ptr<TrainTask> train_task(const TranslationConfig& config, const TrainRequest& request);
std::unique_ptr<TrainTask> train_task(const LanguageConfig& config, const TrainRequest& request);
std::unique_ptr<TrainTask> train_task(const VisionConfig& config, const TrainRequest& request);
std::unique_ptr<TrainTask> train_task(const EncodingConfig& config, const TrainRequest& request);

/// Refuses a configuration that cannot be trained as it is, with the option to give; before anything is read.
void check_train_options(const TranslationConfig& config);
void check_train_options(const LanguageConfig& config);
void check_train_options(const VisionConfig& config);
void check_train_options(const EncodingConfig& config);

/// The word quoted for a shell, if necessary.
std::string shell_word(const std::string& word);
/// A line on standard error; on a terminal it is wrapped between words.
void say_line(const Text& line, const Global& global);
/// What was loaded from the folder that the training starts from, which tensors are new and which were dropped; nothing
/// without such a folder.
void say_loaded(const TrainingStart* start, const Global& global);
/// A note if the rate of the schedule does not reach its value.
void note_warmup(const TrainingConfig& training, int64_t updates, const Global& global);

}  // namespace qkv::cli
