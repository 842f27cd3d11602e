// The split of a batch into shards, and the sum over them.
#include "qkv/train/shards.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "qkv/ops/elementwise.h"
#include "qkv/ops/reduce.h"

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
  EXPECT_EQ(ShardPolicy::automatic(1'000'000).plan(1000).count(), 1)
      << "a large model shares its ops between threads, not its rows";
}

TEST(ShardPlan, CoversEveryRowOnce) {
  for (const ShardPolicy& policy :
       {ShardPolicy::automatic(1), ShardPolicy::number(1), ShardPolicy::number(3), ShardPolicy::number(8)})
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

constexpr auto kAdd = [](float a, float b) { return a + b; };

std::vector<float> numbers(int64_t count, uint64_t seed) {
  const Tensor t = normal({count}, Rng(seed));
  return {t.data().begin(), t.data().end()};
}

float tree(const std::vector<float>& x) {
  return tree_sum(
      0, std::ssize(x), [&](int64_t i) { return x[static_cast<size_t>(i)]; }, kAdd);
}

TEST(TreeSum, IsThatOfPairsOfPairs) {
  const std::vector<float> x = numbers(8, 1);
  const float left = (x[0] + x[1]) + (x[2] + x[3]);
  EXPECT_EQ(tree({x[0], x[1], x[2], x[3]}), left);
  EXPECT_EQ(tree({x[0], x[1], x[2], x[3], x[4]}), left + x[4]);
  EXPECT_EQ(tree({x[0], x[1], x[2], x[3], x[4], x[5], x[6]}), left + ((x[4] + x[5]) + x[6]));
  EXPECT_EQ(tree(x), left + ((x[4] + x[5]) + (x[6] + x[7])));
}

TEST(TreeSum, OfUpToThreeIsTheSumOneAfterTheOther) {
  int64_t different = 0;
  for (uint64_t seed = 0; seed < 100; ++seed)
    for (int64_t count = 1; count <= 4; ++count) {
      const std::vector<float> x = numbers(count, seed);
      float serial = x[0];
      for (size_t i = 1; i < x.size(); ++i) serial += x[i];
      if (count <= 3) {
        EXPECT_EQ(tree(x), serial);
      } else {
        different += tree(x) != serial;
      }
    }
  EXPECT_GT(different, 0) << "four are summed in another order";
}

// As several ranks would: each sums its block, then the sums are summed.
TEST(TreeSum, OfAlignedBlocksHasTheSameBitsHoweverTheyAreShared) {
  for (int64_t count = 1; count <= 70; ++count) {
    const std::vector<float> x = numbers(count, static_cast<uint64_t>(count));
    for (int64_t block = 1; block <= 64; block *= 2) {
      std::vector<float> sums;
      for (int64_t begin = 0; begin < count; begin += block) {
        const auto end = std::min(count, begin + block);
        sums.push_back(tree({x.begin() + begin, x.begin() + end}));
      }
      EXPECT_EQ(tree(sums), tree(x)) << count << " in blocks of " << block;
    }
  }
}

TEST(TreeStack, JoinsLeavesThatComeOneByOneByTheSameTree) {
  TreeStack stack;
  for (int64_t count = 1; count <= 70; ++count) {
    const std::vector<float> x = numbers(count, static_cast<uint64_t>(count));
    std::vector<float> nodes(8);
    const auto join = [&](int64_t left) { nodes[static_cast<size_t>(left)] += nodes[static_cast<size_t>(left + 1)]; };
    for (const float leaf : x) {
      ASSERT_LT(stack.height(), std::ssize(nodes)) << "a node per bit of the count";
      nodes[static_cast<size_t>(stack.height())] = leaf;
      stack.push(join);
    }
    stack.finish(join);
    EXPECT_EQ(nodes[0], tree(x)) << count;
    EXPECT_EQ(stack.height(), 0);
  }
}

struct Weights {
  Tensor w = parameter(uniform({5000}, Rng(8)));
  void visit(auto&& f) { f("w", w); }
};

// Shards with known gradients: that of row r is row r of a table.
struct KnownGradients {
  Weights model;
  Parameters all = flatten(model);
  Tensor table = normal({64, 5000}, Rng(7));

  Tensor term(int64_t row) const { return sum(mul(model.w, table.part(row * 5000, {5000}))); }
  auto loss(int64_t first_row) {
    return [this, first_row](int64_t begin, int64_t end, const Run&) -> Loss {
      EXPECT_EQ(end, begin + 1);
      const int64_t row = first_row + begin;
      return {term(row), 1};
    };
  }
  // With one shard per row, in batches of those sizes.
  std::pair<std::vector<float>, double> gradient(const std::vector<int64_t>& batches, int64_t first_row = 0) {
    Shards shards(all, ShardPolicy::number(64));
    shards.begin(std::ssize(batches));
    for (const int64_t rows : batches) {
      shards.add(rows, 1, Run{}, loss(first_row));
      first_row += rows;
    }
    const BatchLoss loss = shards.finish();
    const auto data = shards.gradient().data();
    return {{data.begin(), data.end()}, loss.sum};
  }
};

TEST(Shards, SumGradientsAndLossesByTheTreeOverTheirNumbers) {
  KnownGradients known;
  for (const int64_t count : {1, 2, 3, 4, 5, 7, 8, 13, 64}) {
    const auto [gradient, loss] = known.gradient({count});
    for (int64_t i = 0; i < 5000; ++i)
      ASSERT_EQ(gradient[static_cast<size_t>(i)],
                tree_sum(
                    0, count, [&](int64_t s) { return known.table.ptr()[s * 5000 + i]; }, kAdd))
          << count;
    EXPECT_EQ(loss, tree_sum(
                        0, count, [&](int64_t s) { return static_cast<double>(known.term(s).item()); },
                        [](double a, double b) { return a + b; }));
  }
}

TEST(Shards, OneTwoFourOrEightRanksWithNeighbouringShardsGiveTheSameBits) {
  KnownGradients known;
  const auto whole = known.gradient({8});
  for (const int64_t ranks : {1, 2, 4, 8}) {
    std::vector<std::pair<std::vector<float>, double>> parts;
    for (int64_t rank = 0; rank < ranks; ++rank) parts.push_back(known.gradient({8 / ranks}, rank * 8 / ranks));
    const auto joined = tree_sum(
        0, ranks, [&](int64_t r) { return parts[static_cast<size_t>(r)]; },
        [](auto a, const auto& b) {
          for (size_t i = 0; i < a.first.size(); ++i) a.first[i] += b.first[i];
          a.second += b.second;
          return a;
        });
    EXPECT_EQ(joined, whole) << ranks << " ranks";
  }
}

TEST(Shards, BatchesOfAnUpdateAreSummedByTheSameTree) {
  KnownGradients known;
  EXPECT_EQ(known.gradient({1, 1, 1, 1, 1, 1, 1}), known.gradient({7}))
      << "batches of one shard are the shards of one batch";
  EXPECT_EQ(known.gradient({2, 2, 2}), known.gradient({6}));
  EXPECT_EQ(known.gradient({4, 4}), known.gradient({8}));
  const auto a = known.gradient({3}).first, b = known.gradient({5}, 3).first, c = known.gradient({2}, 8).first;
  const auto mixed = known.gradient({3, 5, 2}).first;
  for (size_t i = 0; i < mixed.size(); ++i)
    ASSERT_EQ(mixed[i], (a[i] + b[i]) + c[i]) << "a batch is a leaf, however many shards it has";
}

}  // namespace
}  // namespace qkv
