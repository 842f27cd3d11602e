// The only file that uses oneTBB.
#include "qkv/core/parallel.h"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/version.h>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>

#include "qkv/core/check.h"

#ifdef QKV_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace qkv {
namespace {

// Tells ThreadSanitizer what happens before what in a region, which it cannot see inside oneTBB: the caller's writes
// before every block, every block's writes before the return. Two addresses, so that blocks of one region stay
// unordered among themselves. Without ThreadSanitizer it is empty.
class RegionOrder {
 public:
#ifdef QKV_TSAN
  RegionOrder() { __tsan_release(&opened_); }
  ~RegionOrder() { __tsan_acquire(&closed_); }
  void begin_block() { __tsan_acquire(&opened_); }
  void end_block() { __tsan_release(&closed_); }

 private:
  char opened_ = 0, closed_ = 0;
#else
  void begin_block() {}
  void end_block() {}
#endif
};

class BlockOrder {
 public:
  explicit BlockOrder(RegionOrder& region) : region_(region) { region_.begin_block(); }
  ~BlockOrder() { region_.end_block(); }  // also on an exception
  BlockOrder(const BlockOrder&) = delete;
  BlockOrder& operator=(const BlockOrder&) = delete;

 private:
  RegionOrder& region_;
};

struct Arena {
  explicit Arena(int count) : control(tbb::global_control::max_allowed_parallelism, count), arena(count) {}
  tbb::global_control control;
  tbb::task_arena arena;
};

std::mutex arena_mutex;
std::shared_ptr<Arena>& arena_slot() {
  static auto* slot = new std::shared_ptr<Arena>;  // never destroyed: threads may outlive static destructors
  return *slot;
}
std::atomic<int> thread_count{0};
thread_local bool serial = false;

// A running region keeps its arena even if set_threads replaces it meanwhile.
std::shared_ptr<Arena> arena() {
  std::lock_guard lock(arena_mutex);
  if (!arena_slot()) arena_slot() = std::make_shared<Arena>(threads());
  return arena_slot();
}

// Blocks [0, count) cut into one run per worker, so that neighbouring blocks stay in one core's cache. A worker that
// has finished its own run takes blocks from the others, so that nobody waits for one that wakes late or is held up.
class Shares {
 public:
  static constexpr int64_t kMostWorkers = 64;

  Shares(int64_t count, int64_t workers) : workers_(workers) {
    for (int64_t w = 0; w < workers; ++w) runs_[w] = {count * w / workers, count * (w + 1) / workers};
  }
  template <class Body>
  void run(int64_t worker, const Body& body) {
    for (int64_t i = 0; i < workers_; ++i) {
      OneRun& run = runs_[(worker + i) % workers_];
      std::atomic_ref next(run.next);
      for (int64_t block = next++; block < run.end; block = next++) body(block);
    }
  }

 private:
  struct alignas(64) OneRun {
    int64_t next, end;
  };
  int64_t workers_;
  OneRun runs_[kMostWorkers];  // only the first workers_ are used; the rest stay uninitialised
};

}  // namespace

void set_threads(int count) {
  check(count >= 1 && count <= 1024, "[threads] expected 1 to 1024, got ", count);
  std::lock_guard lock(arena_mutex);
  if (thread_count != count) arena_slot().reset();
  thread_count = count;
}

int threads() {
  int count = thread_count.load(std::memory_order_relaxed);
  if (count == 0) thread_count = count = tbb::this_task_arena::max_concurrency();
  return count;
}

std::string thread_library() { return std::string("oneTBB ") + TBB_runtime_version(); }

SerialScope::SerialScope() : before_(serial) { serial = true; }
SerialScope::~SerialScope() { serial = before_; }

void flush_denormals() {
  static thread_local bool done = false;
  if (done) return;
  done = true;
#if defined(__SSE__)
  _mm_setcsr(_mm_getcsr() | 0x8000);
#elif defined(__aarch64__)
  uint64_t fpcr;
  asm volatile("mrs %0, fpcr" : "=r"(fpcr));
  asm volatile("msr fpcr, %0" : : "r"(fpcr | (uint64_t{1} << 24)));
#endif
}

namespace detail {

bool parallel_worthwhile(int64_t blocks, double total_ns) {
  flush_denormals();  // a serial run must round like the blocks of a parallel one
  return blocks > 1 && total_ns >= kParallelNanoseconds && !serial && threads() > 1;
}

void run_blocks(int64_t blocks, void* context, void (*body)(void*, int64_t)) {
  [[maybe_unused]] RegionOrder region;
  const int64_t workers = std::min({blocks, int64_t{threads()}, Shares::kMostWorkers});
  Shares shares(blocks, workers);
  const std::shared_ptr<Arena> held = arena();
  held->arena.execute([&] {
    tbb::parallel_for(
        int64_t{0}, workers,
        [&](int64_t worker) {
          flush_denormals();
          SerialScope inside;  // a block never opens its own region
          shares.run(worker, [&](int64_t b) {
            BlockOrder order(region);
            body(context, b);
          });
        },
        tbb::static_partitioner{});
  });
}

}  // namespace detail
}  // namespace qkv
