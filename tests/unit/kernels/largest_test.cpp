// Selection of the largest of a row against a sort, and log-probabilities against log_softmax, on every kernel target.
#include "qkv/kernels/largest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "qkv/kernels/softmax.h"
#include "qkv/kernels/target.h"
#include "qkv/tensor/tensor.h"

namespace qkv::kernels {
namespace {

class Largest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { force_target(GetParam()); }
  void TearDown() override { force_target(""); }
};

std::vector<std::pair<float, int32_t>> sorted(const std::vector<float>& x, int64_t k) {
  std::vector<std::pair<float, int32_t>> all;
  for (size_t i = 0; i < x.size(); ++i)
    if (!std::isnan(x[i])) all.emplace_back(x[i], static_cast<int32_t>(i));
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  if (std::ssize(all) > k) all.resize(static_cast<size_t>(k));
  return all;
}

std::vector<std::pair<float, int32_t>> selected(const std::vector<float>& x, int64_t k) {
  std::vector<Scored> out(static_cast<size_t>(k));
  out.resize(static_cast<size_t>(largest(x.data(), std::ssize(x), k, out.data())));
  std::vector<std::pair<float, int32_t>> pairs;
  for (const Scored& s : out) pairs.emplace_back(s.value, s.id);
  return pairs;
}

TEST_P(Largest, AreThoseThatASortPutsFirst) {
  for (const int64_t n : {1, 2, 7, 31, 64, 255, 256, 257, 1000, 3001}) {
    const Tensor random = normal({n}, Rng(3).at(static_cast<uint64_t>(n)));
    std::vector<float> plain(random.data().begin(), random.data().end()), rising = plain, ties = plain, holes = plain;
    std::sort(rising.begin(), rising.end());
    for (float& v : ties) v = std::round(v);
    for (size_t i = 0; i < holes.size(); ++i) {
      if (i % 3 == 0) holes[i] = std::numeric_limits<float>::quiet_NaN();
      if (i % 3 == 1) holes[i] = -std::numeric_limits<float>::infinity();
    }
    for (const int64_t k : {1, 2, 3, 8, 9, 12, 16, 17, 32, 33, 100, 4000})
      for (const auto* x : {&plain, &rising, &ties, &holes})
        ASSERT_EQ(selected(*x, k), sorted(*x, k)) << "k " << k << " of " << n;
  }
}

// Hard cases for the blocks of a long row: the largest all in one lane, in one block, at the very end, or all equal.
TEST_P(Largest, AreFoundWhereverTheyAre) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
  const int64_t n = 2061;
  const Tensor random = normal({n}, Rng(7));
  const auto with = [&](auto&& change) {
    std::vector<float> x(random.data().begin(), random.data().end());
    for (int64_t i = 0; i < n; ++i) change(x[static_cast<size_t>(i)], i);
    return x;
  };
  const std::vector<std::vector<float>> rows = {
      with([](float& v, int64_t i) { v += i % 64 == 3 ? 50.f : 0.f; }),
      with([](float& v, int64_t i) { v = i % 32 == 5 ? static_cast<float>(i) : v; }),
      with([](float& v, int64_t i) { v += i / 64 == 7 ? 50.f : 0.f; }),
      with([](float& v, int64_t i) { v += i >= n - 13 ? 50.f : 0.f; }),
      with([](float& v, int64_t) { v = 2.5f; }),
      with([](float& v, int64_t i) { v = i % 2 ? 0.f : -0.f; }),
      with([](float& v, int64_t i) { v = i % 100 == 7 ? v : kNaN; }),
      with([](float& v, int64_t i) { v = i % 100 == 7 ? v : -kInfinity; }),
      with([](float& v, int64_t i) { v = i < 5   ? v
                                         : i < 7 ? kNaN
                                                 : -kInfinity; }),
      with([](float& v, int64_t i) { v = i % 300 == 9 ? kInfinity
                                         : i % 8 == 2 ? kNaN
                                                      : v; }),
      with([](float& v, int64_t) { v = std::numeric_limits<float>::lowest(); }),
  };
  for (size_t r = 0; r < rows.size(); ++r)
    for (const int64_t k : {1, 4, 8, 11, 16, 24, 32, 40})
      ASSERT_EQ(selected(rows[r], k), sorted(rows[r], k)) << "row " << r << ", k " << k;
}

TEST_P(Largest, OfNothingAreNone) {
  EXPECT_TRUE(selected({}, 3).empty());
  EXPECT_TRUE(selected({1, 2}, 0).empty());
  EXPECT_TRUE(selected(std::vector<float>(500, std::numeric_limits<float>::quiet_NaN()), 3).empty());
}

TEST_P(Largest, WithTheLogSumTheyGiveTheBitsOfLogSoftmax) {
  for (const int64_t n : {1, 5, 64, 1003}) {
    const Tensor x = normal({n}, Rng(4).at(static_cast<uint64_t>(n)), 0, 3);
    std::vector<float> whole(static_cast<size_t>(n));
    log_softmax(x.ptr(), whole.data(), 1, n);
    Scored best[5];
    const int64_t count = largest(x.ptr(), n, 5, best);
    const float log_sum = log_sum_exp(x.ptr(), best[0].value, n);
    EXPECT_EQ(log_sum_exp(x.ptr(), best[0].value, n, whole.data()), log_sum);
    for (int64_t i = 0; i < count; ++i)
      EXPECT_EQ((best[i].value - best[0].value) - log_sum, whole[static_cast<size_t>(best[i].id)]);
  }
}

TEST_P(Largest, HaveALogSumThatIsNotANumberWhereAnElementIsNone) {
  for (const uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7fc00001u, 0x7fc001ffu, 0xffffffffu})
    for (const int64_t at : {0, 5, 40, 66}) {
      std::vector<float> x(67, 0.5f);
      EXPECT_FLOAT_EQ(log_sum_exp(x.data(), 0.5f, 67), std::log(67.f));
      x[static_cast<size_t>(at)] = std::bit_cast<float>(bits);
      EXPECT_TRUE(std::isnan(log_sum_exp(x.data(), 0.5f, 67))) << std::hex << bits << " at " << std::dec << at;
      x[static_cast<size_t>(at)] = -std::numeric_limits<float>::infinity();
      EXPECT_FLOAT_EQ(log_sum_exp(x.data(), 0.5f, 67), std::log(66.f));
    }
}

INSTANTIATE_TEST_SUITE_P(Targets, Largest, testing::ValuesIn(available_targets()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace qkv::kernels
