// Normalisation: forward and pullback side by side.
#include "qkv/ops/norm.h"

#include "qkv/kernels/elementwise.h"
#include "qkv/kernels/norm.h"
#include "qkv/ops/dropout.h"
#include "qkv/ops/row_blocks.h"
#include "qkv/tensor/present.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

constexpr int64_t kGroup =
    64;  // rows whose dgamma and dbeta are summed together; fixed, so that sums do not depend on threads

void check_parameters(const char* op, const Tensor& x, const Tensor& gamma, const Tensor& beta) {
  const Shape expected{x.size(-1)};
  check(gamma.defined() && beta.defined(), "[", op, "] gamma or beta is absent: was the layer made without sizes?");
  check(gamma.shape() == expected, "[", op, "] gamma has shape ", gamma.shape(), " for rows of shape ", expected);
  check(beta.shape() == expected, "[", op, "] beta has shape ", beta.shape(), " for rows of shape ", expected);
}

kernels::NormForward forward(const Tensor& gamma, const Tensor& beta, float eps, const Tensor& y, const Tensor& stats,
                             const Rows& rows) {
  return {
      gamma.ptr(), beta.ptr(), eps, detail::writable(y), detail::writable(stats), detail::writable(stats) + rows.count,
      rows.width};
}

// What a pullback needs: s (rows, D), stats (2, rows) with the means and then the inverse deviations.
struct Saved {
  Tensor s, stats, gamma;
  Rows rows;

  kernels::NormBackward backward(const Tensor& dy, Tensor& ds) const {
    return {s.ptr(), stats.ptr(), stats.ptr() + rows.count, gamma.ptr(), dy.ptr(), ds.mutable_ptr(), nullptr,
            nullptr, rows.width};
  }
};

// target (+)= part 0 + part 1 + ...
void sum_parts(GradTarget target, const float* parts, int64_t groups, int64_t stride, int64_t n) {
  if (!target.add) std::fill_n(target.data, n, 0.f);
  for (int64_t g = 0; g < groups; ++g) kernels::add(target.data, parts + g * stride, target.data, n);
}

// kernel(NormBackward, first row, last row) on groups of rows, then dgamma and dbeta (inputs at and at + 1) in the
// order of the groups.
template <class Kernel>
void pull_groups(Pull& p, int at, const Saved& saved, Tensor& ds, Kernel&& kernel) {
  const Rows rows = saved.rows;
  const int64_t groups = (rows.count + kGroup - 1) / kGroup, d = rows.width;
  const bool parameters = p.wants(at) || p.wants(at + 1);
  Tensor parts = parameters ? Tensor::empty({groups, 2, d}) : Tensor();
  const kernels::NormBackward whole = saved.backward(p.dy(), ds);
  parallel_ranges(rows.count, kGroup, 0.8 * static_cast<double>(ds.numel()), [&](int64_t begin, int64_t end) {
    kernels::NormBackward norm = whole;
    if (parameters) {
      norm.dgamma = parts.mutable_ptr() + begin / kGroup * 2 * d;
      norm.dbeta = norm.dgamma + d;
    }
    kernel(norm, begin, end);
  });
  if (p.wants(at)) sum_parts(p.into(at), parts.ptr(), groups, 2 * d, d);
  if (p.wants(at + 1)) sum_parts(p.into(at + 1), parts.ptr() + d, groups, 2 * d, d);
}

}  // namespace

// y = h gamma + beta, h = (x - mean) / sqrt(variance + eps).   g = dy gamma
// dx = (g - mean(g) - h mean(g h)) / sqrt(variance + eps), dgamma = sum dy h, dbeta = sum dy
Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, float eps) {
  check_present("layer_norm", x, "x");
  const Rows rows("layer_norm", x.shape());
  check_parameters("layer_norm", x, gamma, beta);
  Tensor y = Tensor::empty(x.shape()), stats = Tensor::empty({2, rows.count});
  const kernels::NormForward norm = forward(gamma, beta, eps, y, stats, rows);
  rows.each(0.6, [&](int64_t r, int64_t n) { kernels::layer_norm(norm, x.ptr(), r, r + n); });
  record("layer_norm", y, {&x, &gamma, &beta}, [saved = Saved{x, stats, gamma, rows}](Pull& p) {
    Tensor dx = Tensor::empty(saved.s.shape());
    pull_groups(p, 1, saved, dx, kernels::layer_norm_back);
    p.give(0, std::move(dx));
  });
  return y;
}

// out = layer_norm(s), s = x + y m / (1 - rate), m the decisions of dropout.   ds as above, dx = ds, dy = ds m / (1 -
// rate)
Tensor residual_layer_norm(const Tensor& x, const Tensor& y, const Tensor& gamma, const Tensor& beta, float rate,
                           const Run& run, float eps) {
  check_present("residual_layer_norm", x, "x");
  check_present("residual_layer_norm", y, "y");
  const Rows rows("residual_layer_norm", x.shape());
  check(x.shape() == y.shape(), "[residual_layer_norm] shapes differ: ", x.shape(), " + ", y.shape());
  check_parameters("residual_layer_norm", x, gamma, beta);
  const bool dropping = drops("residual_layer_norm", rate, run);
  if (dropping) note_draw("residual_layer_norm", run);
  const kernels::Drop drop{run.rng, rate};
  Tensor out = Tensor::empty(x.shape()), stats = Tensor::empty({2, rows.count});
  const bool tracked = Tape::tracks(x) || Tape::tracks(y) || Tape::tracks(gamma) || Tape::tracks(beta);
  Tensor s = tracked ? Tensor::empty(x.shape()) : out;  // without a pullback, the sum is normalised in place
  const Buffer bits = dropping && tracked ? keep_bits(rows.count, rows.width) : Buffer();
  const kernels::NormForward norm = forward(gamma, beta, eps, out, stats, rows);
  rows.each(dropping ? 1.6 : 0.8, [&](int64_t r, int64_t n) {
    kernels::residual_layer_norm(norm, x.ptr(), y.ptr(), dropping ? &drop : nullptr, s.mutable_ptr(),
                                 reinterpret_cast<uint8_t*>(bits.data()), r, r + n);
  });
  record("residual_layer_norm", out, {&x, &y, &gamma, &beta},
         [saved = Saved{s, stats, gamma, rows}, bits, scale = drop.scale()](Pull& p) {
           Tensor ds = Tensor::empty(saved.s.shape());
           if (!bits) {
             pull_groups(p, 2, saved, ds, kernels::layer_norm_back);
             p.give(1, ds);
           } else {
             Tensor branch = Tensor::empty(saved.s.shape());
             pull_groups(p, 2, saved, ds, [&](const kernels::NormBackward& norm, int64_t begin, int64_t end) {
               kernels::residual_layer_norm_back(norm, scale, reinterpret_cast<const uint8_t*>(bits.data()),
                                                 branch.mutable_ptr(), begin, end);
             });
             p.give(1, std::move(branch));
           }
           p.give(0, std::move(ds));
         });
  return out;
}

// y = h gamma, h = x / sqrt(mean(x^2) + eps).   g = dy gamma
// dx = (g - h mean(g h)) / sqrt(mean(x^2) + eps), dgamma = sum dy h
Tensor rms_norm(const Tensor& x, const Tensor& gamma, float eps) {
  check_present("rms_norm", x, "x");
  check_present("rms_norm", gamma, "gamma");
  const Rows rows("rms_norm", x.shape());
  const Shape expected{x.size(-1)};
  check(gamma.shape() == expected, "[rms_norm] gamma has shape ", gamma.shape(), " for rows of shape ", expected);
  Tensor y = Tensor::empty(x.shape()), inverse = Tensor::empty({rows.count});
  const kernels::RmsForward norm{x.ptr(), gamma.ptr(), eps, y.mutable_ptr(), inverse.mutable_ptr(), rows.width};
  rows.each(0.5, [&](int64_t r, int64_t n) { kernels::rms_norm(norm, r, r + n); });
  record("rms_norm", y, {&x, &gamma}, [x = x, inverse, gamma = gamma, rows](Pull& p) {
    const int64_t groups = (rows.count + kGroup - 1) / kGroup, d = rows.width;
    Tensor dx = Tensor::empty(x.shape()), parts = p.wants(1) ? Tensor::empty({groups, d}) : Tensor();
    const kernels::RmsBackward whole{x.ptr(), inverse.ptr(), gamma.ptr(), p.dy().ptr(), dx.mutable_ptr(), nullptr, d};
    parallel_ranges(rows.count, kGroup, 0.7 * static_cast<double>(dx.numel()), [&](int64_t begin, int64_t end) {
      kernels::RmsBackward norm = whole;
      if (parts.defined()) norm.dgamma = parts.mutable_ptr() + begin / kGroup * d;
      kernels::rms_norm_back(norm, begin, end);
    });
    if (p.wants(1)) sum_parts(p.into(1), parts.ptr(), groups, d, d);
    p.give(0, std::move(dx));
  });
  return y;
}

}  // namespace qkv
