// What the system says about each page (Linux: /proc/self/pagemap); elsewhere nothing is given back.
#include "qkv/core/file_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace qkv {
namespace {

constexpr uint64_t kOfFile =
    uint64_t{1} << 61;  // of a file or shared; a page of a private mapping loses it when written

class PageMap {
 public:
  PageMap() : file_(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}
  ~PageMap() {
    if (file_ >= 0) ::close(file_);
  }
  PageMap(const PageMap&) = delete;
  PageMap& operator=(const PageMap&) = delete;

  // The entries of pages from number `first` on; returns how many there are.
  size_t read(uintptr_t first, size_t count, uint64_t* entries) const {
    const ssize_t got = ::pread(file_, entries, count * sizeof(uint64_t), static_cast<off_t>(first * sizeof(uint64_t)));
    return got < 0 ? 0 : static_cast<size_t>(got) / sizeof(uint64_t);
  }

 private:
  int file_;
};

}  // namespace

void give_back_pages(const void* begin, size_t bytes) {
  const auto size = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE)), address = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t end = (address + bytes) / size;
  const PageMap map;
  std::array<uint64_t, 512> entries;
  for (uintptr_t page = (address + size - 1) / size; page < end;) {
    const size_t count = map.read(page, std::min<uintptr_t>(end - page, entries.size()), entries.data());
    if (count == 0) return;
    for (size_t i = 0, next = 0; i < count; i = next) {
      const bool ours = (entries[i] & kOfFile) != 0;
      for (next = i + 1; next < count && ((entries[next] & kOfFile) != 0) == ours;) ++next;
      if (ours) ::madvise(reinterpret_cast<void*>((page + i) * size), (next - i) * size, MADV_DONTNEED);
    }
    page += count;
  }
}

}  // namespace qkv
