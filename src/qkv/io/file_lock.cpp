// flock on a file, checked afterwards to still have its name.
#include "qkv/io/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "qkv/core/check.h"
#include "qkv/core/system_reason.h"
#include "qkv/io/held_lock.h"

namespace qkv {
namespace {

// The process id in a lock file, or nothing.
std::string process_in(int descriptor) {
  char digits[24] = {};
  const ssize_t got = ::pread(descriptor, digits, sizeof digits - 1, 0);
  std::string number(digits, digits + (got > 0 ? got : 0));
  while (!number.empty() && number.back() == '\n') number.pop_back();
  return number.find_first_not_of("0123456789") == std::string::npos ? number : "";
}

// 0 or the error.
int try_lock(int descriptor, int kind) {
  int error = 0;
  while (::flock(descriptor, kind | LOCK_NB) != 0 && (error = errno) == EINTR) error = 0;
  return error;
}

// lock_is_held holds a lock for the blink of an eye: who wants it for work tries a few times.
constexpr int kGlances = 5, kGlanceMicroseconds = 4000;

}  // namespace

bool lock_is_held(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) return false;
  const bool held = try_lock(descriptor, LOCK_SH) == EWOULDBLOCK;
  ::close(descriptor);
  return held;
}

FileLock::FileLock(const std::string& path, const Text& held) : path_(path) {
  for (;;) {
    const int descriptor = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (descriptor < 0) refuse("cannot write {path}: {reason}", "path"_a = path_, "reason"_a = system_reason(errno));
    struct stat opened {};
    if (::fstat(descriptor, &opened) != 0 || !S_ISREG(opened.st_mode) ||
        opened.st_nlink > 1) {  // a pipe, or a file with a second name
      ::close(descriptor);
      refuse("cannot write {path}: it is not one of our lock files", "path"_a = path_);
    }
    int error = try_lock(descriptor, LOCK_EX);
    for (int tries = 0; error == EWOULDBLOCK && tries < kGlances; ++tries) {
      ::usleep(kGlanceMicroseconds);
      error = try_lock(descriptor, LOCK_EX);
    }
    if (error == EWOULDBLOCK) {
      const std::string holder = process_in(descriptor);
      ::close(descriptor);
      throw Error(holder.empty() ? held : tr("{held} (process {process})", "held"_a = held, "process"_a = holder));
    }
    // On a file system without locks other processes cannot be detected; the work itself needs no lock.
    struct stat mine {
    }, named{};
    const bool known = ::fstat(descriptor, &mine) == 0 && ::lstat(path_.c_str(), &named) == 0;
    const bool current = known && mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
    if (!current) {  // its previous holder removed it
      ::close(descriptor);
      continue;
    }
    const std::string number = std::to_string(::getpid()) + "\n";
    if (::ftruncate(descriptor, 0) != 0 ||
        ::pwrite(descriptor, number.data(), number.size(), 0) != static_cast<ssize_t>(number.size())) {
      const int reason = errno;
      ::unlink(path_.c_str());
      ::close(descriptor);
      refuse("cannot write {path}: {reason}", "path"_a = path_, "reason"_a = system_reason(reason));
    }
    descriptor_ = descriptor;
    return;
  }
}

FileLock::~FileLock() {
  if (descriptor_ < 0) return;
  ::unlink(path_.c_str());  // while we still hold the lock
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
