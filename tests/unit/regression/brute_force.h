// The definitions of kernel regression in the plainest form, as the reference for the fast code.
#pragma once

#include <cmath>
#include <vector>

#include "qkv/core/rng.h"
#include "qkv/regression/kernel_regression.h"

namespace qkv::test {

inline double kernel_value(KernelShape shape, double distance, double h) {
  const double u = distance / h;
  if (shape == KernelShape::gaussian) return std::exp(-0.5 * u * u);
  if (shape == KernelShape::constant) return 1;
  if (!(std::abs(distance) < h)) return 0;
  if (shape == KernelShape::boxcar) return 1;
  return shape == KernelShape::epanechnikov ? 1 - u * u : 1 - std::abs(u);
}

struct BruteForce {
  std::vector<double> weight;  // l_i, empty where no key has weight
  std::vector<double> value;   // (m)
};

/// Solves a small, regular symmetric system by elimination with pivots.
inline std::vector<double> solve(std::vector<std::vector<double>> a, std::vector<double> b) {
  const size_t n = b.size();
  for (size_t c = 0; c < n; ++c) {
    size_t p = c;
    for (size_t r = c; r < n; ++r)
      if (std::abs(a[r][c]) > std::abs(a[p][c])) p = r;
    std::swap(a[c], a[p]);
    std::swap(b[c], b[p]);
    for (size_t r = c + 1; r < n; ++r) {
      const double f = a[r][c] / a[c][c];
      for (size_t k = c; k < n; ++k) a[r][k] -= f * a[c][k];
      b[r] -= f * b[c];
    }
  }
  for (size_t c = n; c-- > 0;) {
    for (size_t k = c + 1; k < n; ++k) b[c] -= a[c][k] * b[k];
    b[c] /= a[c][c];
  }
  return b;
}

/// One query: l_i = e_1^T (X^T K X)^-1 X^T K with X = [1] or [1, x - q], and f = sum l_i y_i.
inline BruteForce brute_force(const Points& x, const Points& y, const RegressionOptions& o, std::span<const double> q,
                              int64_t without = -1) {
  const int64_t n = x.rows, d = x.width;
  const KernelShape shape = o.estimator == Estimator::average ? KernelShape::constant : o.kernel;
  std::vector<double> k(n, 1.0);
  double total = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t a = 0; a < d; ++a)
      k[i] *= kernel_value(shape, x.at(i, a) - q[a], o.bandwidth[o.bandwidth.size() > 1 ? a : 0]);
    if (i == without) k[i] = 0;
    total += k[i];
  }
  BruteForce out;
  if (!(total > 0)) return out;
  const size_t size = o.estimator == Estimator::local_linear ? static_cast<size_t>(d) + 1 : 1;
  std::vector<std::vector<double>> normal(size, std::vector<double>(size));
  const auto design = [&](int64_t i, size_t c) {
    return c == 0 ? 1.0 : x.at(i, static_cast<int64_t>(c) - 1) - q[c - 1];
  };
  for (int64_t i = 0; i < n; ++i)
    for (size_t r = 0; r < size; ++r)
      for (size_t c = 0; c < size; ++c) normal[r][c] += k[i] * design(i, r) * design(i, c);
  std::vector<double> first(size);
  first[0] = 1;
  const std::vector<double> g = solve(normal, first);
  out.weight.resize(n);
  out.value.assign(static_cast<size_t>(y.width), 0.0);
  for (int64_t i = 0; i < n; ++i) {
    for (size_t c = 0; c < size; ++c) out.weight[i] += g[c] * design(i, c) * k[i];
    for (int64_t j = 0; j < y.width; ++j) out.value[j] += out.weight[i] * y.at(i, j);
  }
  return out;
}

/// Points with normal or uniform coordinates; y a smooth function plus noise.
struct Sample {
  Points x, y;
};

inline Sample sample(int64_t n, int64_t d, int64_t m, uint64_t seed, double scale = 5) {
  const Rng rng(seed);
  Sample s{Points(n, d), Points(n, m)};
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (int64_t a = 0; a < d; ++a) sum += s.x.at(i, a) = scale * rng.at("x").uniform(static_cast<uint64_t>(i * d + a));
    for (int64_t j = 0; j < m; ++j)
      s.y.at(i, j) =
          std::sin(sum + static_cast<double>(j)) + 0.3 * rng.at("noise").normal(static_cast<uint64_t>(i * m + j));
  }
  return s;
}

inline constexpr KernelShape kShapes[] = {KernelShape::gaussian, KernelShape::boxcar, KernelShape::epanechnikov,
                                          KernelShape::triangular, KernelShape::constant};
inline constexpr Estimator kEstimators[] = {Estimator::average, Estimator::local_constant, Estimator::local_linear};

}  // namespace qkv::test
