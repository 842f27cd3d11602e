// Atomic writing: the old file or the new one, and no leftovers.
#include "qkv/io/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "support/files.h"

using namespace qkv;
using qkv_test::error_of;
using qkv_test::file_bytes;
using qkv_test::put_bytes;
using qkv_test::TempFolder;

TEST(AtomicFile, KeepsTheOldFileUntilItIsCommitted) {
  TempFolder folder;
  const std::string path = folder / "x";
  put_bytes(path, "old");
  {
    AtomicFile file(path);
    file.write("new");
    EXPECT_EQ(file_bytes(path), "old");
    EXPECT_EQ(folder.count(), 2);
  }
  EXPECT_EQ(file_bytes(path), "old");
  EXPECT_EQ(folder.count(), 1);
  write_file(path, "new");
  EXPECT_EQ(file_bytes(path), "new");
  EXPECT_EQ(folder.count(), 1);
}

TEST(AtomicFile, RemovesWhatAKilledWriterLeft) {
  TempFolder folder;
  put_bytes(folder / ".x.qkv-tmp", "half of something much longer");
  write_file(folder / "x", "new");
  EXPECT_EQ(file_bytes(folder / "x"), "new");
  EXPECT_EQ(folder.count(), 1);
}

TEST(AtomicFile, NeverWritesToWhateverHasTheTemporarysName) {
  TempFolder folder;
  const std::string planted = folder / ".x.qkv-tmp", victim = folder / "victim";
  put_bytes(victim, "mine");
  ASSERT_EQ(mkfifo(planted.c_str(), 0666), 0);
  write_file(folder / "x", "one");  // opening a pipe would wait for a reader
  EXPECT_EQ(file_bytes(folder / "x"), "one");
  EXPECT_TRUE(std::filesystem::is_fifo(planted));
  std::filesystem::remove(planted);

  ASSERT_EQ(link(victim.c_str(), planted.c_str()), 0);
  write_file(folder / "x", "two");
  EXPECT_EQ(file_bytes(folder / "x"), "two");
  EXPECT_EQ(file_bytes(victim), "mine");
  std::filesystem::remove(planted);

  ASSERT_EQ(symlink("victim", planted.c_str()), 0);
  write_file(folder / "x", "three");
  EXPECT_EQ(file_bytes(folder / "x"), "three");
  EXPECT_EQ(file_bytes(victim), "mine");
  EXPECT_TRUE(std::filesystem::is_symlink(planted));
  std::filesystem::remove(planted);

  std::filesystem::create_directory(planted);
  write_file(folder / "x", "four");
  EXPECT_EQ(file_bytes(folder / "x"), "four");
  EXPECT_EQ(folder.count(), 3) << "x, victim and the folder in the way";
}

TEST(AtomicFile, WritesNamesOfAnyLength) {
  TempFolder folder;
  for (const size_t length : {246, 247, 255}) {
    const std::string path = folder / std::string(length, 'n');
    write_file(path, "text");
    write_file(path, "again");
    EXPECT_EQ(file_bytes(path), "again");
  }
  const std::string path = folder / std::string(256, 'n');
  EXPECT_EQ(error_of([&] { write_file(path, "text"); }), "cannot write " + path + ": File name too long");
}

TEST(AtomicFile, WritersOfOneFileTakeTurns) {
  TempFolder folder;
  const std::string path = folder / "x";
  std::vector<std::thread> writers;
  for (int w = 0; w < 4; ++w)
    writers.emplace_back([&, w] {
      for (int i = 0; i < 25; ++i) write_file(path, std::string(50000, static_cast<char>('a' + w)));
    });
  for (auto& writer : writers) writer.join();
  const std::string bytes = file_bytes(path);
  EXPECT_EQ(bytes, std::string(50000, bytes.empty() ? '?' : bytes[0]));
  EXPECT_EQ(folder.count(), 1);
}

TEST(AtomicFile, FollowsLinksAndKeepsTheMode) {
  TempFolder folder;
  put_bytes(folder / "real", "old");
  ASSERT_EQ(chmod((folder / "real").c_str(), 0640), 0);
  ASSERT_EQ(symlink("real", (folder / "link").c_str()), 0);
  write_file(folder / "link", "new");
  EXPECT_EQ(file_bytes(folder / "real"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  struct stat status {};
  ASSERT_EQ(stat((folder / "real").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST(AtomicFile, WritesToDevicesDirectly) {
  write_file("/dev/null", "text");
  struct stat status {};
  ASSERT_EQ(stat("/dev/null", &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
  EXPECT_EQ(error_of([] { write_file("/dev/full", "text"); }), "cannot write /dev/full: No space left on device");
}

TEST(AtomicFile, NamesTheFileAndTheReason) {
  TempFolder folder;
  put_bytes(folder / "x", "old");
  const std::string nowhere = folder / "none/x", below_a_file = folder / "x/y";
  EXPECT_EQ(error_of([&] { write_file(nowhere, "a"); }), "cannot write " + nowhere + ": No such file or directory");
  EXPECT_EQ(error_of([&] { write_file(below_a_file, "a"); }), "cannot write " + below_a_file + ": Not a directory");
  EXPECT_EQ(error_of([&] { write_file(folder.path(), "a"); }), folder.path() + " is a directory, expected a file");
  EXPECT_EQ(folder.count(), 1);
}
