// Kinds of models by name, and the task of a run folder.
#include "qkv/tasks/kinds.h"

#include <algorithm>
#include <filesystem>

#include "qkv/core/check.h"
#include "qkv/core/names.h"
#include "qkv/io/settings.h"
#include "qkv/tasks/pretrained/folder.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr TaskKind kTasks[] = {TaskKind::translation, TaskKind::language, TaskKind::vision, TaskKind::encoding};

// config.yaml of a folder that qkv train wrote.
std::string checked_path(const std::string& folder) {
  if (!fs::exists(folder))
    throw Error(tr("{folder}: no such folder; expected one that qkv train wrote", "folder"_a = folder),
                tr("qkv train --preset NAME makes one in runs/NAME; qkv train --help lists the presets"));
  require(fs::is_directory(folder), "{folder}: is a file; expected a folder that qkv train wrote", "folder"_a = folder);
  const std::string path = folder + "/config.yaml";
  require(
      fs::exists(path),
      "{folder}: has no config.yaml and no config.json; expected a folder that qkv train wrote, or a pretrained one",
      "folder"_a = folder);
  require(fs::is_regular_file(path), "{path}: is not a file; expected the settings that qkv train wrote",
          "path"_a = path);
  require(fs::file_size(path) > 0, "{path}: is empty, expected the settings that qkv train wrote", "path"_a = path);
  return path;
}

// A configuration without model.kind has the first kind.
TaskKind task_of_config(const std::string& path) {
  const auto kind = find_setting(read_settings_text(path), path, "model.kind");
  if (!kind) return TaskKind::translation;
  if (const auto task = task_of(kind->value)) return *task;
  std::vector<std::string> known;
  for (const TaskKind task : kTasks)
    known.insert(known.end(), facts_of(task).kinds.begin(), facts_of(task).kinds.end());
  refuse_word(kind->where, kind->value, known);
}

}  // namespace

const TaskFacts& facts_of(TaskKind task) {
  static const TaskFacts facts[] = {
      {"translation", {"seq2seq", "transformer"}, tr("a translation model"), "qkv translate", "tokenizer.source.txt"},
      {"language", {"language"}, tr("a language model"), "qkv generate", "tokenizer.text.txt"},
      {"vision", {"vision"}, tr("a model that classifies images"), "qkv classify", "images.json"},
      {"encoding", {"encoder"}, tr("a model that encodes texts"), "qkv embed", "encoder.json"},
  };
  return facts[static_cast<size_t>(task)];
}

std::optional<TaskKind> task_of(std::string_view kind) {
  for (const TaskKind task : kTasks)
    if (std::ranges::find(facts_of(task).kinds, kind) != facts_of(task).kinds.end()) return task;
  return {};
}

std::optional<TaskKind> task_in(const std::string& folder) {
  std::error_code ignored;
  if (!fs::exists(folder + "/config.yaml", ignored)) return {};
  for (const TaskKind task : kTasks)
    if (fs::exists(folder + "/" + facts_of(task).mark, ignored)) return task;
  return {};
}

TaskKind run_task(const std::string& folder) {
  return is_pretrained_folder(folder) ? task_of(architecture_of(folder)) : task_of_config(checked_path(folder));
}

void check_task(const std::string& folder, TaskKind found, TaskKind expected) {
  if (found == expected) return;
  throw Error(tr("{folder}: holds {found}, expected {expected}", "folder"_a = folder, "found"_a = facts_of(found).model,
                 "expected"_a = facts_of(expected).model),
              tr("{command} --model {folder} uses it", "command"_a = facts_of(found).command, "folder"_a = folder));
}

std::string run_config_path(const std::string& folder, TaskKind task) {
  if (is_pretrained_folder(folder)) {
    check_task(folder, task_of(architecture_of(folder)), task);
    refuse("{folder}: is a pretrained model, expected a folder that qkv train wrote", "folder"_a = folder);
  }
  const std::string path = checked_path(folder);
  check_task(folder, task_of_config(path), task);
  return path;
}

}  // namespace qkv
