// The collective calls of ranks, here threads.
#include "qkv/ranks/ranks.h"

#include <gtest/gtest.h>

#include <numeric>

#include "unit/ranks/thread_ranks.h"

namespace qkv {
namespace {

TEST(Ranks, GatherTextsOfAnyLengthInTheOrderOfRanks) {
  for (const int size : {1, 2, 3, 5})
    for (const size_t length : {size_t{0}, size_t{1}, size_t{503}, size_t{504}, size_t{505}, size_t{3'000'000}})
      tests::on_ranks(size, [&](Ranks& ranks) {
        const auto own = [&](int r) { return std::string(length, static_cast<char>('a' + r)); };
        const std::vector<std::string> all = ranks.gather(own(ranks.rank()));
        ASSERT_EQ(std::ssize(all), size);
        for (int r = 0; r < size; ++r) EXPECT_EQ(all[static_cast<size_t>(r)], own(r));
        EXPECT_EQ(ranks.host(size - 1), "thread" + std::to_string(size - 1));
      });
}

TEST(Ranks, BroadcastWhatRankZeroHas) {
  tests::on_ranks(3, [&](Ranks& ranks) {
    std::vector<int32_t> numbers(700'000);
    if (ranks.rank() == 0) std::iota(numbers.begin(), numbers.end(), 7);
    ranks.broadcast(std::as_writable_bytes(std::span(numbers)));
    EXPECT_EQ(numbers.front(), 7);
    EXPECT_EQ(numbers.back(), 700'006);
    EXPECT_EQ(ranks.broadcast(ranks.rank() == 0 ? std::string("zero") : std::string("other")), "zero");
  });
}

TEST(Ranks, SharedRowsAndTextsAreThoseOfOneProcess) {
  const auto row = [](int64_t i, double* out) {
    out[0] = 1.0 / static_cast<double>(i + 1);
    out[1] = static_cast<double>(i);
  };
  const auto words = [](int64_t begin, int64_t end) {
    std::vector<std::string> out;
    for (int64_t i = begin; i < end; ++i)
      out.push_back(std::string(static_cast<size_t>(i % 3), 'x') + std::to_string(i));
    return out;
  };
  for (const int64_t items : {0, 1, 2, 7, 100})
    for (const int size : {1, 2, 4})
      tests::on_ranks(size, [&](Ranks& ranks) {
        EXPECT_EQ(shared_rows(&ranks, items, 2, row), shared_rows(nullptr, items, 2, row));
        EXPECT_EQ(shared_texts(&ranks, items, words), words(0, items));
      });
}

TEST(Ranks, LearnOfAFailureAndItsLowestRankReportsIt) {
  std::vector<std::string> met(4);
  std::vector<int> says(4, -1);
  tests::on_ranks(4, [&](Ranks& ranks) {
    const auto r = static_cast<size_t>(ranks.rank());
    try {
      if (r == 1 || r == 3) throw Error(verbatim("the disk is full"));
      ranks.gather("fine");
      met[r] = "nothing";
    } catch (const RankFailed& e) {
      met[r] = e.what();
    } catch (const Error& e) {
      says[r] = ranks.fail(e.what());
    }
  });
  EXPECT_TRUE(met[0] == "rank 1 on thread1 has failed: the disk is full" ||
              met[0] == "rank 3 on thread3 has failed: the disk is full")
      << met[0] << ", though whichever fails first may be met";
  EXPECT_EQ(met[2].substr(met[2].size() - 16), "the disk is full");
  EXPECT_EQ(says[1], 1);
  EXPECT_EQ(says[3], 0) << "rank 1 has said it";
}

TEST(Ranks, ASilentRankEndsTheWait) {
  std::string reason;
  tests::on_ranks(
      2,
      [&](Ranks& ranks) {
        if (ranks.rank() == 1) return;
        try {
          ranks.gather("x");
        } catch (const Error& e) {
          reason = e.what();
        }
      },
      0.2);
  EXPECT_EQ(reason, "the job is lost");
}

}  // namespace
}  // namespace qkv
