// Size classes, four per power of two, each a stack of blocks that only the owner thread touches, and one locked list
// of returned blocks.
#include "qkv/tensor/pool.h"

#include <bit>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include "qkv/core/check.h"
#include "qkv/tensor/out_of_memory.h"

namespace qkv {
namespace {

constexpr int kClasses = 4 * 48;

// Classes 4e .. 4e+3 hold 64 * 2^e * {1, 1.25, 1.5, 1.75} bytes.
constexpr size_t class_bytes(uint32_t c) { return (size_t{64} << (c / 4)) / 4 * (4 + c % 4); }
uint32_t class_of(size_t bytes) {
  if (bytes <= 64) return 0;
  const size_t units = (bytes - 1) / 64;  // >= 1
  const uint32_t e = static_cast<uint32_t>(std::bit_width(units)) - 1;
  uint32_t c = 4 * e + static_cast<uint32_t>((bytes - 1 - (size_t{64} << e)) / ((size_t{64} << e) / 4)) + 1;
  return c;
}

class SpinLock {
 public:
  void lock() {
    while (flag_.test_and_set(std::memory_order_acquire))
      while (flag_.test(std::memory_order_relaxed)) {
      }
  }
  void unlock() { flag_.clear(std::memory_order_release); }

 private:
  std::atomic_flag flag_;
};

}  // namespace

struct PoolCore {
  using Block = Buffer::Block;

  std::atomic<const void*> owner{
      nullptr};  // the thread that takes and keeps blocks without locking, as the address of its token; null: none
  Block* waiting[kClasses] = {};
  int64_t misses = 0, bytes = 0;
  int64_t outside = 0;  // blocks in use, and blocks given back by other threads but not fetched yet

  SpinLock lock;                          // guards the members below
  std::atomic<Block*> returned{nullptr};  // given back by other threads
  bool closed = false;                    // the Pool is gone: blocks are freed as they are given back

  void keep(Block* block) {
    block->next = waiting[block->size_class];
    waiting[block->size_class] = block;
    --outside;
  }

  void fetch_returned() {
    lock.lock();
    Block* block = returned.exchange(nullptr, std::memory_order_relaxed);
    lock.unlock();
    while (block) keep(std::exchange(block, block->next));
  }

  Block* take(size_t bytes_wanted) {
    const uint32_t c = class_of(bytes_wanted);
    check(c < kClasses, "[buffer] ", bytes_wanted, " bytes are more than any machine has");
    if (!waiting[c] && returned.load(std::memory_order_relaxed)) fetch_returned();
    ++outside;
    if (Block* block = waiting[c]) {
      waiting[c] = block->next;
      block->owners.store(1, std::memory_order_relaxed);
      return block;
    }
    return fresh(c, bytes_wanted);
  }

  Block* fresh(uint32_t c, size_t bytes_wanted) {
    void* memory = std::aligned_alloc(64, Buffer::kHeader + (class_bytes(c) + 63) / 64 * 64);
    if (!memory) {
      --outside;
      throw OutOfMemory(text("[buffer] out of memory: could not allocate ", bytes_wanted, " bytes"));
    }
    ++misses;
    bytes += static_cast<int64_t>(class_bytes(c));
    Block* block = new (memory) Block{};
    block->owners.store(1, std::memory_order_relaxed);
    block->size_class = c;
    block->home = this;
    return block;
  }

  void give(Block* block);

  // Makes the calling thread the owner; false if it already was. Everything the previous owner did is visible to it.
  bool claim(const void* thread) {
    const void* before = nullptr;
    if (owner.compare_exchange_strong(before, thread, std::memory_order_acquire)) return true;
    check(before == thread, "[pool] another thread is using this pool: only one may at a time");
    return false;
  }
  void disclaim() { owner.store(nullptr, std::memory_order_release); }

  // For a thread whose own pool is already gone (a static object that computes in its destructor): a core for this one
  // block.
  static Block* orphan(size_t bytes_wanted) {
    auto core = std::make_unique<PoolCore>();
    Block* block = core->take(bytes_wanted);
    core->closed = true;
    core.release();  // deleted with the block
    return block;
  }

  void trim() {
    fetch_returned();
    for (uint32_t c = 0; c < kClasses; ++c)
      while (Block* block = waiting[c]) {
        waiting[c] = block->next;
        bytes -= static_cast<int64_t>(class_bytes(c));
        std::free(block);
      }
  }

  void close() {
    trim();
    lock.lock();
    closed = true;
    Block* late = returned.exchange(nullptr, std::memory_order_relaxed);
    while (late) {
      std::free(std::exchange(late, late->next));
      --outside;
    }
    const bool last = outside == 0;
    lock.unlock();
    if (last) delete this;
  }
};

namespace {

thread_local const char token = 0;  // its address identifies the thread
thread_local Pool* current_pool = nullptr;
thread_local bool own_pool_gone = false;

}  // namespace

// The thread's own pool. It ends with the thread; blocks still in use are freed with their last Buffer.
struct ThreadPool {
  Pool pool;
  ThreadPool() { pool.core_->claim(&token); }
  ~ThreadPool() {
    current_pool = nullptr;
    own_pool_gone = true;
  }
};

void PoolCore::give(Block* block) {
  if (owner.load(std::memory_order_relaxed) == &token) return keep(block);
  lock.lock();
  if (!closed) {
    block->next = returned.load(std::memory_order_relaxed);
    returned.store(block, std::memory_order_relaxed);
    lock.unlock();
    return;
  }
  std::free(block);
  const bool last = --outside == 0;
  lock.unlock();
  if (last) delete this;
}

Buffer Buffer::take(size_t bytes) {
  Buffer buffer;
  if (!current_pool && own_pool_gone) [[unlikely]]
    buffer.block_ = PoolCore::orphan(bytes);
  else
    buffer.block_ = Pool::current().core_->take(bytes);
  return buffer;
}

Buffer Buffer::holding(std::shared_ptr<const void> owner) {
  using Owner = std::shared_ptr<const void>;
  void* memory = std::aligned_alloc(64, kHeader + (sizeof(Owner) + 63) / 64 * 64);
  if (!memory) throw OutOfMemory(text("[buffer] out of memory"));
  Buffer buffer;
  buffer.block_ = new (memory) Block{};
  buffer.block_->owners.store(1, std::memory_order_relaxed);
  new (buffer.data()) Owner(std::move(owner));
  return buffer;
}

void Buffer::give_back() {
  if (block_->home) return block_->home->give(block_);
  std::destroy_at(std::launder(reinterpret_cast<std::shared_ptr<const void>*>(data())));
  std::free(block_);
}

Pool::Pool() : core_(new PoolCore) {}

Pool::~Pool() {
  core_->disclaim();
  core_->close();
}

int64_t Pool::misses() const { return core_->misses; }
int64_t Pool::bytes() const { return core_->bytes; }
void Pool::trim() { core_->trim(); }

Pool& Pool::of_thread() {
  check(!own_pool_gone, "[pool] the thread is ending and its own pool is gone");
  thread_local ThreadPool own;
  return own.pool;
}

Pool& Pool::current() {
  if (!current_pool) [[unlikely]]
    current_pool = &of_thread();
  return *current_pool;
}

PoolScope::PoolScope(Pool& pool)
    : pool_(pool), claimed_(pool.core_->claim(&token)), before_(std::exchange(current_pool, &pool)) {}

PoolScope::~PoolScope() {
  current_pool = before_;
  if (claimed_) pool_.core_->disclaim();
}

}  // namespace qkv
