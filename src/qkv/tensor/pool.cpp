// Size classes, four to a power of two, each a locked stack of blocks.
#include "qkv/tensor/pool.h"

#include <bit>
#include <cstdlib>
#include <new>

#include "qkv/core/check.h"

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
  SpinLock lock;
  Block* waiting[kClasses] = {};
  int64_t misses = 0, bytes = 0, outside = 0;
  bool closed = false;

  Block* take(size_t bytes_wanted) {
    const uint32_t c = class_of(bytes_wanted);
    check(c < kClasses, "[buffer] ", bytes_wanted, " bytes are more than any machine has");
    lock.lock();
    ++outside;
    Block* block = waiting[c];
    if (block) {
      waiting[c] = block->next;
      lock.unlock();
      block->owners.store(1, std::memory_order_relaxed);
      return block;
    }
    ++misses;
    bytes += static_cast<int64_t>(class_bytes(c));
    lock.unlock();
    void* memory = std::aligned_alloc(64, Buffer::kHeader + (class_bytes(c) + 63) / 64 * 64);
    if (!memory) fail("[buffer] the system has no ", bytes_wanted, " bytes left");
    block = new (memory) Block{};
    block->owners.store(1, std::memory_order_relaxed);
    block->size_class = c;
    block->home = this;
    return block;
  }

  void give(Block* block) {
    lock.lock();
    block->next = waiting[block->size_class];
    waiting[block->size_class] = block;
    const bool last = --outside == 0 && closed;
    lock.unlock();
    if (last) destroy();
  }

  void trim() {
    lock.lock();
    for (uint32_t c = 0; c < kClasses; ++c)
      while (Block* block = waiting[c]) {
        waiting[c] = block->next;
        bytes -= static_cast<int64_t>(class_bytes(c));
        std::free(block);
      }
    lock.unlock();
  }

  void destroy() {
    trim();
    delete this;
  }
};

namespace {
thread_local Pool* current_pool = nullptr;
}

Buffer Buffer::take(size_t bytes) {
  Buffer buffer;
  buffer.block_ = Pool::current().core_->take(bytes);
  return buffer;
}

void Buffer::give_back() { block_->home->give(block_); }

Pool::Pool() : core_(new PoolCore) {}

Pool::~Pool() {
  core_->lock.lock();
  core_->closed = true;
  const bool last = core_->outside == 0;
  core_->lock.unlock();
  if (last) core_->destroy();
}

int64_t Pool::misses() const { return core_->misses; }
int64_t Pool::bytes() const { return core_->bytes; }
void Pool::trim() { core_->trim(); }

Pool& Pool::process() {
  static Pool* pool = new Pool;  // never destroyed: tensors may be static
  return *pool;
}

Pool& Pool::current() { return current_pool ? *current_pool : process(); }

PoolScope::PoolScope(Pool& pool) : before_(current_pool) { current_pool = &pool; }
PoolScope::~PoolScope() { current_pool = before_; }

}  // namespace qkv
