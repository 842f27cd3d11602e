// The folder of a run: who may train there, which files are the run's, and under which settings it resumes.
//
//   config.yaml  model.safetensors  metrics.jsonl  train.log  checkpoints/{last,best}.safetensors  attention/  and the
//   files of the task
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "qkv/io/file_lock.h"
#include "qkv/io/settings.h"

namespace qkv {

/// What becomes of a run that the folder holds already.
enum class ExistingRun { resume, discard };

/// Which settings may differ when a run resumes: those that leave what was trained so far as it would have been.
struct ResumeRules {
  std::set<std::string> may_change;  // "training.patience", or a whole block, "decoding"
  std::map<std::string, std::string> reasons =
      {};  // why a setting may not, where that is not obvious; it follows the message
  std::map<std::string, std::string> flags =
      {};  // options of the command line that have another name than their setting
};

class RunFolder {
 public:
  /// An empty path keeps nothing on the disk. Throws if another process trains in the folder, if it holds files that
  /// are not a run's, or weights without their configuration. `own_files` are what the task writes. The last of them is
  /// the mark of a run: it is written first and removed last, and where it is missing the other files belong to
  /// somebody else.
  RunFolder(std::string path, ExistingRun existing, std::vector<std::string> own_files);

  const std::string& path() const { return path_; }
  bool in_memory() const { return path_.empty(); }
  /// The path of a file of the run; empty in memory.
  std::string file(const std::string& name) const { return in_memory() ? std::string() : path_ + "/" + name; }

  /// There is a run that is not to be discarded; its settings must fit.
  bool holds_run() const { return holds_run_; }
  /// That run has a checkpoint.
  bool resumes() const { return resumes_; }
  /// Throws, naming the setting, if one differs between the folder and what is asked for that may not change; or if the
  /// folder has a result but nothing to resume from.
  void check_settings(const Settings& saved, const Settings& asked, const ResumeRules& rules) const;

  /// Makes the folder a run unless it resumes, once nothing else can fail; only now is an existing run discarded.
  /// config.yaml is written last, so a kill at any moment leaves either nothing or something that resumes.
  void begin(const std::function<void()>& write_own_files, const std::string& config);
  /// Others may train here from now on.
  void unlock() { lock_ = FileLock(); }

 private:
  void lock();
  void refuse_foreign() const;
  void refuse_remains() const;
  void remove_run() const;

  std::string path_;
  ExistingRun existing_;
  std::vector<std::string> files_;  // all of a run, in the order in which they are removed
  bool was_there_ = false, holds_run_ = false, resumes_ = false;
  FileLock lock_;
};

/// The weights to use of a run folder: model.safetensors, or else the best or the last checkpoint.
std::string run_weights(const std::string& folder);

}  // namespace qkv
