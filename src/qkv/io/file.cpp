// Reading by offset over pread, and mapping.
#include "qkv/io/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "qkv/core/check.h"
#include "qkv/core/numbers.h"
#include "qkv/core/system_reason.h"

namespace qkv {

InputFile::InputFile(const std::string& path)
    : path_(path),
      descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {  // a pipe must not hang the open
  require(descriptor_ >= 0, "cannot open {path}: {reason}", "path"_a = path, "reason"_a = system_reason(errno));
  struct stat status {};
  const int error = ::fstat(descriptor_, &status) == 0 ? 0 : errno;
  if (error == 0 && S_ISREG(status.st_mode)) {
    size_ = static_cast<uint64_t>(status.st_size);
    return;
  }
  ::close(descriptor_);
  require(error == 0, "cannot open {path}: {reason}", "path"_a = path, "reason"_a = system_reason(error));
  require(!S_ISDIR(status.st_mode), "{path} is a directory, expected a file", "path"_a = path);
  refuse("{path} is not a regular file", "path"_a = path);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void InputFile::read(uint64_t offset, std::span<std::byte> out) const {
  require(offset <= size_ && out.size() <= size_ - offset,
          "{path}: needs {count} bytes at offset {offset}, the file has {size}", "path"_a = path_,
          "count"_a = out.size(), "offset"_a = offset, "size"_a = grouped(size_));
  while (!out.empty()) {
    const size_t part = std::min<size_t>(out.size(), size_t{1} << 30);
    const ssize_t got = ::pread(descriptor_, out.data(), part, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    require(got >= 0, "cannot read {path}: {reason}", "path"_a = path_, "reason"_a = system_reason(errno));
    require(got > 0, "{path}: the file shrank to {left} bytes while it was read, expected {size}", "path"_a = path_,
            "left"_a = grouped(offset), "size"_a = grouped(size_));
    out = out.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
}

std::shared_ptr<std::byte> InputFile::mapped() const {
  require(size_ > 0, "{path}: is empty", "path"_a = path_);
  void* memory = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, descriptor_, 0);
  require(memory != MAP_FAILED, "cannot map {path}: {reason}", "path"_a = path_, "reason"_a = system_reason(errno));
  return {static_cast<std::byte*>(memory), [size = size_](std::byte* p) { ::munmap(p, size); }};
}

void drop_pages(const void* begin, size_t bytes) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE)), first = reinterpret_cast<uintptr_t>(begin),
             inner = (first + page - 1) / page * page, end = (first + bytes) / page * page;
  if (inner < end) ::madvise(reinterpret_cast<void*>(inner), end - inner, MADV_DONTNEED);
}

}  // namespace qkv
