// The pool: blocks come back to their owner, even from other threads, and outlive pools and threads. Under the tsan
// preset these tests also prove that an owner needs no lock.
#include "qkv/tensor/pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "qkv/core/check.h"
#include "qkv/tensor/tensor.h"
#include "support/files.h"

namespace qkv {
namespace {

using qkv_test::error_of;

void on_another_thread(auto&& call) { std::thread(call).join(); }

void fill(const Buffer& buffer, size_t bytes, int value) { std::memset(buffer.data(), value, bytes); }

// Hands buffers from one thread to another without ordering anything else between them.
struct Mailbox {
  std::atomic<Buffer*> slot{nullptr};
  void put(Buffer buffer) {
    auto* letter = new Buffer(std::move(buffer));
    for (Buffer* none = nullptr; !slot.compare_exchange_weak(none, letter, std::memory_order_release); none = nullptr)
      std::this_thread::yield();
  }
  Buffer get() {
    Buffer* letter;
    while (!(letter = slot.exchange(nullptr, std::memory_order_acquire))) std::this_thread::yield();
    Buffer out = std::move(*letter);
    delete letter;
    return out;
  }
};

}  // namespace

TEST(Pool, ABlockComesBackAndIsTakenAgain) {
  Pool pool;
  PoolScope scope(pool);
  for (size_t bytes :
       {size_t{1}, size_t{64}, size_t{65}, size_t{80}, size_t{128}, size_t{129}, size_t{1000}, size_t{1} << 20}) {
    const std::byte* first;
    {
      const Buffer a = Buffer::take(bytes), b = Buffer::take(bytes);
      EXPECT_NE(a.data(), b.data());
      EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data()) % 64, 0u);
      fill(a, bytes, 1);  // under the debug preset this checks that there is room for all of it
      fill(b, bytes, 2);
      first = a.data();
    }
    const int64_t misses = pool.misses();
    const Buffer c = Buffer::take(bytes);
    EXPECT_EQ(c.data(), first) << bytes;
    EXPECT_EQ(pool.misses(), misses);
  }
  pool.trim();
  EXPECT_EQ(pool.bytes(), 0);
}

TEST(Pool, WhatCannotBeHadIsRefusedAndLeavesThePoolWhole) {
  std::optional<Pool> pool(std::in_place);
  {
    PoolScope scope(*pool);
    EXPECT_EQ(error_of([] { Buffer::take(size_t{1} << 60); }),
              "[buffer] 1152921504606846976 bytes are more than any machine has");
    EXPECT_EQ(error_of([] { Buffer::take(SIZE_MAX); }),
              "[buffer] 18446744073709551615 bytes are more than any machine has");
    const Buffer fine = Buffer::take(8);
  }
  pool.reset();  // the debug preset checks that nothing leaks although two requests failed
}

TEST(Pool, ScopesNestAndAPoolInsideItselfStaysOwned) {
  Pool a, b;
  PoolScope outer(a);
  EXPECT_EQ(&Pool::current(), &a);
  {
    PoolScope inner(b);
    EXPECT_EQ(&Pool::current(), &b);
    PoolScope again(a);
    EXPECT_EQ(&Pool::current(), &a);
  }
  EXPECT_EQ(&Pool::current(), &a);
  { const Buffer one = Buffer::take(100); }
  const int64_t misses = a.misses();
  for (int i = 0; i < 10; ++i) const Buffer same = Buffer::take(100);
  EXPECT_EQ(a.misses(), misses);
  on_another_thread([&] {
    EXPECT_EQ(error_of([&] { PoolScope theirs(a); }),
              "[pool] another thread is using this pool: only one may at a time");
  });
  EXPECT_EQ(&Pool::current(), &a);
}

TEST(Pool, BlocksThatOtherThreadsGiveBackAreUsedAgain) {
  Pool pool;
  PoolScope scope(pool);
  for (int round = 0; round < 100; ++round) {
    Buffer here = Buffer::take(4096);
    fill(here, 4096, round);
    on_another_thread([theirs = std::move(here)]() mutable { theirs = Buffer(); });
  }
  EXPECT_EQ(pool.misses(), 1);
}

TEST(Pool, BlocksGoBackWhileTheOwnerTakesAndGives) {
  Mailbox mail;
  constexpr int kRounds = 2000;
  std::thread other([&] {
    for (int i = 0; i < kRounds; ++i) {
      const Buffer letter = mail.get();
      EXPECT_EQ(letter.data()[0], static_cast<std::byte>(i));
    }
  });
  Pool pool;
  PoolScope scope(pool);
  for (int i = 0; i < kRounds; ++i) {
    Buffer letter = Buffer::take(256);
    fill(letter, 256, i);
    mail.put(std::move(letter));
    const Buffer own = Buffer::take(256);
    fill(own, 256, -1);
  }
  other.join();
  EXPECT_LE(pool.misses(), 8);
}

// A previous owner of the pool gives back what it still holds while the next one works: it must not touch its lists.
TEST(Pool, AThreadThatLeftThePoolIsNotItsOwnerAnyMore) {
  Pool pool;
  std::atomic<int> stage{0};
  std::thread before([&] {
    std::vector<Buffer> kept;
    {
      PoolScope scope(pool);
      for (int i = 0; i < 1000; ++i) kept.push_back(Buffer::take(256));
    }
    stage.store(1, std::memory_order_relaxed);  // orders nothing: the scopes themselves must hand the pool over
    while (stage.load(std::memory_order_relaxed) < 2) std::this_thread::yield();
    while (!kept.empty()) kept.pop_back();
  });
  while (stage.load(std::memory_order_relaxed) < 1) std::this_thread::yield();
  {
    PoolScope scope(pool);
    stage.store(2, std::memory_order_relaxed);
    std::vector<Buffer> mine;
    for (int i = 0; i < 1000; ++i) {
      mine.push_back(Buffer::take(256));
      fill(mine.back(), 256, i);
      if (i % 3 == 0) mine.pop_back();
    }
    before.join();
    for (size_t i = 0; i < mine.size(); ++i)
      for (size_t k = i + 1; k < mine.size(); ++k) ASSERT_NE(mine[i].data(), mine[k].data());
  }
}

TEST(Pool, BlocksOutliveTheirPool) {
  Buffer kept, late;
  {
    Pool pool;
    PoolScope scope(pool);
    kept = Buffer::take(1000);
    late = Buffer::take(3000);
  }
  fill(kept, 1000, 7);
  fill(late, 3000, 8);
  kept = Buffer();
  on_another_thread([theirs = std::move(late)]() mutable { theirs = Buffer(); });
}

TEST(Pool, APoolMayGoWhileOtherThreadsGiveItsBlocksBack) {
  for (int round = 0; round < 200; ++round) {
    std::vector<Buffer> first, second;
    auto pool = std::make_unique<Pool>();
    {
      PoolScope scope(*pool);
      for (int i = 0; i < 20; ++i) {
        first.push_back(Buffer::take(128));
        second.push_back(Buffer::take(128));
      }
    }
    std::thread a([&] { first.clear(); }), b([&] { second.clear(); });
    pool.reset();
    a.join();
    b.join();
  }
}

TEST(Pool, TensorsOutliveTheThreadThatMadeThem) {
  std::vector<Tensor> made;
  for (int i = 0; i < 20; ++i) {
    on_another_thread([&] {
      made.push_back(full({100}, static_cast<float>(i)));
      if (i % 2) made.erase(made.begin());  // made by a thread that is gone
    });
  }
  EXPECT_EQ(made.back().data()[99], 19);
  made.clear();
}

namespace {
// Constructed before the thread's pool, so destroyed after it: it gives back and takes buffers when the pool is gone.
struct Late {
  Tensor tensor;
  float* sum = nullptr;
  ~Late() {
    if (!sum) return;
    const Tensor more = full({50}, 2), again = full({50}, 3);
    *sum = tensor.data()[0] + more.data()[49] + again.data()[0];
  }
};
}  // namespace

TEST(Pool, ObjectsDestroyedAfterTheThreadsPoolStillWork) {
  float sum = 0;
  on_another_thread([&] {
    thread_local Late late;
    late.sum = &sum;
    late.tensor = full({10}, 1);
  });
  EXPECT_EQ(sum, 6);
}

TEST(Pool, StaticTensorsAreDestroyedAfterThePoolOfTheMainThread) {
  const pid_t child = ::fork();
  if (child == 0) {
    static Late late;
    static float sum = 0;
    late.sum = &sum;
    late.tensor = full({10}, 1);
    std::exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace qkv
