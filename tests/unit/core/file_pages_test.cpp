// Pages of mapped files given back: what they hold afterwards, and what stays.
#include "qkv/core/file_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "qkv/io/file.h"
#include "support/files.h"

using namespace qkv;
using qkv_test::put_bytes;
using qkv_test::TempFolder;

namespace {

constexpr size_t kBytes = size_t{8} << 20;
constexpr auto kX = std::byte{'x'}, kY = std::byte{'y'};

// Memory of this process that comes from files, in kB.
int64_t file_memory() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("RssFile:")) return std::stoll(line.substr(8));
  return -1;
}

std::shared_ptr<std::byte> mapped(const std::string& path) {
  put_bytes(path, std::string(kBytes, 'x'));
  return InputFile(path).mapped();
}

int64_t count_of(const std::byte* bytes, std::byte wanted) { return std::count(bytes, bytes + kBytes, wanted); }

}  // namespace

TEST(FilePages, AreGivenBackAndComeAgain) {
  TempFolder folder;
  const auto pages = mapped(folder / "x");
  EXPECT_EQ(count_of(pages.get(), kX), static_cast<int64_t>(kBytes));
  const int64_t before = file_memory();
  if (before < 0 || !std::ifstream("/proc/self/pagemap")) GTEST_SKIP() << "this system does not say";
  give_back_pages(pages.get() + 100, kBytes - 200);  // the first and the last page stay
  EXPECT_LT(file_memory(), before - 7 * 1024);
  EXPECT_EQ(count_of(pages.get(), kX), static_cast<int64_t>(kBytes));
}

TEST(FilePages, PagesThatWereWrittenToStay) {
  TempFolder folder;
  const auto pages = mapped(folder / "x");
  std::fill_n(pages.get() + kBytes / 4, kBytes / 4, kY);
  give_back_pages(pages.get(), kBytes);
  EXPECT_EQ(count_of(pages.get(), kY), static_cast<int64_t>(kBytes / 4));
  EXPECT_EQ(count_of(pages.get(), kX), static_cast<int64_t>(kBytes - kBytes / 4));
}

TEST(FilePages, OtherMemoryStays) {
  std::vector<std::byte> own(kBytes, kY);
  give_back_pages(own.data(), own.size());
  EXPECT_EQ(count_of(own.data(), kY), static_cast<int64_t>(kBytes));
}
