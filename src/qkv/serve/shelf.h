// The models of a folder: found, described, loaded when they are needed, and read again when they change.
#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "qkv/report/runs.h"
#include "qkv/tasks/language/generator.h"
#include "qkv/tasks/translation/translator.h"
#include "qkv/tasks/vision/classifier.h"
#include "qkv/tasks/vision/data.h"

namespace qkv::serve {

/// ready: trained to the end. training: some process is at it now. interrupted: nobody is, and its last epoch has not
/// been reached; it answers from its last checkpoint. failed: the folder cannot be read.
enum class ModelState { ready, training, interrupted, failed };
constexpr std::array<std::string_view, 4> names(ModelState) { return {"ready", "training", "interrupted", "failed"}; }

struct ShelfModel {
  std::string id;      // "m1", the same as long as the server lives
  std::string folder;  // never from a request
  std::string name;    // the folder's last part
  ModelState state = ModelState::ready;
  double done = 1;  // share of the epochs
  Text error;
  std::optional<report::RunReport> run;  // absent if it failed
  std::optional<ImageFacts> images;      // what a vision model reads
  std::vector<std::string> examples;     // texts to begin with
  bool has_weights = false;
  std::filesystem::file_time_type changed = {};  // of weights and metrics
  bool held = false;                             // some process holds the folder's lock

  bool can_answer() const { return has_weights; }
};

/// The training that the server itself has started, where there was no model.
struct BackgroundTraining {
  enum class State { none, training, done, failed };
  State state = State::none;
  std::string name;  // of its folder
  Text error;
};
constexpr std::array<std::string_view, 4> names(BackgroundTraining::State) {
  return {"none", "training", "done", "failed"};
}

using LoadedModel = std::variant<std::shared_ptr<const Translator>, std::shared_ptr<const LanguageGenerator>,
                                 std::shared_ptr<const Classifier>>;

class ModelShelf {
 public:
  static constexpr size_t kLoaded = 4;  // models kept in memory

  explicit ModelShelf(std::string folder) : folder_(std::move(folder)) {}
  const std::string& folder() const { return folder_; }

  /// Looks at the folder again. True if a model came, went or changed.
  bool scan();
  std::vector<ShelfModel> models() const;
  /// By id or by name; Refused with 404 for an unknown one, 410 if its folder is gone.
  ShelfModel model(const std::string& id) const;
  /// Reported with the models, so that a page that is opened later sees it too.
  BackgroundTraining background() const;
  void set_background(BackgroundTraining background);

  /// Loads a model, or returns the one in memory. Throws if it is of another task, or has no weights yet.
  std::shared_ptr<const Translator> translator(const std::string& id);
  std::shared_ptr<const LanguageGenerator> generator(const std::string& id);
  std::shared_ptr<const Classifier> classifier(const std::string& id);

 private:
  struct Held {
    std::string id;
    std::filesystem::file_time_type changed;
    LoadedModel model;
  };
  LoadedModel loaded(const ShelfModel& model);
  template <class T>
  std::shared_ptr<const T> as(const std::string& id, TaskKind task);

  std::string folder_;
  mutable std::mutex mutex_;  // of everything below
  std::vector<ShelfModel> models_;
  BackgroundTraining background_;
  std::map<std::string, std::string> ids_;  // folder -> id
  std::mutex loading_;                      // one model is loaded at a time
  std::list<Held> held_;                    // the last one used first
};

}  // namespace qkv::serve
