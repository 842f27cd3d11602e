// Selection of the largest of rows against a sort, log-probabilities against log_softmax, and products against their rows, on every kernel
// target.
#include "qkv/kernels/largest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
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
      for (const auto* x : {&plain, &rising, &ties, &holes}) ASSERT_EQ(selected(*x, k), sorted(*x, k)) << "k " << k << " of " << n;
  }
}

// What the blocks of a long row make hard: the wanted all in one lane, all in one block, at the very end, or equal everywhere.
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
      with([](float& v, int64_t i) { v = i < 5 ? v : i < 7 ? kNaN : -kInfinity; }),
      with([](float& v, int64_t i) { v = i % 300 == 9 ? kInfinity : i % 8 == 2 ? kNaN : v; }),
      with([](float& v, int64_t) { v = std::numeric_limits<float>::lowest(); }),
  };
  for (size_t r = 0; r < rows.size(); ++r)
    for (const int64_t k : {1, 4, 8, 11, 16, 24, 32, 40}) ASSERT_EQ(selected(rows[r], k), sorted(rows[r], k)) << "row " << r << ", k " << k;
}

TEST_P(Largest, OfNothingAreNone) {
  EXPECT_TRUE(selected({}, 3).empty());
  EXPECT_TRUE(selected({1, 2}, 0).empty());
  EXPECT_TRUE(selected(std::vector<float>(500, std::numeric_limits<float>::quiet_NaN()), 3).empty());
}

TEST_P(Largest, WithTheLogSumTheyGiveLogSoftmax) {
  for (const int64_t n : {1, 5, 64, 255, 256, 257, 1003, 9999}) {
    for (const float spread : {0.f, 3.f, 40.f}) {
      const Tensor x = normal({n}, Rng(4).at(static_cast<uint64_t>(n)), 0, spread);
      std::vector<float> whole(static_cast<size_t>(n));
      log_softmax(x.ptr(), whole.data(), 1, n);
      Scored best[5];
      const int64_t count = largest(x.ptr(), n, 5, best);
      const LogSum sum = log_sum_exp(x.ptr(), n);
      EXPECT_EQ(sum.most, best[0].value);
      double exact = 0;
      for (const float v : x.data()) exact += std::exp(double{v} - sum.most);
      EXPECT_NEAR(sum.log_sum, std::log(exact), 4e-7 * (1 + std::abs(std::log(exact)))) << n << ", " << spread;
      for (int64_t i = 0; i < count; ++i) {
        const float log_p = whole[static_cast<size_t>(best[i].id)];
        EXPECT_NEAR((best[i].value - sum.most) - sum.log_sum, log_p, 1e-6 * (1 + std::abs(log_p)));
      }
    }
  }
}

TEST_P(Largest, HaveALogSumThatIsNotANumberWhereAnElementIsNone) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const int64_t n : {67, 600})
    for (const uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7fc00001u, 0x7fc001ffu, 0xffffffffu})
      for (const int64_t at : {int64_t{0}, int64_t{5}, int64_t{40}, n - 1}) {
        std::vector<float> x(static_cast<size_t>(n), 0.5f);
        const auto log_sum = [&] { return log_sum_exp(x.data(), n).log_sum; };
        EXPECT_FLOAT_EQ(log_sum(), std::log(static_cast<float>(n)));
        x[static_cast<size_t>(at)] = std::bit_cast<float>(bits);
        EXPECT_TRUE(std::isnan(log_sum())) << std::hex << bits << " at " << std::dec << at;
        x[static_cast<size_t>(at)] = -kInfinity;
        EXPECT_FLOAT_EQ(log_sum(), std::log(static_cast<float>(n - 1)));
        x[static_cast<size_t>(at)] = kInfinity;
        EXPECT_TRUE(std::isnan(log_sum()));
        std::fill(x.begin(), x.end(), -kInfinity);
        EXPECT_EQ(log_sum(), -kInfinity);
        x[static_cast<size_t>(at)] = std::bit_cast<float>(bits);
        EXPECT_TRUE(std::isnan(log_sum())) << "among impossible ones";
      }
  EXPECT_EQ(log_sum_exp(nullptr, 0).log_sum, -kInfinity);
}

// What both selections say of rows, row by row.
void expect_rows(const LargestOfRows& found, int64_t first, const std::vector<float>& x, int64_t rows, const std::string& what) {
  const int64_t n = std::ssize(x) / rows;
  for (int64_t r = 0; r < rows; ++r) {
    const std::vector<float> row(x.begin() + r * n, x.begin() + (r + 1) * n);
    auto wanted = sorted(row, found.k);
    std::erase_if(wanted, [](const auto& pair) { return pair.first == -std::numeric_limits<float>::infinity(); });
    const auto at = static_cast<size_t>(first + r);
    std::vector<std::pair<float, int32_t>> pairs;
    for (int64_t i = 0; i < found.counts[at]; ++i) {
      const Scored& s = found.scored[at * static_cast<size_t>(found.k) + static_cast<size_t>(i)];
      pairs.emplace_back(s.value, s.id);
    }
    ASSERT_EQ(pairs, wanted) << what << ", row " << r << " of " << rows << ", n " << n << ", k " << found.k;
    const LogSum sum = log_sum_exp(row.data(), n);
    EXPECT_EQ(found.sums[at].most, sum.most) << what;
    EXPECT_EQ(std::bit_cast<uint32_t>(found.sums[at].log_sum), std::bit_cast<uint32_t>(sum.log_sum)) << what;
  }
}

TEST_P(Largest, OfRowsAreThoseOfEachRow) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const int64_t n : {1, 7, 255, 256, 257, 300, 1000, 2049}) {
    const Tensor random = normal({3, n}, Rng(8).at(static_cast<uint64_t>(n)), 0, 4);
    std::vector<float> plain(random.data().begin(), random.data().end()), rising = plain, ties = plain, late = plain, few = plain;
    std::sort(rising.begin(), rising.end());
    for (float& v : ties) v = std::round(v);
    for (size_t i = 0; i < late.size(); ++i) late[i] = static_cast<int64_t>(i) % n < 256 ? -kInfinity : late[i];  // nothing in the first stretch
    for (size_t i = 0; i < few.size(); ++i) few[i] = i % 97 == 3 ? few[i] : -kInfinity;
    for (const int64_t k : {1, 2, 12, 16, 17, 32, 33, 100, 5000})
      for (const auto* x : {&plain, &rising, &ties, &late, &few}) {
        LargestOfRows found(5, k);
        largest_of_rows(x->data(), 3, n, found, 1);
        expect_rows(found, 1, *x, 3, "rows");
      }
  }
}

TEST_P(Largest, OfAProductAreThoseOfItsRows) {
  for (const auto [rows, n, depth] : {std::array<int64_t, 3>{1, 1, 1}, {1, 600, 24}, {5, 255, 9}, {7, 257, 32}, {96, 1040, 24}, {13, 513, 400}}) {
    const Tensor a = normal({rows, depth}, Rng(1).at(static_cast<uint64_t>(n))), b = normal({n, depth}, Rng(2)), bias = normal({n}, Rng(3));
    std::vector<float> panels(static_cast<size_t>(packed_floats(n, depth)) + 16);
    float* aligned = panels.data() + (64 - reinterpret_cast<uintptr_t>(panels.data()) % 64) % 64 / sizeof(float);
    pack_right(Transpose::yes, n, depth, b.ptr(), depth, aligned);
    std::vector<float> c(static_cast<size_t>(rows * n));
    GemmCall call{Transpose::no, Transpose::yes, rows, n, depth, 1, a.ptr(), depth, b.ptr(), depth, 0, c.data(), n};
    for (const bool packed : {false, true})
      for (const bool with_bias : {false, true}) {
        call.panels = packed ? aligned : nullptr;
        call.bias = with_bias ? bias.ptr() : nullptr;
        call.C = c.data();
        gemm(call);
        call.C = nullptr;
        LargestOfRows found(rows, 12);
        largest_of_product(call, found, 0);
        expect_rows(found, 0, c, rows, packed ? "packed" : "as it lies");
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Largest, testing::ValuesIn(available_targets()), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace qkv::kernels
