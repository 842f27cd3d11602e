// The kinds of models and what they are for: which command reads a run folder is decided by its model.kind.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/language.h"

namespace QKV_API qkv {

/// The tasks of the program. A new one gets its names in kinds.cpp and its configuration in run_config.h.
enum class TaskKind { translation, language, vision, encoding };

struct TaskFacts {
  std::string name;                // "translation"; also names the default run folder
  std::vector<std::string> kinds;  // what model.kind may be
  Text model;                      // "a translation model"
  std::string command;             // that uses such a model: "qkv translate"
  std::string mark;                // a file that every run folder of the task has
};
const TaskFacts& facts_of(TaskKind task);

/// The task of a model.kind; nothing for an unknown word.
std::optional<TaskKind> task_of(std::string_view kind);
/// The task whose run is in the folder; nothing if it has none.
std::optional<TaskKind> task_in(const std::string& folder);

/// The path of the folder's config.yaml. Throws unless the folder holds a run of that task; the message says what it
/// holds instead, and the hint which command reads it.
std::string run_config_path(const std::string& folder, TaskKind task);
/// Refuses a folder of another task in the same words.
void check_task(const std::string& folder, TaskKind found, TaskKind expected);
/// The task of a run folder or of a pretrained one, which must exist and hold a model.
TaskKind run_task(const std::string& folder);

}  // namespace qkv
