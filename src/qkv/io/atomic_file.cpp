// Temporary, fsync, rename, fsync of the folder.
#include "qkv/io/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "qkv/core/check.h"

namespace qkv {
namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string temporary_name(const std::string& path) {
  const size_t name = path.rfind('/') + 1;  // npos + 1 == 0
  return path.substr(0, name) + "." + path.substr(name) + ".qkv-tmp";
}

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(path) {
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) fail_with(errno);
  check(!exists || !S_ISDIR(status.st_mode), path, " is a directory, expected a file");
  if (exists && !S_ISREG(status.st_mode)) {
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail_with(errno);
    return;
  }
  if (exists) {
    if (::access(path.c_str(), W_OK) != 0) fail_with(errno);  // a read-only file is not to be replaced
    const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
    if (!real) fail_with(errno);
    target_ = real.get();
  }
  temporary_ = temporary_name(target_);
  open_temporary();
  if (exists) (void)::fchmod(descriptor_, status.st_mode & 07777);
}

// The temporary has one name and is locked: what a killed process left behind is reused, and two writers take turns.
void AtomicFile::open_temporary() {
  for (;;) {
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor_ < 0) fail_with(errno);
    while (::flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
    }
    struct stat mine {}, named {};
    if (::fstat(descriptor_, &mine) != 0) fail_with(errno);
    if (::lstat(temporary_.c_str(), &named) == 0 && same_file(mine, named)) break;
    ::close(std::exchange(descriptor_, -1));  // the writer before us has renamed it
  }
  if (::ftruncate(descriptor_, 0) != 0) fail_with(errno);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  ::close(descriptor_);
}

void AtomicFile::fail_with(int error) {
  if (descriptor_ >= 0) {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
    ::close(std::exchange(descriptor_, -1));
  }
  fail("cannot write ", path_, ": ", std::strerror(error));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  check(descriptor_ >= 0, "cannot write ", path_, ": it is closed");
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor_, bytes.data(), std::min<size_t>(bytes.size(), size_t{1} << 30));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_with(errno);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
}

void AtomicFile::commit() {
  check(descriptor_ >= 0, "cannot write ", path_, ": it is closed");
  if (temporary_.empty()) {
    if (::close(std::exchange(descriptor_, -1)) != 0) fail_with(errno);
    return;
  }
  if (::fsync(descriptor_) != 0) fail_with(errno);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail_with(errno);
  ::close(std::exchange(descriptor_, -1));
  const int folder = ::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;  // a folder that may be written but not read: the rename stands, its time is the system's
  const int error = ::fsync(folder) == 0 ? 0 : errno;
  ::close(folder);
  if (error != 0 && error != EINVAL && error != ENOTSUP) fail_with(error);
}

void write_file(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  check(!error, "cannot make the folder ", path, ": ", error.message());
}

}  // namespace qkv
