// flock on a file that is still the one of that name.
#include "qkv/io/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "qkv/core/check.h"

namespace qkv {
namespace {

std::string process_in(int descriptor) {
  char digits[24] = {};
  const ssize_t got = ::pread(descriptor, digits, sizeof digits - 1, 0);
  std::string number(digits, digits + (got > 0 ? got : 0));
  while (!number.empty() && number.back() == '\n') number.pop_back();
  return number.empty() || number.find_first_not_of("0123456789") != std::string::npos ? ""
                                                                                       : " (process " + number + ")";
}

}  // namespace

FileLock::FileLock(const std::string& path, const std::string& held) : path_(path) {
  for (;;) {
    const int descriptor = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (descriptor < 0) fail("cannot write ", path_, ": ", std::strerror(errno));
    struct stat opened {};
    if (::fstat(descriptor, &opened) != 0 || !S_ISREG(opened.st_mode) ||
        opened.st_nlink > 1) {  // a pipe, or a file with another name too
      ::close(descriptor);
      fail("cannot write ", path_, ": it is not a lock of ours");
    }
    int error = 0;
    while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && (error = errno) == EINTR) error = 0;
    if (error == EWOULDBLOCK) {
      const std::string holder = process_in(descriptor);
      ::close(descriptor);
      fail(held, holder);
    }
    // A file system without locks: nothing can be known about others, and the work itself needs no lock.
    struct stat mine {
    }, named{};
    const bool known = ::fstat(descriptor, &mine) == 0 && ::lstat(path_.c_str(), &named) == 0;
    const bool current = known && mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
    if (!current) {  // its holder before us removed it
      ::close(descriptor);
      continue;
    }
    const std::string number = std::to_string(::getpid()) + "\n";
    if (::ftruncate(descriptor, 0) != 0 ||
        ::pwrite(descriptor, number.data(), number.size(), 0) != static_cast<ssize_t>(number.size())) {
      const int reason = errno;
      ::unlink(path_.c_str());
      ::close(descriptor);
      fail("cannot write ", path_, ": ", std::strerror(reason));
    }
    descriptor_ = descriptor;
    return;
  }
}

FileLock::~FileLock() {
  if (descriptor_ < 0) return;
  ::unlink(path_.c_str());  // while it is ours
  ::close(descriptor_);
}

FileLock::FileLock(FileLock&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

}  // namespace qkv
