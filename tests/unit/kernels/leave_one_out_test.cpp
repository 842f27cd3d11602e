// Leave-one-out kernel sums against the plain definition, on every target.
#include "qkv/kernels/leave_one_out.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "qkv/core/rng.h"
#include "qkv/kernels/target.h"

namespace qkv::kernels {
namespace {

struct Problem {
  Problem(int64_t rows, int64_t dimension, int64_t outputs)
      : n(rows),
        d(dimension),
        m(outputs),
        x(static_cast<size_t>(d * n)),
        y(static_cast<size_t>(m * n)),
        w(static_cast<size_t>(d)) {
    const Rng rng(9);
    for (size_t i = 0; i < x.size(); ++i) x[i] = 5 * rng.at("x").uniform(i);
    for (size_t i = 0; i < y.size(); ++i) y[i] = rng.at("y").normal(i);
    for (size_t a = 0; a < w.size(); ++a) w[a] = 0.5 + static_cast<double>(a);
  }
  std::vector<double> sums(const std::vector<int64_t>& rows) const {
    const LeaveOneOut data{x.data(), y.data(), n, d, m};
    std::vector<double> out(rows.size() * static_cast<size_t>(data.terms()) + 1, 77);
    leave_one_out_sums(data, w.data(), rows.data(), static_cast<int64_t>(rows.size()), out.data());
    EXPECT_EQ(out.back(), 77) << "wrote beyond the rows";
    out.pop_back();
    return out;
  }
  std::vector<double> all() const {
    std::vector<int64_t> rows(static_cast<size_t>(n));
    std::iota(rows.begin(), rows.end(), 0);
    return sums(rows);
  }

  int64_t n, d, m;
  std::vector<double> x, y, w;
};

/// The sums of one row, from the definition; weights are relative to the largest.
std::vector<double> plain(const Problem& p, int64_t i, double& largest_exponent) {
  std::vector<double> exponent(static_cast<size_t>(p.n));
  largest_exponent = -INFINITY;
  for (int64_t j = 0; j < p.n; ++j) {
    for (int64_t a = 0; a < p.d; ++a) exponent[j] -= 0.5 * std::pow((p.x[a * p.n + j] - p.x[a * p.n + i]) * p.w[a], 2);
    if (j != i) largest_exponent = std::max(largest_exponent, exponent[j]);
  }
  std::vector<double> out;
  for (int64_t c = 0; c <= p.m; ++c)
    for (int64_t a = -1; a < p.d; ++a) {
      double sum = 0;
      for (int64_t j = 0; j < p.n; ++j) {
        if (j == i) continue;
        const double v = c == 0 ? 1 : p.y[(c - 1) * p.n + j],
                     square = a < 0 ? 1 : std::pow(p.x[a * p.n + j] - p.x[a * p.n + i], 2);
        sum += std::exp(exponent[j] - largest_exponent) * v * square;
      }
      out.push_back(sum);
    }
  return out;
}

void expect_plain(const Problem& p, double tolerance) {
  const std::vector<double> got = p.all();
  const size_t terms = got.size() / static_cast<size_t>(p.n);
  for (int64_t i = 0; i < p.n; ++i) {
    double largest = 0;
    const std::vector<double> want = plain(p, i, largest);
    const double scale = want[0] * std::exp(largest) < kFarTotal ? 1 : std::exp(largest);
    for (size_t t = 0; t < terms; ++t)
      ASSERT_NEAR(got[i * terms + t] / scale, want[t], tolerance * (1 + std::abs(want[t])))
          << "n " << p.n << " row " << i << " term " << t;
  }
}

class LeaveOneOutKernel : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { force_target(GetParam()); }
  void TearDown() override { force_target(""); }
};

TEST_P(LeaveOneOutKernel, EqualsThePlainDefinitionAtEveryRemainder) {
  for (const auto& [d, m] : {std::pair<int64_t, int64_t>{1, 1}, {1, 3}, {2, 1}, {3, 2}, {1, 0}})
    for (int64_t n = 2; n <= 19; ++n) expect_plain(Problem(n, d, m), 1e-12);
  expect_plain(Problem(150, 1, 1), 1e-12);
}

TEST_P(LeaveOneOutKernel, RowsFarFromAllOthersAreRelativeToTheirNearest) {
  for (const auto& [d, m] : {std::pair<int64_t, int64_t>{1, 1}, {2, 2}})
    for (const double w : {20.0, 300.0, 5000.0}) {  // some, most and all rows are far
      Problem p(23, d, m);
      std::fill(p.w.begin(), p.w.end(), w);
      expect_plain(p, 1e-8);  // exponents of 1e6 and more carry their own rounding in the plain form
    }
}

TEST_P(LeaveOneOutKernel, EqualPointsWeighOneAtEveryWidthAndTheRowItselfNothing) {
  for (const int64_t m : {1, 2})
    for (const double w : {0.0, 1.0, 1e200}) {
      Problem p(5, 1, m);
      p.w = {w};
      std::fill(p.x.begin(), p.x.end(), 3.25);
      const std::vector<double> got = p.all();
      const size_t terms = got.size() / 5;
      for (int64_t i = 0; i < 5; ++i) {
        EXPECT_EQ(got[i * terms], 4);
        EXPECT_EQ(got[i * terms + 1], 0);
        EXPECT_NEAR(got[i * terms + 2], std::accumulate(p.y.begin(), p.y.begin() + 5, 0.0) - p.y[i], 1e-14);
      }
    }
}

TEST_P(LeaveOneOutKernel, ARowsSumsDoNotDependOnTheRowsItCameWith) {
  for (const int64_t m : {1, 2}) {
    Problem p(37, 1, m);
    p.w = {60};
    p.x[3] = 50;  // a row without neighbours among rows with some, in one vector
    const std::vector<double> all = p.all();
    const size_t terms = all.size() / 37;
    const std::vector<int64_t> picked{36, 3, 3, 17, 0, 9, 22};
    const std::vector<double> some = p.sums(picked);
    for (size_t k = 0; k < picked.size(); ++k)
      for (size_t t = 0; t < terms; ++t)
        EXPECT_EQ(some[k * terms + t], all[static_cast<size_t>(picked[k]) * terms + t]);
    EXPECT_TRUE(p.sums({}).empty());
  }
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, LeaveOneOutKernel, testing::ValuesIn(available_targets()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace qkv::kernels
