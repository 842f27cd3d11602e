// Recycled buffers: after warm-up a training step allocates no memory from the system.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "qkv/core/api.h"

namespace QKV_API qkv {

class Pool;
struct PoolCore;

/// A reference-counted block of bytes, 64-byte aligned; it returns to its pool with the last Buffer that holds it.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer& other) : block_(other.block_) { retain(); }
  Buffer(Buffer&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Buffer& operator=(Buffer other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Buffer() { release(); }

  /// Takes a block of at least that many bytes from the thread's current pool; the contents are arbitrary.
  static Buffer take(size_t bytes);
  /// A block without memory of its own, which keeps `owner` alive: for memory that something else manages, such as a
  /// mapped file.
  static Buffer holding(std::shared_ptr<const void> owner);

  std::byte* data() const { return block_ ? reinterpret_cast<std::byte*>(block_) + kHeader : nullptr; }
  explicit operator bool() const { return block_ != nullptr; }
  bool unique() const { return block_ && block_->owners.load(std::memory_order_acquire) == 1; }
  bool operator==(const Buffer& other) const { return block_ == other.block_; }

 private:
  friend struct PoolCore;
  static constexpr size_t kHeader = 64;
  struct Block {
    std::atomic<int32_t> owners;
    uint32_t size_class;
    PoolCore* home;  // null: the block holds an owner
    Block* next;     // while it waits in the pool
  };
  void retain() const {
    if (block_) block_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  void release() {
    // A sole owner needs no atomic subtraction: nobody else could add a reference.
    if (block_ && (block_->owners.load(std::memory_order_acquire) == 1 ||
                   block_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1))
      give_back();
    block_ = nullptr;
  }
  void give_back();
  Block* block_ = nullptr;
};

/// Keeps freed blocks by size class. A pool belongs to one thread at a time, which takes and gives back without locks;
/// blocks given back by other threads are set aside until needed. Each shard of the batch has its own pool, so what a
/// step finds there does not depend on threads.
class Pool {
 public:
  Pool();
  ~Pool();  // blocks still held elsewhere stay valid
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Number of blocks allocated from the system so far, and the bytes of its blocks, in use or not.
  int64_t misses() const;
  int64_t bytes() const;
  /// Gives all waiting blocks back to the system.
  void trim();

  /// The thread's own pool, and its current pool: that of the innermost PoolScope, or else its own.
  static Pool& of_thread();
  static Pool& current();

 private:
  friend class Buffer;
  friend class PoolScope;
  friend struct ThreadPool;
  PoolCore* core_;
};

/// While it is alive, the pool is the thread's current one and the thread owns it. Scopes nest, even with the same
/// pool; another thread's pool is refused. Blocks that outlive the scope may be given back by any thread.
class PoolScope {
 public:
  explicit PoolScope(Pool& pool);
  ~PoolScope();
  PoolScope(const PoolScope&) = delete;
  PoolScope& operator=(const PoolScope&) = delete;

 private:
  Pool& pool_;
  bool claimed_;  // by this scope, not by one around it
  Pool* before_;
};

}  // namespace qkv
