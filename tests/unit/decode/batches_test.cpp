// Batches decoded at the same time: each once, the last first, by as many models as were allowed.
#include "qkv/decode/batches.h"

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <vector>

#include "qkv/core/check.h"

namespace qkv {
namespace {

struct Numbered {
  int number;
};

class DecodeBatches : public testing::Test {
 protected:
  void TearDown() override { set_threads(before_); }
  const int before_ = threads();
};

TEST_F(DecodeBatches, EveryBatchIsDecodedOnceByOneModel) {
  for (const int count : {1, 2, 8})
    for (const int64_t batches : {0, 1, 2, 3, 40})
      for (const int64_t at_once : {0, 1, 3, 100}) {
        set_threads(count);
        std::mutex mutex;
        int made = 0;
        std::vector<int> times(static_cast<size_t>(batches));
        decode_batches(
            batches, at_once,
            [&] {
              const std::lock_guard lock(mutex);
              return std::make_unique<Numbered>(made++);
            },
            [&](Numbered&, int64_t b) {
              const std::lock_guard lock(mutex);
              ++times[static_cast<size_t>(b)];
            });
        EXPECT_EQ(times, std::vector<int>(static_cast<size_t>(batches), 1));
        EXPECT_LE(made, std::max<int64_t>(1, std::min<int64_t>({at_once, count, batches})));
      }
}

TEST_F(DecodeBatches, OneModelBeginsWithTheLast) {
  set_threads(2);
  std::vector<int64_t> order;
  decode_batches(4, 1, [] { return std::make_unique<Numbered>(); }, [&](Numbered&, int64_t b) { order.push_back(b); });
  EXPECT_EQ(order, (std::vector<int64_t>{3, 2, 1, 0}));
}

TEST_F(DecodeBatches, AnErrorReachesTheCaller) {
  set_threads(2);
  const auto work = [](Numbered&, int64_t b) { check(b != 3, "[test] batch ", b); };
  try {
    decode_batches(8, 8, [] { return std::make_unique<Numbered>(); }, work);
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[test] batch 3");
  }
  std::atomic<int> begun = 0;
  EXPECT_THROW(decode_batches(1000, 1, [] { return std::make_unique<Numbered>(); },
                              [&](Numbered&, int64_t b) { ++begun, check(b != 990, "[test]"); }),
               Error);
  EXPECT_EQ(begun, 10);
}

}  // namespace
}  // namespace qkv
