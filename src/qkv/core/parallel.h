// Work over fixed blocks on one thread arena. What a block does never depends on the number of threads, so results are
// bit-identical with 1, 2 or 8.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "qkv/core/api.h"

namespace QKV_API qkv {

/// Sets the number of threads in the process's arena (1 to 1024); at most 64 of them share one region. Default: the
/// number of CPUs available to this process.
void set_threads(int count);
int threads();
/// "oneTBB 2021.8".
std::string thread_library();

/// While one is alive on a thread, parallel_for runs serially there: used inside a shard of the batch.
class SerialScope {
 public:
  SerialScope();
  ~SerialScope();
  SerialScope(const SerialScope&) = delete;
  SerialScope& operator=(const SerialScope&) = delete;

 private:
  bool before_;
};

/// From now on, results that would be denormal are zero on this thread; inputs are read as they are. parallel_for,
/// tapes and matrix products call it themselves.
void flush_denormals();

namespace detail {
bool parallel_worthwhile(int64_t blocks, double total_ns);
void run_blocks(int64_t blocks, void* context, void (*body)(void*, int64_t));
}  // namespace detail

/// Work that takes less than this in total stays on the calling thread (a region costs 1-1.5 us).
inline constexpr double kParallelNanoseconds = 6000;

/// Calls body(b) for every b in [0, blocks). total_ns is an estimate of the whole work. Exceptions reach the caller.
template <class Body>
void parallel_for(int64_t blocks, double total_ns, Body&& body) {
  if (!detail::parallel_worthwhile(blocks, total_ns)) {
    for (int64_t b = 0; b < blocks; ++b) body(b);
    return;
  }
  using Plain = std::remove_reference_t<Body>;
  detail::run_blocks(blocks, const_cast<std::remove_const_t<Plain>*>(&body),
                     [](void* context, int64_t b) { (*static_cast<Plain*>(context))(b); });
}

/// Cuts [0, n) into blocks of `size` (the last may be short) and calls body(begin, end) for each.
template <class Body>
void parallel_ranges(int64_t n, int64_t size, double total_ns, Body&& body) {
  const int64_t blocks = (n + size - 1) / size;
  parallel_for(blocks, total_ns, [&](int64_t b) { body(b * size, b * size + size < n ? b * size + size : n); });
}

}  // namespace qkv
