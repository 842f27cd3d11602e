// A lock that one process holds and the system takes back when that process ends, however it ends.
#pragma once

#include <string>

namespace qkv {

/// Makes the file (its folder must be there), locks it and writes the number of the process into it; removes it in the
/// end. What a killed process left behind is taken over.
class FileLock {
 public:
  FileLock() = default;
  /// Fails at once if another process, or another FileLock of this one, holds it; the message is `held` with the number
  /// of that process.
  FileLock(const std::string& path, const std::string& held);
  ~FileLock();
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace qkv
