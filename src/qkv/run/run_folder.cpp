// Opening, checking and beginning the folder of a run.
#include "qkv/run/run_folder.h"

#include <filesystem>

#include "qkv/core/check.h"
#include "qkv/io/atomic_file.h"
#include "qkv/io/held_lock.h"
#include "qkv/run/run_state.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

// config.yaml is removed first: without it the rest is not a run, even if the removal is interrupted.
constexpr const char* kFiles[] = {"config.yaml", "model.safetensors", "metrics.jsonl",
                                  "train.log",   "checkpoints",       "attention"};
constexpr const char* kWeights[] = {"model.safetensors", "checkpoints/best.safetensors",
                                    "checkpoints/last.safetensors"};

std::string block_of(const std::string& setting) { return setting.substr(0, setting.find('.')); }

template <class Value>
Value entry_or(const std::map<std::string, Value>& map, const std::string& key, const Value& otherwise) {
  const auto found = map.find(key);
  return found == map.end() ? otherwise : found->second;
}

}  // namespace

RunFolder::RunFolder(std::string path, ExistingRun existing, std::vector<std::string> own_files)
    : path_(std::move(path)), existing_(existing), files_(std::begin(kFiles), std::end(kFiles)) {
  files_.insert(files_.end(), own_files.begin(), own_files.end());
  if (in_memory()) return;
  was_there_ = fs::is_directory(path_);
  if (was_there_) lock();
  refuse_foreign();
  if (existing_ == ExistingRun::discard) return;
  holds_run_ = fs::exists(file("config.yaml"));
  resumes_ = holds_run_ && fs::exists(file("checkpoints/last.safetensors"));
  if (!holds_run_) refuse_remains();
}

void RunFolder::lock() {
  lock_ = FileLock(file(kRunLock), tr("{path}: another process is training in this folder", "path"_a = path_));
}

// Files that are not of a run are neither changed nor removed. A run that was killed right after its start has an empty
// folder for checkpoints.
void RunFolder::refuse_foreign() const {
  const std::string& mark = files_.back();
  if (fs::exists(file(mark))) return;
  for (const std::string& name : files_) {
    const std::string path = file(name);
    if (!fs::exists(path) || (name == "checkpoints" && fs::is_directory(path) && fs::is_empty(path))) continue;
    throw Error(tr("{path}: has {name}, but is not a run: there is no {mark}", "path"_a = path_, "name"_a = name,
                   "mark"_a = mark),
                tr("choose another folder with -o"));
  }
}

// Weights without their configuration: a new run would wrongly resume from them.
void RunFolder::refuse_remains() const {
  for (const char* name : kWeights)
    if (fs::exists(file(name)))
      throw Error(
          tr("{path}: has {name} but no config.yaml: the rest of a run is missing", "path"_a = path_, "name"_a = name),
          tr("--restart removes it; -o names another folder"));
}

void RunFolder::check_settings(const Settings& saved, const Settings& asked, const ResumeRules& rules) const {
  std::map<std::string, const Setting*> was;
  for (const Setting& s : saved.all()) was.emplace(s.name(), &s);
  for (const Setting& now : asked.all()) {
    const std::string name = now.name();
    const auto found = was.find(name);
    if (found == was.end() || found->second->get() == now.get() || rules.may_change.contains(name) ||
        rules.may_change.contains(block_of(name)))
      continue;
    const std::string value = found->second->get(), flag = entry_or(rules.flags, name, now.flag);
    const Text problem = tr("{file}: {name} is {value}, but {now} was requested", "file"_a = file("config.yaml"),
                            "name"_a = name, "value"_a = value, "now"_a = now.get()),
               reason = entry_or(rules.reasons, name, Text());
    throw Error(reason.empty() ? problem : tr("{problem}: {reason}", "problem"_a = problem, "reason"_a = reason),
                value.empty() ? tr("--restart starts over; -o names another folder")
                              : tr("{flag} {value} resumes it; --restart starts over; -o names another folder",
                                   "flag"_a = flag, "value"_a = value));
  }
  if (fs::exists(file("model.safetensors")) && !fs::exists(file("checkpoints/last.safetensors")))
    throw Error(
        tr("{path}: has model.safetensors but no checkpoints/last.safetensors to resume from", "path"_a = path_),
        tr("--restart removes it and starts over; -o names another folder"));
}

void RunFolder::begin(const std::function<void()>& write_own_files, const std::string& config) {
  if (in_memory() || resumes_) return;
  if (!was_there_) {
    make_folder(path_);
    lock();
    require(!fs::exists(file("config.yaml")), "{path}: another process has started training there in the meantime",
            "path"_a = path_);
  }
  if (existing_ == ExistingRun::discard) remove_run();
  make_folder(file("checkpoints"));
  for (const char* name : {"checkpoints/best.safetensors", "attention"})
    fs::remove_all(file(name));  // from a start that never reached a checkpoint
  write_own_files();
  write_file(file("config.yaml"), config);
}

void RunFolder::remove_run() const {
  for (const std::string& name : files_) {
    std::error_code error;
    fs::remove_all(file(name), error);
    require(!error, "cannot remove {name}: {message}", "name"_a = file(name), "message"_a = error.message());
  }
}

bool is_training(const std::string& folder) { return lock_is_held(folder + "/" + kRunLock); }

std::string run_weights(const std::string& folder) {
  for (const char* name : kWeights)
    if (fs::exists(folder + "/" + name)) return folder + "/" + name;
  refuse("{folder}: has no model.safetensors and no checkpoint", "folder"_a = folder);
}

}  // namespace qkv
