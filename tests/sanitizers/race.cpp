// Two blocks of one region write the same number: ThreadSanitizer must say so, or its silence elsewhere would mean
// nothing.
#include <atomic>
#include <cstdio>

#include "qkv/core/parallel.h"

int main() {
  qkv::set_threads(2);
  std::atomic<int> inside{0};
  int shared = 0;
  qkv::parallel_for(2, 1e9, [&](int64_t) {
    inside.fetch_add(1, std::memory_order_relaxed);  // relaxed: both are here at once, and nothing orders them
    while (inside.load(std::memory_order_relaxed) < 2) {
    }
    ++shared;
  });
  std::printf("%d\n", shared);
}
