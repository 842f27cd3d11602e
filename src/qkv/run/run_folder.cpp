// Opening, checking and beginning the folder of a run.
#include "qkv/run/run_folder.h"

#include <filesystem>

#include "qkv/core/check.h"
#include "qkv/io/atomic_file.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

// config.yaml is removed first: without it the rest is not a run, wherever the removal is cut off.
constexpr const char* kFiles[] = {"config.yaml", "model.safetensors", "metrics.jsonl",
                                  "train.log",   "checkpoints",       "attention"};
constexpr const char* kWeights[] = {"model.safetensors", "checkpoints/best.safetensors",
                                    "checkpoints/last.safetensors"};

std::string block_of(const std::string& setting) { return setting.substr(0, setting.find('.')); }

std::string entry_or(const std::map<std::string, std::string>& map, const std::string& key,
                     const std::string& otherwise) {
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
  lock_ = FileLock(file("train.lock"), text(path_, ": another training is at work in this folder"));
}

// Somebody's own files are neither changed nor removed. A run that was cut off at its very beginning has an empty
// folder for checkpoints.
void RunFolder::refuse_foreign() const {
  const std::string& mark = files_.back();
  if (fs::exists(file(mark))) return;
  for (const std::string& name : files_) {
    const std::string path = file(name);
    if (!fs::exists(path) || (name == "checkpoints" && fs::is_directory(path) && fs::is_empty(path))) continue;
    throw Error(text(path_, ": has ", name, ", but is not a run: there is no ", mark),
                "-o names another folder for the run");
  }
}

// Weights without their configuration: a new run would resume from them as if they were its own.
void RunFolder::refuse_remains() const {
  for (const char* name : kWeights)
    if (fs::exists(file(name)))
      throw Error(text(path_, ": has ", name, " but no config.yaml: it is what was left of a run"),
                  "--restart removes it; -o names another folder");
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
    throw Error(text(file("config.yaml"), ": ", name, " is ", value, ", but ", now.get(), " was asked for",
                     entry_or(rules.reasons, name, "")),
                text(value.empty() ? "" : text(flag, " ", value, " resumes it; "),
                     "--restart begins again; -o names another folder"));
  }
  if (fs::exists(file("model.safetensors")) && !fs::exists(file("checkpoints/last.safetensors")))
    throw Error(text(path_, ": has model.safetensors but no checkpoints/last.safetensors to go on from"),
                "--restart removes it and begins again; -o names another folder");
}

void RunFolder::begin(const std::function<void()>& write_own_files, const std::string& config) {
  if (in_memory() || resumes_) return;
  if (!was_there_) {
    make_folder(path_);
    lock();
    check(!fs::exists(file("config.yaml")), path_, ": another training began there in the meantime");
  }
  if (existing_ == ExistingRun::discard) remove_run();
  make_folder(file("checkpoints"));
  for (const char* name : {"checkpoints/best.safetensors", "attention"})
    fs::remove_all(file(name));  // of a start that never got to a checkpoint
  write_own_files();
  write_file(file("config.yaml"), config);
}

void RunFolder::remove_run() const {
  for (const std::string& name : files_) {
    std::error_code error;
    fs::remove_all(file(name), error);
    check(!error, "cannot remove ", file(name), ": ", error.message());
  }
}

std::string run_weights(const std::string& folder) {
  for (const char* name : kWeights)
    if (fs::exists(folder + "/" + name)) return folder + "/" + name;
  fail(folder, ": holds no model.safetensors and no checkpoint");
}

}  // namespace qkv
