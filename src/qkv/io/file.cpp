// Reading by offset over pread.
#include "qkv/io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "qkv/core/check.h"
#include "qkv/core/numbers.h"

namespace qkv {

InputFile::InputFile(const std::string& path)
    : path_(path),
      descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {  // a pipe must not hang the open
  check(descriptor_ >= 0, "cannot open ", path, ": ", std::strerror(errno));
  struct stat status {};
  const int error = ::fstat(descriptor_, &status) == 0 ? 0 : errno;
  if (error == 0 && S_ISREG(status.st_mode)) {
    size_ = static_cast<uint64_t>(status.st_size);
    return;
  }
  ::close(descriptor_);
  check(error == 0, "cannot open ", path, ": ", std::strerror(error));
  check(!S_ISDIR(status.st_mode), path, " is a directory, expected a file");
  fail(path, " is not a regular file");
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void InputFile::read(uint64_t offset, std::span<std::byte> out) const {
  check(offset <= size_ && out.size() <= size_ - offset, path_, ": needs ", out.size(), " bytes at offset ", offset,
        ", the file has ", grouped(size_));
  while (!out.empty()) {
    const size_t part = std::min<size_t>(out.size(), size_t{1} << 30);
    const ssize_t got = ::pread(descriptor_, out.data(), part, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    check(got >= 0, "cannot read ", path_, ": ", std::strerror(errno));
    check(got > 0, path_, ": the file shrank to ", grouped(offset), " bytes while it was read, expected ",
          grouped(size_));
    out = out.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
}

}  // namespace qkv
