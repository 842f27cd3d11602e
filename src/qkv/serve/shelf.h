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

namespace qkv::serve {

enum class ModelState { ready, training, failed };
constexpr std::array<std::string_view, 3> names(ModelState) { return {"ready", "training", "failed"}; }

struct ShelfModel {
  std::string id;      // "m1", the same as long as the server lives
  std::string folder;  // never from a request
  std::string name;    // the folder's last part
  ModelState state = ModelState::ready;
  double done = 1;  // share of the epochs
  std::string error;
  std::optional<report::RunReport> run;  // absent if it failed
  bool has_weights = false;
  std::filesystem::file_time_type changed = {};  // of weights and metrics

  bool can_answer() const { return has_weights; }
};

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
  /// By id; Refused with 404 for an unknown one, 410 if its folder is gone.
  ShelfModel model(const std::string& id) const;
  std::optional<ShelfModel> first_of(TaskKind task) const;

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
  std::map<std::string, std::string> ids_;  // folder -> id
  std::mutex loading_;                      // one model is loaded at a time
  std::list<Held> held_;                    // the last one used first
};

}  // namespace qkv::serve
