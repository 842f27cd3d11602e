// The folder of a run: its lock, its files, and the settings that must agree to resume.
//
//   config.yaml  model.safetensors  metrics.jsonl  train.log  checkpoints/{last,best}.safetensors  attention/  and the
//   files of the task
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/io/file_lock.h"
#include "qkv/io/settings.h"

namespace QKV_API qkv {

/// What to do with a run that is already in the folder.
enum class ExistingRun { resume, discard };

/// Which settings may differ when a run resumes: those that would not have changed the training so far.
struct ResumeRules {
  std::set<std::string> may_change;  // "training.patience", or a whole block, "decoding"
  /// Why a setting may not change, if that is not obvious; appended to the message.
  std::map<std::string, Text> reasons = {};
  /// Command-line options whose name differs from that of their setting.
  std::map<std::string, std::string> flags = {};
};

class RunFolder {
 public:
  /// With an empty path nothing is written to disk. Throws if another process is training in the folder, if it has
  /// files that do not belong to a run, or weights without their configuration. `own_files` are the files that the task
  /// writes. The last of them marks a run: it is written first and removed last, and if it is missing the other files
  /// are not of a run.
  RunFolder(std::string path, ExistingRun existing, std::vector<std::string> own_files);

  const std::string& path() const { return path_; }
  bool in_memory() const { return path_.empty(); }
  /// The path of a file of the run; empty in memory.
  std::string file(const std::string& name) const { return in_memory() ? std::string() : path_ + "/" + name; }

  /// There is a run that is not to be discarded; its settings must agree.
  bool holds_run() const { return holds_run_; }
  /// That run has a checkpoint.
  bool resumes() const { return resumes_; }
  /// Throws if a setting that may not change differs from the requested one, naming it; or if the folder has a result
  /// but nothing to resume from.
  void check_settings(const Settings& saved, const Settings& asked, const ResumeRules& rules) const;

  /// Makes the folder a run unless it resumes. Call it when nothing else can fail: only now is an existing run
  /// discarded. config.yaml is written last, so a kill at any moment leaves either nothing or a run that resumes.
  void begin(const std::function<void()>& write_own_files, const std::string& config);
  /// Lets other processes train here.
  void unlock() { lock_ = FileLock(); }

 private:
  void lock();
  void refuse_foreign() const;
  void refuse_remains() const;
  void remove_run() const;

  std::string path_;
  ExistingRun existing_;
  std::vector<std::string> files_;  // all files of a run, in the order of removal
  bool was_there_ = false, holds_run_ = false, resumes_ = false;
  FileLock lock_;
};

/// The weight file of a run folder: model.safetensors, else the best or the last checkpoint.
std::string run_weights(const std::string& folder);

}  // namespace qkv
