// Temporary, fsync, rename, fsync of the folder.
#include "qkv/io/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <utility>

#include "qkv/core/check.h"
#include "qkv/io/sha1.h"

namespace qkv {
namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string digest(const std::string& name) { return sha1(std::as_bytes(std::span(name))); }

// "FOLDER/.NAME.qkv-tmp"; a name that is too long for that stands as its sum.
std::string temporary_name(const std::string& path) {
  const size_t slash = path.rfind('/') + 1;  // npos + 1 == 0
  const std::string name = path.substr(slash), folder = path.substr(0, slash);
  const std::string usual = "." + name + ".qkv-tmp";
  return folder + (usual.size() <= NAME_MAX ? usual : "." + digest(name) + ".qkv-tmp");
}

// The same with a suffix that nobody can have put there before.
std::string unused_name(const std::string& temporary) {
  std::random_device random;
  std::string suffix;
  for (int i = 0; i < 4; ++i) suffix += "0123456789abcdefghijklmnopqrstuv"[random() % 32];
  const size_t slash = temporary.rfind('/') + 1;
  std::string name = temporary.substr(slash);
  if (name.size() + suffix.size() + 1 > NAME_MAX) name = "." + digest(name) + ".qkv-tmp";
  return temporary.substr(0, slash) + name + "-" + suffix;
}

// What a writer of ours leaves: a plain file of this user that has no other name.
bool is_ours(const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_nlink == 1 && status.st_uid == ::geteuid();
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

// The temporary is always a new file, so nothing that lies at its name (a pipe, a link, a file of somebody else) is
// written to. It has one name and is locked: what a killed process of ours left there is removed, and two writers take
// turns. Where something else has that name, another one is made up.
void AtomicFile::open_temporary() {
  const std::string usual = temporary_;
  for (int tries = 0;;) {
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor_ >= 0) {
      if (lock_temporary()) return;
      continue;  // another writer took it for one that was left
    }
    if (errno != EEXIST) fail_with(errno);
    if (remove_left()) continue;
    if (++tries > 20) fail("cannot write ", path_, ": ", usual, " is in the way");
    temporary_ = unused_name(usual);
  }
}

// Locks what is open; false when the name belongs to another file by now.
bool AtomicFile::lock_temporary() {
  while (::flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
  }
  struct stat mine {
  }, named{};
  if (::fstat(descriptor_, &mine) != 0) fail_with(errno);
  if (::lstat(temporary_.c_str(), &named) == 0 && same_file(mine, named)) return true;
  ::close(std::exchange(descriptor_, -1));
  return false;
}

// Removes a temporary that its writer has left, waiting for a writer that is still there; false when the name is taken
// by something else.
bool AtomicFile::remove_left() {
  struct stat named {};
  if (::lstat(temporary_.c_str(), &named) != 0) return errno == ENOENT;
  if (!is_ours(named)) return false;
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor_ < 0) return errno == ENOENT;
  if (lock_temporary()) {
    ::unlink(temporary_.c_str());
    ::close(std::exchange(descriptor_, -1));
  }
  return true;
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
