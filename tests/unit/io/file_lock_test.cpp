// A lock has one holder, others are told who it is, and it is free again after its holder exits or is killed.
#include "qkv/io/file_lock.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "qkv/io/held_lock.h"
#include "support/files.h"

namespace qkv {
namespace {

using qkv_test::error_of;

const Text kBusy = verbatim("busy");

TEST(FileLock, HasOneHolderUntilItIsDestroyed) {
  qkv_test::TempFolder folder;
  const std::string path = folder / "a.lock";
  const std::string refused = "busy (process " + std::to_string(::getpid()) + ")";
  {
    FileLock lock(path, kBusy);
    EXPECT_EQ(error_of([&] { FileLock(path, kBusy); }), refused);
    FileLock moved = std::move(lock);
    EXPECT_EQ(error_of([&] { FileLock(path, kBusy); }), refused);
    FileLock other(folder / "b.lock", kBusy);
    other = std::move(moved);  // a is held by `other` now, b by `moved`
    EXPECT_EQ(error_of([&] { FileLock(path, kBusy); }), refused);
  }
  EXPECT_EQ(folder.count(), 0);
  EXPECT_EQ(error_of([&] { FileLock(path, kBusy); }), "no error");
  EXPECT_EQ(error_of([&] { FileLock(folder / "none/a.lock", kBusy); }),
            "cannot write " + (folder / "none/a.lock") + ": No such file or directory");
}

TEST(FileLock, IsSeenToBeHeldWithoutBeingTaken) {
  const auto folder = std::filesystem::temp_directory_path() / ("qkv-held-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = folder / "a.lock";
  EXPECT_FALSE(lock_is_held(path));
  {
    const FileLock lock(path, kBusy);
    EXPECT_TRUE(lock_is_held(path));
  }
  EXPECT_FALSE(lock_is_held(path));
  std::ofstream(path) << "1\n";  // what a killed process leaves
  EXPECT_FALSE(lock_is_held(path));
  // Somebody who looks all the time keeps nobody from the lock.
  std::atomic<bool> stop = false;
  std::thread looks([&] {
    while (!stop) lock_is_held(path);
  });
  for (int i = 0; i < 200; ++i) EXPECT_NO_THROW(FileLock(path, kBusy)) << i;
  stop = true;
  looks.join();
  std::filesystem::remove_all(folder);
}

TEST(FileLock, WritesToNothingThatIsNotItsOwn) {
  qkv_test::TempFolder folder;
  const std::string path = folder / "a.lock", refused = "cannot write " + path + ": it is not one of our lock files";
  qkv_test::put_bytes(folder / "victim", "mine");
  ASSERT_EQ(::link((folder / "victim").c_str(), path.c_str()), 0);
  EXPECT_EQ(error_of([&] { FileLock(path, kBusy); }), refused);
  EXPECT_EQ(qkv_test::file_bytes(folder / "victim"), "mine");
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0666), 0);
  EXPECT_EQ(error_of([&] { FileLock(path, kBusy); }), refused);
  EXPECT_TRUE(std::filesystem::is_fifo(path));
}

TEST(FileLock, IsTakenOverFromAKilledProcess) {
  qkv_test::TempFolder folder;
  const std::string path = folder / "a.lock";
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    FileLock lock(path, kBusy);
    (void)!::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(error_of([&] { FileLock(path, kBusy); }), "busy (process " + std::to_string(child) + ")");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]), ::close(ready[1]);
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_EQ(error_of([&] { FileLock(path, kBusy); }), "no error");
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace qkv
