// Regions: every block runs once, blocks see the caller's writes and the caller sees theirs, errors reach the caller.
// Under the tsan preset these tests also prove that core/parallel.cpp orders what it should.
#include "qkv/core/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "qkv/core/check.h"
#include "support/threads.h"

using namespace qkv;

namespace {
constexpr double kPlenty = 1e9;  // nanoseconds: always worth a region
}  // namespace

TEST(Parallel, RunsEveryBlockOnceAtAnyThreadCount) {
  for (int count : {1, 2, 8, 70}) {
    qkv_test::ThreadsScope scope(count);
    std::vector<int> calls(1000, 0);
    parallel_for(1000, kPlenty, [&](int64_t b) { ++calls[static_cast<size_t>(b)]; });
    EXPECT_EQ(calls, std::vector<int>(1000, 1)) << count << " threads";
  }
}

TEST(Parallel, BlocksSeeTheCallersWritesAndTheCallerSeesTheirs) {
  qkv_test::ThreadsScope scope(8);
  std::vector<int64_t> values(64, 0);
  for (int round = 0; round < 200; ++round) {
    std::vector<int64_t> input(64, round);  // written by the caller, read by the blocks
    parallel_for(64, kPlenty, [&](int64_t b) { values[static_cast<size_t>(b)] += input[static_cast<size_t>(b)]; });
  }
  for (int64_t value : values) EXPECT_EQ(value, 199 * 200 / 2);
}

TEST(Parallel, UsesMoreThanOneThread) {
  qkv_test::ThreadsScope scope(2);
  std::atomic<int> waiting{0};
  // Both blocks must be running at once, or this never ends.
  parallel_for(2, kPlenty, [&](int64_t) {
    ++waiting;
    while (waiting < 2) std::this_thread::yield();
  });
  EXPECT_EQ(waiting, 2);
}

TEST(Parallel, AHeldUpThreadsBlocksAreTakenByTheOthers) {
  qkv_test::ThreadsScope scope(2);
  std::atomic<int> done{0};
  bool all = false;
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  parallel_for(8, kPlenty, [&](int64_t b) {
    if (b > 0) {
      ++done;
      return;
    }
    while (done < 7 && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    all = done == 7;
  });
  EXPECT_TRUE(all) << "only " << done << " of the 7 other blocks ran while the first one waited";
}

TEST(Parallel, RangesCoverTheWholeWithAShortLastOne) {
  qkv_test::ThreadsScope scope(4);
  std::vector<int> seen(103, 0);
  parallel_ranges(103, 10, kPlenty, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(begin % 10, 0);
    for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
  });
  EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), 0), 103);
  parallel_ranges(0, 10, kPlenty, [](int64_t, int64_t) { FAIL() << "there is nothing to do"; });
}

TEST(Parallel, BringsAnErrorOfABlockToTheCaller) {
  qkv_test::ThreadsScope scope(4);
  try {
    parallel_for(100, kPlenty, [](int64_t b) { check(b != 57, "[block] number ", b); });
    FAIL() << "no error arrived";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[block] number 57");
  }
}

TEST(Parallel, ARegionInsideABlockOrASerialScopeStaysOnItsThread) {
  qkv_test::ThreadsScope scope(4);
  parallel_for(8, kPlenty, [](int64_t) {
    const auto outer = std::this_thread::get_id();
    parallel_for(8, kPlenty, [&](int64_t) { EXPECT_EQ(std::this_thread::get_id(), outer); });
  });
  SerialScope serial;
  const auto here = std::this_thread::get_id();
  parallel_for(8, kPlenty, [&](int64_t) { EXPECT_EQ(std::this_thread::get_id(), here); });
}

TEST(Parallel, RefusesThreadCountsThatMakeNoSense) {
  EXPECT_THROW(set_threads(0), Error);
  EXPECT_THROW(set_threads(-1), Error);
  EXPECT_THROW(set_threads(1025), Error);
}
