// The configuration of a run of any task. model.kind selects the task and its kind of model.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/tasks/encoding/config.h"
#include "qkv/tasks/kinds.h"
#include "qkv/tasks/language/config.h"
#include "qkv/tasks/translation/config.h"
#include "qkv/tasks/vision/config.h"

namespace QKV_API qkv {

/// What a configuration of a task has, besides its blocks.
template <class C>
concept TaskConfig = requires(C c, const C& fixed, std::string word) {
  TaskKind{C::kTask};
  c.training.check(true);
  c.preset = word;
  c.set_kind(word);  // one of facts_of(kTask).kinds
  { fixed.kind_name() } -> std::convertible_to<std::string>;
  c.settings().dump();
  c.parse(word, word);
  fixed.check();
  { fixed.has_data() } -> std::same_as<bool>;                  // there is something to train on
  c.clear_files();                                             // forgets all files of data
  { C::sources() } -> std::same_as<std::vector<std::string>>;  // settings that name data; --data sets the first
  c.use_source(word);                                          // forgets the data that this source replaces
};

struct RunConfig {
  /// In the order of TaskKind.
  std::variant<TranslationConfig, LanguageConfig, VisionConfig, EncodingConfig> of;

  RunConfig() = default;
  template <TaskConfig C>
  explicit RunConfig(C config) : of(std::move(config)) {}
  /// The defaults of a kind of model; `where` begins the error for an unknown word.
  static RunConfig of_kind(const std::string& kind, const std::string& where);
  static RunConfig preset(const std::string& name);

  TaskKind task() const { return static_cast<TaskKind>(of.index()); }
  std::string kind() const;
  TrainingConfig& training();
  const TrainingConfig& training() const;
  std::vector<std::string> sources() const;
  bool has_data() const;
  void clear_files();
  void use_source(const std::string& setting);
  Settings settings();
  /// Reads YAML as Settings do. A model.kind of another task starts from that task's defaults.
  void read(const std::string& path);
  void parse(const std::string& yaml, const std::string& name);
};

/// The settings that a run wrote, of any task, or what a pretrained folder says of its model.
RunConfig read_folder_config(const std::string& folder);

/// Every word that model.kind may be.
std::vector<std::string> all_kinds();

/// The settings of all kinds of models for a command line: block, key, help, flag and choices.
std::vector<Setting> offered_settings();

}  // namespace qkv
