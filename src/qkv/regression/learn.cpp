// Learned attention pooling: the width by gradient descent on the leave-one-out error, with an explicit derivative.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "qkv/core/check.h"
#include "qkv/core/parallel.h"
#include "qkv/kernels/leave_one_out.h"
#include "qkv/regression/bandwidth.h"
#include "qkv/regression/line_sums.h"

namespace qkv {
namespace {

constexpr int64_t kBlock = 64;           // rows of a partial sum, for any number of threads
constexpr int64_t kFastLineRows = 2000;  // from here on the fast sums on a line are worthwhile

/// The loss and its slope by w, block by block: the sum of a block never depends on the number of threads.
class Objective {
 public:
  /// x (n, d), y (n, m), which must outlive it.
  Objective(const Points& x, const Points& y)
      : x_(x.transposed()), y_(y.transposed()), slope_(static_cast<size_t>(x.width)) {
    data_ = {x_.data(), y_.data(), x.rows, x.width, y.width};
    blocks_ = (data_.n + kBlock - 1) / kBlock;
    rows_.resize(static_cast<size_t>(data_.n));
    std::iota(rows_.begin(), rows_.end(), 0);
    space_ = kBlock * data_.terms() + 1 + data_.d;
    memory_.resize(static_cast<size_t>(blocks_ * space_));
    if (data_.d == 1 && data_.n > kFastLineRows) line_.emplace(x_, y);
  }
  Objective(const Objective&) = delete;  // data_ points into it
  Objective& operator=(const Objective&) = delete;

  /// Returns the loss at w (d) and keeps its slope.
  double operator()(const std::vector<double>& w) {
    const double n = static_cast<double>(data_.n);
    if (line_ && w[0] != 0) {
      const LineSums sums(*line_, KernelShape::gaussian, 1 / std::abs(w[0]), SumsWanted{2, false});
      return run(n * 300, [&](int64_t first, int64_t last, const Part& part) { add_fast(sums, w, first, last, part); });
    }
    return run(n * n * (1 + 0.4 * static_cast<double>(data_.terms())),
               [&](int64_t first, int64_t last, const Part& part) {
                 add_direct(w, {rows_.data() + first, rows_.data() + last}, part);
               });
  }
  const std::vector<double>& slope() const { return slope_; }  // (d)

 private:
  /// The sums of a block of rows, and its memory.
  struct Part {
    double* loss;
    double* slope;  // (d)
    double* sums;   // (kBlock, terms)
  };
  Part part(int64_t block) {
    double* memory = memory_.data() + block * space_;
    return {memory, memory + 1, memory + 1 + data_.d};
  }

  template <class Rows>
  double run(double work, Rows&& rows) {
    parallel_for(blocks_, work, [&](int64_t b) {
      const Part mine = part(b);
      std::fill(mine.loss, mine.sums, 0.0);
      rows(b * kBlock, std::min(data_.n, (b + 1) * kBlock), mine);
    });
    double loss = 0;
    std::fill(slope_.begin(), slope_.end(), 0.0);
    for (int64_t b = 0; b < blocks_; ++b) {
      const Part mine = part(b);
      loss += *mine.loss;
      for (int64_t a = 0; a < data_.d; ++a) slope_[a] += mine.slope[a];
    }
    return loss;
  }

  /// At most kBlock rows, key by key. Row i:  e = f_-i(x_i) - y_i,  loss += e^2,
  /// dloss/dw_a += 2 e sum_j alpha_j (y_j - f) * -(x_i - x_j)_a^2 w_a = -2 e w_a (mean of y d_a^2 - f times mean of
  /// d_a^2).
  void add_direct(const std::vector<double>& w, std::span<const int64_t> rows, const Part& part) const {
    kernels::leave_one_out_sums(data_, w.data(), rows.data(), static_cast<int64_t>(rows.size()), part.sums);
    const double* all = part.sums;  // for v = 1, then v = each y: sum K v, sum K v d_a^2
    for (const int64_t row : rows) {
      const double total = all[0];
      const double* of_y = all + 1 + data_.d;
      for (int64_t j = 0; j < data_.m; ++j, of_y += 1 + data_.d) {
        const double f = of_y[0] / total, error = f - y_[j * data_.n + row];
        *part.loss += error * error;
        for (int64_t a = 0; a < data_.d; ++a)
          part.slope[a] -= 2 * error * w[a] * (of_y[1 + a] - f * all[1 + a]) / total;
      }
      all += data_.terms();
    }
  }

  /// The same with the fast sums on a line, for rows sorted along it.
  void add_fast(const LineSums& line_sums, const std::vector<double>& w, int64_t first, int64_t last,
                const Part& part) const {
    std::vector<double> queries, sums(static_cast<size_t>((last - first) * line_sums.stride()));
    std::vector<int64_t> alone;
    for (int64_t place = first; place < last; ++place) queries.push_back(x_[line_->order[place]]);
    line_sums.fast(queries, sums.data());
    for (int64_t place = first; place < last; ++place) {
      const double* s = sums.data() + (place - first) * line_sums.stride();
      const int64_t i = line_->order[place];
      if (s[0] - 1 < 1e-3) {  // no close neighbours: key by key
        alone.push_back(i);
        continue;
      }
      const double total = s[0] - 1, unit = 1 / (w[0] * w[0]);  // d^2 = u^2 / w^2; the row itself is at d = 0
      for (int64_t j = 0; j < data_.m; ++j) {
        const double y = y_[j * data_.n + i], f = (s[(j + 1) * 3] - y) / total;
        *part.loss += (f - y) * (f - y);
        part.slope[0] -= 2 * (f - y) * w[0] * (s[(j + 1) * 3 + 2] - f * s[2]) * unit / total;
      }
    }
    add_direct(w, alone, part);
  }

  std::vector<double> x_, y_;  // (d, n), (m, n)
  kernels::LeaveOneOut data_{};
  std::vector<int64_t> rows_;  // (n): 0, 1, ...
  int64_t blocks_ = 0, space_ = 0;
  std::vector<double> memory_;  // (blocks, space)
  std::vector<double> slope_;
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
  check(options.rate > 0 && std::isfinite(options.rate), "[learn] the learning rate must be positive, got ",
        options.rate);
  check(options.epochs >= 1, "[learn] the number of epochs must be at least 1, got ", options.epochs);
  check_finite("x", x);
  check_finite("y", y);
  Objective objective(x, y);
  Learned out;
  out.losses.reserve(static_cast<size_t>(options.epochs));
  for (int64_t a = 0; a < x.width; ++a)
    out.w.push_back(options.start.value_or(double{rng.uniform(static_cast<uint64_t>(a))}));
  out.start = out.w;
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    const double loss = objective(out.w);
    out.losses.push_back(loss);
    for (int64_t a = 0; a < x.width; ++a) out.w[a] -= options.rate * objective.slope()[a];
    for (const double value : out.w)
      check(std::isfinite(value) && std::isfinite(loss), "[learn] diverged in epoch ", epoch + 1, ": w = ", value,
            ", loss = ", loss, "; use a smaller rate than ", options.rate);
  }
  return out;
}

}  // namespace qkv
