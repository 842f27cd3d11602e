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
#include "qkv/core/system_reason.h"
#include "qkv/io/sha1.h"

namespace qkv {
namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string digest(const std::string& name) { return sha1(std::as_bytes(std::span(name))); }

// "FOLDER/.NAME.qkv-tmp"; a name too long for that is replaced by its digest.
std::string temporary_name(const std::string& path) {
  const size_t slash = path.rfind('/') + 1;  // npos + 1 == 0
  const std::string name = path.substr(slash), folder = path.substr(0, slash);
  const std::string usual = "." + name + ".qkv-tmp";
  return folder + (usual.size() <= NAME_MAX ? usual : "." + digest(name) + ".qkv-tmp");
}

// The same with a random suffix that nobody can have guessed.
std::string unused_name(const std::string& temporary) {
  std::random_device random;
  std::string suffix;
  for (int i = 0; i < 4; ++i) suffix += "0123456789abcdefghijklmnopqrstuv"[random() % 32];
  const size_t slash = temporary.rfind('/') + 1;
  std::string name = temporary.substr(slash);
  if (name.size() + suffix.size() + 1 > NAME_MAX) name = "." + digest(name) + ".qkv-tmp";
  return temporary.substr(0, slash) + name + "-" + suffix;
}

// Whether it can be a leftover of one of our writers: a plain file of this user with a single name.
bool is_ours(const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_nlink == 1 && status.st_uid == ::geteuid();
}

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(path) {
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) fail_with(errno);
  require(!exists || !S_ISDIR(status.st_mode), "{path} is a directory, expected a file", "path"_a = path);
  if (exists && !S_ISREG(status.st_mode)) {
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail_with(errno);
    return;
  }
  if (exists) {
    if (::access(path.c_str(), W_OK) != 0) fail_with(errno);  // do not replace a read-only file
    const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
    if (!real) fail_with(errno);
    target_ = real.get();
  }
  temporary_ = temporary_name(target_);
  open_temporary();
  if (exists) (void)::fchmod(descriptor_, status.st_mode & 07777);
}

// The temporary is always a new file, so whatever already has its name (a pipe, a link, somebody else's file) is never
// written to. The name is fixed and the file is locked: a leftover of a killed process is removed, and two writers take
// turns. If something else has the name, a random suffix is added.
void AtomicFile::open_temporary() {
  const std::string usual = temporary_;
  for (int tries = 0;;) {
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor_ >= 0) {
      if (lock_temporary()) return;
      continue;  // another writer took it for a leftover
    }
    if (errno != EEXIST) fail_with(errno);
    if (remove_left()) continue;
    if (++tries > 20) refuse("cannot write {path}: {file} is in the way", "path"_a = path_, "file"_a = usual);
    temporary_ = unused_name(usual);
  }
}

// Locks the open file; false if its name now belongs to another file.
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

// Removes a leftover temporary, waiting for its writer if that is still running; false if something else has the name.
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
  refuse("cannot write {path}: {reason}", "path"_a = path_, "reason"_a = system_reason(error));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  require(descriptor_ >= 0, "cannot write {path}: it is closed", "path"_a = path_);
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor_, bytes.data(), std::min<size_t>(bytes.size(), size_t{1} << 30));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_with(errno);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
}

void AtomicFile::commit() {
  require(descriptor_ >= 0, "cannot write {path}: it is closed", "path"_a = path_);
  if (temporary_.empty()) {
    if (::close(std::exchange(descriptor_, -1)) != 0) fail_with(errno);
    return;
  }
  if (::fsync(descriptor_) != 0) fail_with(errno);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail_with(errno);
  ::close(std::exchange(descriptor_, -1));
  const int folder = ::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return;  // a writable but unreadable folder: the rename is done, the system decides when it is on disk
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
  require(!error, "cannot create the folder {path}: {reason}", "path"_a = path,
          "reason"_a = system_reason(error.value()));
}

}  // namespace qkv
