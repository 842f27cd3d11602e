// Local constant and local linear fits from weighted sums (Fan and Gijbels, Local Polynomial Modelling, 1996,
// section 3.1).
#include "qkv/regression/local_fit.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace qkv {

LocalSums::LocalSums(int64_t dimension, int64_t outputs) : d(dimension), m(outputs), t0(m), offset(d) {
  if (d == 1) make_room_for_slopes();
}

void LocalSums::make_room_for_slopes() {
  for (auto* v : {&s1, &q1}) v->resize(d);
  for (auto* v : {&s2, &q2}) v->resize(d * d);
  t1.resize(m * d);
}

void LocalSums::clear() {
  s0 = q0 = 0;
  for (auto* v : {&s1, &q1, &s2, &q2, &t0, &t1, &offset}) std::fill(v->begin(), v->end(), 0.0);
}

LocalFit::LocalFit(int64_t dimension, int64_t outputs, Estimator estimator)
    : d_(dimension), m_(outputs), estimator_(estimator), prediction_(outputs) {
  if (estimator != Estimator::local_linear) return;
  for (auto* v : {&mean_, &gain_, &target_}) v->resize(d_);
  factor_.resize(d_ * d_);
  order_.resize(d_);
}

bool LocalFit::solve(const LocalSums& sums) {
  if (!(sums.s0 > 0)) return false;
  for (int64_t j = 0; j < m_; ++j) prediction_[j] = sums.t0[j] / sums.s0;
  if (estimator_ != Estimator::local_linear) return true;
  solve_slope(sums);
  // The line through the weighted mean (mean u, mean y), evaluated at u = -offset: f = mean y - gain . cov(u, y)
  for (int64_t j = 0; j < m_; ++j) {
    const double mean_y = prediction_[j];
    for (int64_t a = 0; a < d_; ++a) prediction_[j] -= gain_[a] * (sums.t1[j * d_ + a] / sums.s0 - mean_[a] * mean_y);
  }
  return true;
}

// gain <- A^-1 (mean u + offset), A = sum K (u - mean)(u - mean)^T / s0, by LDL^T with the largest pivot first.
// Directions whose pivot is below kLeastSpread get no slope, so equal keys, a single key and collinear keys are not
// special cases.
void LocalFit::solve_slope(const LocalSums& sums) {
  for (int64_t a = 0; a < d_; ++a) {
    mean_[a] = sums.s1[a] / sums.s0;
    order_[a] = a;
  }
  for (int64_t a = 0; a < d_; ++a)
    for (int64_t b = 0; b < d_; ++b) factor_[a * d_ + b] = sums.s2[a * d_ + b] / sums.s0 - mean_[a] * mean_[b];
  for (int64_t a = 0; a < d_; ++a) target_[a] = mean_[a] + sums.offset[a];
  std::fill(gain_.begin(), gain_.end(), 0.0);
  least_spread_ = std::numeric_limits<double>::infinity();
  const auto element = [&](int64_t r, int64_t c) -> double& { return factor_[order_[r] * d_ + order_[c]]; };
  int64_t rank = 0;
  for (; rank < d_; ++rank) {
    int64_t best = rank;
    for (int64_t r = rank + 1; r < d_; ++r)
      if (element(r, r) > element(best, best)) best = r;
    std::swap(order_[rank], order_[best]);
    const double pivot = element(rank, rank);
    least_spread_ = std::min(least_spread_, pivot);
    if (!(pivot > kLeastSpread)) break;
    for (int64_t r = rank + 1; r < d_; ++r) {
      const double multiplier = element(r, rank) / pivot;
      for (int64_t c = rank + 1; c < d_; ++c) element(r, c) -= multiplier * element(rank, c);
      target_[order_[r]] -= multiplier * target_[order_[rank]];
    }
  }
  for (int64_t r = rank - 1; r >= 0; --r) {
    double value = target_[order_[r]];
    for (int64_t c = r + 1; c < rank; ++c) value -= element(r, c) * gain_[order_[c]];
    gain_[order_[r]] = value / element(r, r);
  }
}

// l_i = K_i / s0 (1 - gain . (u_i - mean))
double LocalFit::weight(const LocalSums& sums, double kernel_weight, std::span<const double> u) const {
  double factor = 1;
  if (estimator_ == Estimator::local_linear)
    for (int64_t a = 0; a < d_; ++a) factor -= gain_[a] * (u[a] - mean_[a]);
  return kernel_weight / sums.s0 * factor;
}

double LocalFit::squared_weights(const LocalSums& sums) const {
  double total = sums.q0;
  if (estimator_ == Estimator::local_linear) {
    double base = 1;  // 1 + gain . mean
    for (int64_t a = 0; a < d_; ++a) base += gain_[a] * mean_[a];
    total *= base * base;
    for (int64_t a = 0; a < d_; ++a) {
      total -= 2 * base * gain_[a] * sums.q1[a];
      for (int64_t b = 0; b < d_; ++b) total += gain_[a] * gain_[b] * sums.q2[a * d_ + b];
    }
  }
  return std::max(0.0, total) / (sums.s0 * sums.s0);
}

}  // namespace qkv
