// The loops over queries: fast sums where their bound holds, key by key where it does not.
#include <algorithm>
#include <numeric>

#include "qkv/core/parallel.h"
#include "qkv/regression/line_sums.h"
#include "qkv/regression/regression_data.h"

namespace qkv {
namespace {

constexpr int64_t kLineBlock = 256, kCloudBlock = 8;

/// Fast sums are good enough when their error cannot move the prediction by more than ~1e-8 of the range of y. A slope
/// divides by the keys' spread, so a narrow spread needs a smaller error.
bool good_enough(double error, const LocalSums& sums, const LocalFit& fit, bool linear) {
  const double spread = linear ? std::min(1.0, fit.least_spread()) : 1.0;
  return spread > 1e-4 && sums.s0 > 0 && error <= 1e-8 * sums.s0 * spread * spread;
}

double line_work(const Line& line, int64_t queries) { return static_cast<double>(queries * line.columns()) * 100; }

}  // namespace

void KernelRegression::for_each_query(const Points& at, SumsWanted wanted, const Visit& visit) const {
  if (data_->line) return on_line(at, wanted, visit);
  const double work = static_cast<double>(at.rows * rows()) * (2.0 + static_cast<double>(dimension() + outputs()));
  parallel_ranges(at.rows, kCloudBlock, work, [&](int64_t first, int64_t last) {
    CloudSums cloud_sums(data_->cloud, kernel_, width_, wanted);
    LocalSums sums(dimension(), data_->parts.count());
    LocalFit fit(dimension(), data_->parts.count(), estimator_);
    for (int64_t q = first; q < last; ++q) {
      cloud_sums.direct(at.row(q), -1, sums);
      visit(q, sums, fit, fit.solve(sums));
    }
  });
}

void KernelRegression::on_line(const Points& at, SumsWanted wanted, const Visit& visit) const {
  const Line& line = *data_->line;
  const LineSums line_sums(line, kernel_, width_[0], wanted);
  std::vector<int64_t> by_place(static_cast<size_t>(at.rows));
  std::iota(by_place.begin(), by_place.end(), int64_t{0});
  if (!std::is_sorted(at.values.begin(), at.values.end()))
    std::stable_sort(by_place.begin(), by_place.end(),
                     [&](int64_t a, int64_t b) { return at.values[a] < at.values[b]; });
  parallel_ranges(at.rows, kLineBlock, line_work(line, at.rows), [&](int64_t first, int64_t last) {
    std::vector<double> queries(static_cast<size_t>(last - first)),
        fast(queries.size() * static_cast<size_t>(line_sums.stride()));
    for (int64_t i = first; i < last; ++i) queries[i - first] = at.values[by_place[i]];
    line_sums.fast(queries, fast.data());
    LocalSums sums(1, data_->parts.count());
    LocalFit fit(1, data_->parts.count(), estimator_);
    for (int64_t i = first; i < last; ++i) {
      const double query = queries[i - first];
      const double error = line_sums.unpack(fast.data() + (i - first) * line_sums.stride(), query, sums);
      bool found = fit.solve(sums);
      const bool exact =
          good_enough(error, sums, fit, estimator_ == Estimator::local_linear) && !line_sums.misses_huge(query);
      if (kernel_ != KernelShape::constant && !exact) {
        line_sums.direct(query, -1, sums);
        found = fit.solve(sums);
      }
      visit(by_place[i], sums, fit, found);
    }
  });
}

void KernelRegression::for_each_row_left_out(std::span<const int64_t> chosen, const Visit& visit) const {
  if (data_->line) return rows_on_line(chosen, visit);
  const auto count = static_cast<int64_t>(chosen.size());
  const double work = static_cast<double>(count * rows()) * (2.0 + static_cast<double>(dimension() + outputs()));
  parallel_ranges(count, kCloudBlock, work, [&](int64_t first, int64_t last) {
    CloudSums cloud_sums(data_->cloud, kernel_, width_, {order(), false});
    LocalSums sums(dimension(), data_->parts.count());
    LocalFit fit(dimension(), data_->parts.count(), estimator_);
    for (int64_t k = first; k < last; ++k) {
      cloud_sums.direct(x_.row(chosen[k]), chosen[k], sums);
      visit(k, sums, fit, fit.solve(sums));
    }
  });
}

// The fast sums are for all rows at once, so all are visited; those not chosen are skipped.
void KernelRegression::rows_on_line(std::span<const int64_t> chosen, const Visit& visit) const {
  const Line& line = *data_->line;
  const LineSums line_sums(line, kernel_, width_[0], {order(), false});
  std::vector<int64_t> place_of(static_cast<size_t>(rows()), -1);  // index among the chosen rows
  for (size_t k = 0; k < chosen.size(); ++k) place_of[static_cast<size_t>(chosen[k])] = static_cast<int64_t>(k);
  parallel_ranges(line.keys(), kLineBlock, line_work(line, rows()), [&](int64_t first, int64_t last) {
    std::vector<double> fast(static_cast<size_t>((last - first) * line_sums.stride()));
    line_sums.fast({line.x.data() + first, static_cast<size_t>(last - first)}, fast.data());
    LocalSums sums(1, data_->parts.count());
    LocalFit fit(1, data_->parts.count(), estimator_);
    for (int64_t key = first; key < last; ++key) {
      for (int64_t place = line.key_begin[key]; place < line.key_begin[key + 1]; ++place) {
        const int64_t row = line.order[place];
        if (place_of[row] < 0) continue;
        const double error = line_sums.unpack(fast.data() + (key - first) * line_sums.stride(), line.x[key], sums);
        line_sums.leave_out(row, sums);
        bool found = fit.solve(sums);
        // Adding a huge value and removing it again leaves a rounding error.
        const bool rounded = data_->parts.is_huge(row) || line_sums.misses_huge(line.x[key]);
        if (rounded || !good_enough(error, sums, fit, estimator_ == Estimator::local_linear)) {
          line_sums.direct(line.x[key], row, sums);
          found = fit.solve(sums);
        }
        visit(place_of[row], sums, fit, found);
      }
    }
  });
}

}  // namespace qkv
