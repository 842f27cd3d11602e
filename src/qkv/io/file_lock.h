// A lock held by one process, which the system releases when that process ends for any reason.
#pragma once

#include <string>

#include "qkv/core/api.h"
#include "qkv/core/language.h"

namespace QKV_API qkv {

/// Creates the file (its folder must exist), locks it and writes the process id into it; the destructor removes it. A
/// file that a killed process left is taken over.
class FileLock {
 public:
  FileLock() = default;
  /// Fails at once if another process, or another FileLock of this process, holds the lock; the message is `held`
  /// followed by that process id.
  FileLock(const std::string& path, const Text& held);
  ~FileLock();
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace qkv
