// Reading from a file at any offset, with every failure named.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "qkv/core/api.h"

namespace QKV_API qkv {

/// An open regular file. Reads by offset and never maps: a file that shrinks while it is read is an error, not a
/// signal.
class InputFile {
 public:
  /// A missing file, a directory or a device is an error.
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  InputFile& operator=(InputFile&&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  /// Fills `out` starting at `offset`; fails if the file ends too early.
  void read(uint64_t offset, std::span<std::byte> out) const;

 private:
  std::string path_;
  int descriptor_;
  uint64_t size_ = 0;
};

}  // namespace qkv
