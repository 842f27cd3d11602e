// A file that holds either its old or its new contents, never a mixture.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "qkv/core/api.h"

namespace QKV_API qkv {

/// Writes to a hidden temporary in the same folder; commit() is fsync, rename, fsync of the folder. Without commit()
/// the temporary is removed and the old file stays. Links are followed. Anything but a regular file (a pipe, /dev/null)
/// is written to directly.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  /// Replaces the file. Nothing may be written afterwards.
  void commit();

 private:
  void open_temporary();
  bool lock_temporary();
  bool remove_left();
  [[noreturn]] void fail_with(int error);
  std::string path_;       // as the caller named it, for messages
  std::string target_;     // where links lead
  std::string temporary_;  // empty: written directly
  int descriptor_ = -1;
};

/// Replaces the contents of a file by `text`, atomically.
void write_file(const std::string& path, std::string_view text);

/// Creates the folder and its parents; an error names the folder.
void make_folder(const std::string& path);

}  // namespace qkv
