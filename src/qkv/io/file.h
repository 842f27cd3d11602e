// Reading from a file at any offset, with every failure named.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "qkv/core/api.h"

namespace QKV_API qkv {

/// An open regular file. It is read by offset, so that a file that shrinks meanwhile is an error, not a signal; only
/// what asks for `mapped` gets the file's own pages.
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
  /// The whole file in memory, without a copy: pages come from the file when they are first used, and a page that is
  /// written becomes private. It lives as long as the pointer. A file that shrinks later stops the program.
  std::shared_ptr<std::byte> mapped() const;

 private:
  std::string path_;
  int descriptor_;
  uint64_t size_ = 0;
};

/// Lets the system take back the pages of a mapping that lie inside these bytes, which nobody has written to: they come
/// from the file again when they are next used.
void drop_pages(const void* begin, size_t bytes);

}  // namespace qkv
