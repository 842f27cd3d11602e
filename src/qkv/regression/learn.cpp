// Learned attention pooling: the width by gradient descent on the leave-one-out error, with its derivative written out.
#include <algorithm>
#include <cmath>

#include "qkv/core/check.h"
#include "qkv/core/parallel.h"
#include "qkv/kernels/smoothing.h"
#include "qkv/regression/bandwidth.h"
#include "qkv/regression/line_sums.h"

namespace qkv {
namespace {

constexpr int64_t kBlock = 64;          // rows of a partial sum, whatever the number of threads
constexpr int64_t kFastLineRows = 2000;  // from here on the fast sums on a line pay

struct LossAndSlope {
  double loss = 0;
  std::vector<double> slope;  // (d)
};

/// Adds row i:  e = f_-i(x_i) - y_i,  loss += e^2,
/// dloss/dw_a += 2 e sum_j alpha_j (y_j - f) * -(x_i - x_j)_a^2 w_a = -2 e w_a (mean of y d_a^2 - f times mean of d_a^2).
void add_row(double f, double y, double w, double mean_yd2, double mean_d2, double& slope) {
  slope -= 2 * (f - y) * w * (mean_yd2 - f * mean_d2);
}

class Objective {
 public:
  Objective(const Points& x, const Points& y)
      : n_(x.rows), d_(x.width), m_(y.width), x_(x.transposed()), y_(y.transposed()), rows_(x), y_rows_(y) {
    if (d_ == 1 && n_ > kFastLineRows) line_.emplace(rows_.values, y_rows_);
  }

  LossAndSlope operator()(const std::vector<double>& w) const {
    const int64_t blocks = (n_ + kBlock - 1) / kBlock;
    std::vector<LossAndSlope> parts(static_cast<size_t>(blocks), LossAndSlope{0, std::vector<double>(static_cast<size_t>(d_))});
    const bool fast = line_ && w[0] != 0;
    std::optional<LineSums> sums;
    if (fast) sums.emplace(*line_, KernelShape::gaussian, 1 / std::abs(w[0]), SumsWanted{2, false});
    const double work = static_cast<double>(n_) * (fast ? 300.0 : static_cast<double>(n_ * (2 + d_ * m_)));
    parallel_for(blocks, work, [&](int64_t b) {
      const int64_t first = b * kBlock, last = std::min(n_, first + kBlock);
      if (fast) fast_rows(*sums, w[0], first, last, parts[b]);
      else direct_rows(w, first, last, parts[b]);
    });
    LossAndSlope total{0, std::vector<double>(static_cast<size_t>(d_))};
    for (const LossAndSlope& part : parts) {
      total.loss += part.loss;
      for (int64_t a = 0; a < d_; ++a) total.slope[a] += part.slope[a];
    }
    return total;
  }

 private:
  void direct_rows(const std::vector<double>& w, int64_t first, int64_t last, LossAndSlope& out) const {
    std::vector<double> weight(static_cast<size_t>(n_)), square(static_cast<size_t>(n_ * d_)), width(static_cast<size_t>(d_));
    std::vector<double> query(static_cast<size_t>(d_)), reference(static_cast<size_t>(d_));
    for (int64_t a = 0; a < d_; ++a) width[a] = 1 / w[a];  // infinite for w = 0: all keys at distance 0
    const kernels::KeyTile tile{x_.data(), n_, n_, static_cast<int>(d_)};
    for (int64_t i = first; i < last; ++i) {
      for (int64_t a = 0; a < d_; ++a) query[a] = x_[a * n_ + i];
      kernels::kernel_weights(KernelShape::gaussian, tile, query.data(), width.data(), nullptr, weight.data());
      weight[i] = 0;
      double total = kernels::sum(weight.data(), n_);
      if (total < 1e-100) {  // far from all others: relative to the nearest
        kernels::squared_distances(tile, query.data(), width.data(), weight.data());
        weight[i] = INFINITY;
        const int64_t nearest = std::min_element(weight.begin(), weight.end()) - weight.begin();
        for (int64_t a = 0; a < d_; ++a) reference[a] = x_[a * n_ + nearest];
        kernels::kernel_weights(KernelShape::gaussian, tile, query.data(), width.data(), reference.data(), weight.data());
        weight[i] = 0;
        total = kernels::sum(weight.data(), n_);
      }
      for (int64_t a = 0; a < d_; ++a) {  // weight times (x_i - x_j)^2
        double* d2 = square.data() + a * n_;
        kernels::subtract_scale(x_.data() + a * n_, query[a], 1, d2, n_);
        kernels::multiply(d2, d2, d2, n_);
        kernels::multiply(weight.data(), d2, d2, n_);
      }
      for (int64_t j = 0; j < m_; ++j) {
        const double* y = y_.data() + j * n_;
        const double f = kernels::dot(weight.data(), y, n_) / total;
        out.loss += (f - y[i]) * (f - y[i]);
        for (int64_t a = 0; a < d_; ++a) {
          const double* d2 = square.data() + a * n_;
          add_row(f, y[i], w[a], kernels::dot(d2, y, n_) / total, kernels::sum(d2, n_) / total, out.slope[a]);
        }
      }
    }
  }

  void fast_rows(const LineSums& line_sums, double w, int64_t first, int64_t last, LossAndSlope& out) const {
    std::vector<double> queries, sums(static_cast<size_t>((last - first) * line_sums.stride()));
    for (int64_t place = first; place < last; ++place) queries.push_back(x_[line_->order[place]]);
    line_sums.fast(queries, sums.data());
    for (int64_t place = first; place < last; ++place) {
      const double* s = sums.data() + (place - first) * line_sums.stride();
      const int64_t i = line_->order[place];
      if (s[0] - 1 < 1e-3) {  // alone in its neighbourhood: key by key
        direct_rows({w}, i, i + 1, out);
        continue;
      }
      const double total = s[0] - 1, unit = 1 / (w * w);  // d^2 = u^2 / w^2; the row itself is at d = 0
      for (int64_t j = 0; j < m_; ++j) {
        const double y = y_[j * n_ + i], f = (s[(j + 1) * 3] - y) / total;
        out.loss += (f - y) * (f - y);
        add_row(f, y, w, s[(j + 1) * 3 + 2] * unit / total, s[2] * unit / total, out.slope[0]);
      }
    }
  }

  int64_t n_, d_, m_;
  std::vector<double> x_, y_;  // (d, n), (m, n)
  Points rows_, y_rows_;
  std::optional<Line> line_;
};

}  // namespace

std::vector<double> Learned::bandwidth() const {
  std::vector<double> out;
  for (const double value : w) {
    check(value != 0, "[learn] the learned w is 0: that is the average, which has no bandwidth");
    out.push_back(1 / std::abs(value));
  }
  return out;
}

Learned learn_bandwidth(const Points& x, const Points& y, const Rng& rng, const LearnOptions& options) {
  check(x.rows == y.rows, "[learn] x has ", x.rows, " rows, y has ", y.rows);
  check(x.rows >= 2, "[learn] leave-one-out training needs at least 2 rows, got ", x.rows);
  check(options.rate > 0 && std::isfinite(options.rate), "[learn] the learning rate must be positive, got ", options.rate);
  check(options.epochs >= 1, "[learn] the number of epochs must be at least 1, got ", options.epochs);
  check_finite("x", x);
  check_finite("y", y);
  const Objective objective(x, y);
  Learned out;
  for (int64_t a = 0; a < x.width; ++a) out.w.push_back(options.start.value_or(double{rng.uniform(static_cast<uint64_t>(a))}));
  out.start = out.w;
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    const LossAndSlope now = objective(out.w);
    out.losses.push_back(now.loss);
    for (int64_t a = 0; a < x.width; ++a) out.w[a] -= options.rate * now.slope[a];
    for (const double value : out.w)
      check(std::isfinite(value) && std::isfinite(now.loss), "[learn] diverged in epoch ", epoch + 1, ": w = ", value, ", loss = ",
            now.loss, "; use a smaller rate than ", options.rate);
  }
  return out;
}

}  // namespace qkv
