// Reading from a file at any offset, with every failure named.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace qkv {

/// An open regular file. Reads by offset and never maps: a file that shrinks while it is read is an error, not a
/// signal.
class InputFile {
 public:
  /// Opens it; a missing file, a directory or a device is an error.
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  InputFile& operator=(InputFile&&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  /// Fills `out` from `offset` on; fails when the file ends before.
  void read(uint64_t offset, std::span<std::byte> out) const;

 private:
  std::string path_;
  int descriptor_;
  uint64_t size_ = 0;
};

}  // namespace qkv
