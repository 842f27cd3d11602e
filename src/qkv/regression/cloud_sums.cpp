// Kernel sums over keys in any dimension.
#include "qkv/regression/cloud_sums.h"
#include "qkv/kernels/smoothing.h"

#include <algorithm>
#include <limits>

namespace qkv {
namespace {
constexpr int64_t kTile = 1024;
// Smaller sums are recomputed relative to the nearest key; its square still fits a double.
constexpr double kFar = 1e-100;
}  // namespace

Cloud::Cloud(const Points& x_rows, const Points& y_rows)
    : n(x_rows.rows),
      d(x_rows.width),
      m(y_rows.width),
      x(x_rows.transposed()),
      y(y_rows.transposed()),
      mean(static_cast<size_t>(d)) {
  for (int64_t a = 0; a < d; ++a)
    for (int64_t i = 0; i < n; ++i) mean[a] += (x[a * n + i] - mean[a]) / static_cast<double>(i + 1);
}

CloudSums::CloudSums(const Cloud& cloud, KernelShape shape, std::span<const double> width, SumsWanted wanted)
    : cloud_(&cloud),
      shape_(shape),
      width_(width.begin(), width.end()),
      wanted_(wanted),
      reference_(cloud.d),
      weight_(kTile) {
  if (wanted_.order < 2) return;
  for (auto* v : {&u_, &weight_u_}) v->resize(static_cast<size_t>(cloud.d * kTile));
}

void CloudSums::direct(std::span<const double> query, int64_t without_row, LocalSums& out) {
  const auto& start = shape_ == KernelShape::constant ? std::span<const double>(cloud_->mean) : query;
  std::copy(start.begin(), start.end(), reference_.begin());
  relative_ = false;
  pass(query, without_row, out, nullptr);
  if (shape_ == KernelShape::gaussian && out.s0 < kFar && cloud_->n > (without_row >= 0 ? 1 : 0)) {
    find_nearest(query, without_row);
    relative_ = true;
    pass(query, without_row, out, reference_.data());
  }
}

void CloudSums::weights(std::span<const double> query, int64_t without_row, std::span<double> out) {
  kernels::kernel_weights(shape_, {cloud_->x.data(), cloud_->n, cloud_->n, static_cast<int>(cloud_->d)}, query.data(),
                          width_.data(), relative_ ? reference_.data() : nullptr, out.data());
  if (without_row >= 0) out[without_row] = 0;
}

void CloudSums::pass(std::span<const double> query, int64_t without_row, LocalSums& out, const double* relative_to) {
  out.clear();
  if (wanted_.order >= 2) out.make_room_for_slopes();
  for (int64_t a = 0; a < cloud_->d; ++a) out.offset[a] = (reference_[a] - query[a]) / width_[a];
  for (int64_t first = 0; first < cloud_->n; first += kTile) {
    const int64_t count = std::min(kTile, cloud_->n - first);
    kernels::kernel_weights(shape_, {cloud_->x.data() + first, cloud_->n, count, static_cast<int>(cloud_->d)},
                            query.data(), width_.data(), relative_to, weight_.data());
    if (without_row >= first && without_row < first + count) weight_[without_row - first] = 0;
    add_tile(first, count, out);
  }
}

void CloudSums::add_tile(int64_t first, int64_t count, LocalSums& out) {
  using kernels::dot, kernels::sum;
  const int64_t n = cloud_->n, d = cloud_->d;
  const auto y = [&](int64_t j) { return cloud_->y.data() + j * n + first; };
  out.s0 += sum(weight_.data(), count);
  for (int64_t j = 0; j < cloud_->m; ++j) out.t0[j] += dot(weight_.data(), y(j), count);
  if (wanted_.squares) out.q0 += dot(weight_.data(), weight_.data(), count);
  if (wanted_.order < 2) return;
  for (int64_t a = 0; a < d; ++a) {
    double *u = u_.data() + a * kTile, *weight_u = weight_u_.data() + a * kTile;
    kernels::subtract_scale(cloud_->x.data() + a * n + first, reference_[a], 1 / width_[a], u, count);
    kernels::multiply(weight_.data(), u, weight_u, count);
    out.s1[a] += sum(weight_u, count);
    for (int64_t b = 0; b <= a; ++b)
      out.s2[a * d + b] = out.s2[b * d + a] += dot(weight_u, u_.data() + b * kTile, count);
    for (int64_t j = 0; j < cloud_->m; ++j) out.t1[j * d + a] += dot(weight_u, y(j), count);
  }
  if (!wanted_.squares) return;
  for (int64_t a = 0; a < d; ++a) {
    out.q1[a] += dot(weight_.data(), weight_u_.data() + a * kTile, count);
    for (int64_t b = 0; b <= a; ++b)
      out.q2[a * d + b] = out.q2[b * d + a] += dot(weight_u_.data() + a * kTile, weight_u_.data() + b * kTile, count);
  }
}

void CloudSums::find_nearest(std::span<const double> query, int64_t without_row) {
  double least = std::numeric_limits<double>::infinity();
  int64_t nearest = without_row == 0 ? 1 : 0;
  for (int64_t first = 0; first < cloud_->n; first += kTile) {
    const int64_t count = std::min(kTile, cloud_->n - first);
    kernels::squared_distances({cloud_->x.data() + first, cloud_->n, count, static_cast<int>(cloud_->d)}, query.data(),
                               width_.data(), weight_.data());
    for (int64_t i = 0; i < count; ++i) {
      if (weight_[i] < least && first + i != without_row) {
        least = weight_[i];
        nearest = first + i;
      }
    }
  }
  for (int64_t a = 0; a < cloud_->d; ++a) reference_[a] = cloud_->x[a * cloud_->n + nearest];
}

}  // namespace qkv
