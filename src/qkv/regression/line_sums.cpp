// Kernel sums over keys on a line.
#include "qkv/regression/line_sums.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "qkv/kernels/gauss_line.h"

namespace qkv {
namespace {
constexpr double kUnderflow = 39;  // widths: exp(-39^2 / 2) is 0 in a double
}  // namespace

/// A key for one query: rows and summed y (possibly with one row left out), weight, and u relative to the reference.
struct LineSums::Term {
  int64_t key;
  double rows, weight, u;
  std::span<const double> less;  // (outputs): y of the row that is left out
};

LineSums::LineSums(const Line& line, KernelShape shape, double width, SumsWanted wanted)
    : line_(&line), shape_(shape), width_(width), wanted_(wanted) {
  switch (shape) {
    case KernelShape::gaussian:
      gauss_.emplace(line, line.columns(), width);
      if (wanted.squares) gauss_squared_.emplace(line, 1, width / std::numbers::sqrt2);  // K^2 = exp(-(sqrt2 u)^2 / 2)
      break;
    case KernelShape::constant: {
      double rows = 0;
      for (int64_t k = 0; k < line.keys(); ++k) rows += line.value[k];
      for (int64_t k = 0; k < line.keys(); ++k) mean_ += line.x[k] * (line.value[k] / rows);
      all_.emplace(1, line.y->width);
      for (int64_t k = 0; k < line.keys(); ++k) add({k, line.value[k], 1, (line.x[k] - mean_) / width_, {}}, *all_);
      break;
    }
    default:
      compact_.emplace(line, shape, width, wanted);
  }
}

void LineSums::fast(std::span<const double> queries, double* sums) const {
  if (compact_) return compact_->sums(queries, sums);
  if (!gauss_) return;
  const int64_t size = line_->columns() * (wanted_.order + 1), step = stride();
  std::vector<double> part(queries.size() * static_cast<size_t>(size));
  gauss_->sums(queries, wanted_.order, part.data());
  for (size_t i = 0; i < queries.size(); ++i) std::copy_n(part.data() + i * size, size, sums + i * step);
  if (!gauss_squared_) return;
  part.resize(queries.size() * static_cast<size_t>(wanted_.order + 1));
  gauss_squared_->sums(queries, wanted_.order, part.data());
  for (size_t i = 0; i < queries.size(); ++i)
    for (int k = 0; k < 3; ++k)  // the transform's u is sqrt2 times ours
      sums[i * step + size + k] = k <= wanted_.order ? part[i * (wanted_.order + 1) + k] * std::pow(0.5, 0.5 * k) : 0;
}

double LineSums::unpack(const double* sums, double query, LocalSums& out) const {
  if (all_) {
    out = *all_;
    out.offset[0] = (mean_ - query) / width_;
    return 0;
  }
  out.offset[0] = 0;
  const int step = wanted_.order + 1;
  out.s0 = sums[0];
  for (int64_t j = 0; j < out.m; ++j) out.t0[j] = sums[(j + 1) * step];
  if (wanted_.order == 2) {
    out.s1[0] = sums[1];
    out.s2[0] = sums[2];
    for (int64_t j = 0; j < out.m; ++j) out.t1[j] = sums[(j + 1) * step + 1];
  }
  if (wanted_.squares) {
    const double* q = sums + line_->columns() * step;
    out.q0 = q[0];
    out.q1[0] = q[1];
    out.q2[0] = q[2];
  }
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  if (compact_) return kCompactError * kEpsilon * sums[stride() - 1];
  // The part beyond the cutoff, with the factor u^2 that a second moment may add, plus rounding.
  const double beyond =
      kernels::kGaussCutoff * kernels::kGaussCutoff * std::exp(-0.5 * kernels::kGaussCutoff * kernels::kGaussCutoff);
  return static_cast<double>(line_->order.size()) * beyond + 64 * kEpsilon * out.s0;
}

bool LineSums::misses_huge(double query) const {
  if (shape_ != KernelShape::gaussian) return false;
  const auto& huge = line_->huge;
  const double near = (kernels::kGaussCutoff - 1) * width_, far = kUnderflow * width_;
  const auto within = [&](double low, double high) {
    const auto first = std::lower_bound(huge.begin(), huge.end(), low);
    return first != huge.end() && *first <= high;
  };
  return !huge.empty() && (within(query + near, query + far) || within(query - far, query - near));
}

void LineSums::leave_out(int64_t row, LocalSums& sums) const {
  const double u = -sums.offset[0];
  const auto y = line_->y->row(row);
  sums.s0 -= 1;
  sums.s1[0] -= u;
  sums.s2[0] -= u * u;
  for (int64_t j = 0; j < sums.m; ++j) {
    sums.t0[j] -= y[j];
    sums.t1[j] -= y[j] * u;
  }
}

void LineSums::add(const Term& term, LocalSums& out) const {
  const double k = term.weight, u = term.u, mass = k * term.rows;
  out.s0 += mass;
  out.s1[0] += mass * u;
  out.s2[0] += mass * u * u;
  out.q0 += k * mass;
  out.q1[0] += k * mass * u;
  out.q2[0] += k * mass * u * u;
  for (int64_t j = 0; j < out.m; ++j) {
    const double y = line_->value[(j + 1) * line_->keys() + term.key] - (term.less.empty() ? 0 : term.less[j]);
    out.t0[j] += k * y;
    out.t1[j] += k * y * u;
  }
}

void LineSums::direct(double query, int64_t without_row, LocalSums& out) const {
  out.clear();
  const auto& x = line_->x;
  const int64_t keys = line_->keys();
  const int64_t at = std::lower_bound(x.begin(), x.end(), query) - x.begin();
  const auto rows = [&](int64_t key) { return line_->value[key] - (without_row >= 0 && key == at ? 1 : 0); };
  // The nearest key that still has rows.
  int64_t left = at - 1, right = at;
  if (right < keys && rows(right) == 0) ++right;
  if (left < 0 && right >= keys) return;
  const bool use_right = left < 0 || (right < keys && x[right] - query <= query - x[left]);
  const int64_t near_key = use_right ? right : left;
  const double reference = x[near_key], nearest = (reference - query) / width_;
  out.offset[0] = nearest;
  const double least = std::abs(reference - query);
  double reach = width_;
  if (shape_ == KernelShape::gaussian) {
    // Relative to the nearest key, all keys beyond u^2 = nearest^2 + T^2 weigh at most n exp(-T^2 / 2)
    // (kernels/gauss_line.h).
    const double cutoff = line_->huge.empty() ? kernels::kGaussCutoff : kUnderflow;
    reach =
        std::max(width_ * std::sqrt(nearest * nearest + cutoff * cutoff), least);  // keep the nearest despite rounding
  } else if (shape_ == KernelShape::constant) {
    reach = std::numeric_limits<double>::infinity();
  }
  const std::span<const double> less = without_row >= 0 ? line_->y->row(without_row) : std::span<const double>();
  const auto weight = [&](int64_t key, double distance) {
    const double v = distance / width_;
    if (shape_ == KernelShape::epanechnikov) return 1 - v * v;
    if (shape_ == KernelShape::triangular) return 1 - v;
    if (shape_ != KernelShape::gaussian || key == near_key) return 1.0;
    // |x - q|^2 - |r - q|^2 as a product; on one side of the query the first factor is exact.
    const double further = (x[key] < query) == (reference < query) ? std::abs(x[key] - reference) : distance - least;
    return std::exp(-0.5 * (further / width_) * ((distance + least) / width_));
  };
  const auto visit = [&](int64_t key) {
    const double distance = std::abs(x[key] - query);
    if (shape_ == KernelShape::gaussian ? distance > reach : !(distance < reach)) return false;
    const double left_rows = rows(key);
    if (left_rows > 0)
      add({key, left_rows, weight(key, distance), (x[key] - reference) / width_,
           key == at ? less : std::span<const double>()},
          out);
    return true;
  };
  for (int64_t key = at; key < keys && visit(key); ++key) {
  }
  for (int64_t key = at - 1; key >= 0 && visit(key); --key) {
  }
}

}  // namespace qkv
