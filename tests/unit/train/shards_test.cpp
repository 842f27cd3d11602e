// The cut of a batch into shards, and the sum over them.
#include "qkv/train/shards.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace qkv {
namespace {

TEST(ShardPlan, CutsABatchOfASmallModelIntoUpToEightShardsOf32RowsAndMore) {
  const ShardPolicy small = ShardPolicy::automatic(999'999);
  const auto cut = [&](int64_t rows) { return std::pair{small.plan(rows).count(), small.plan(rows).size}; };
  EXPECT_EQ(cut(1), std::pair(1l, 32l));
  EXPECT_EQ(cut(32), std::pair(1l, 32l));
  EXPECT_EQ(cut(64), std::pair(2l, 32l));
  EXPECT_EQ(cut(100), std::pair(4l, 32l));
  EXPECT_EQ(cut(256), std::pair(8l, 32l));
  EXPECT_EQ(cut(257), std::pair(6l, 48l));
  EXPECT_EQ(cut(1000), std::pair(8l, 128l));
  EXPECT_EQ(small.plan(0).count(), 0);
  EXPECT_EQ(ShardPolicy::automatic(1'000'000).plan(1000).count(), 1) << "a large model shares its ops between threads, not its rows";
}

TEST(ShardPlan, CoversEveryRowOnce) {
  for (const ShardPolicy& policy : {ShardPolicy::automatic(1), ShardPolicy::number(1), ShardPolicy::number(3), ShardPolicy::number(8)})
    for (const int64_t rows : {0, 1, 2, 3, 7, 8, 9, 31, 32, 33, 100, 129, 1000}) {
      const ShardPlan plan = policy.plan(rows);
      int64_t next = 0;
      for (int64_t s = 0; s < plan.count(); ++s) {
        EXPECT_EQ(plan.begin(s), next);
        EXPECT_GT(plan.end(s), plan.begin(s));
        next = plan.end(s);
      }
      EXPECT_EQ(next, rows);
      EXPECT_LE(plan.count(), policy.most);
    }
  EXPECT_EQ(ShardPolicy::number(8).plan(64).count(), 8);
  EXPECT_EQ(ShardPolicy::number(8).plan(5).count(), 5) << "no shard is empty";
}

}  // namespace
}  // namespace qkv
