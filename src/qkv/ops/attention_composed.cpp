// Plain attention: masked softmax and the weighted sum of values, row by row.
#include "qkv/ops/attention_composed.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "qkv/core/parallel.h"
#include "qkv/kernels/softmax.h"
#include "qkv/ops/matmul.h"
#include "qkv/tensor/present.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// body(row number, b, h, i) for every row of (B, H, Lq, ...), in parallel; ns is the cost of a row.
template <class Body>
void for_rows(const Shape& s, double ns, Body&& body) {
  const int64_t rows = s[0] * s[1] * s[2];
  parallel_ranges(rows, 16, ns * static_cast<double>(rows), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) body(r, r / s[2] / s[1], r / s[2] % s[1], r % s[2]);
  });
}

// The weights of one row; false if the row sees nothing.
bool softmax_row(const float* x, float* y, int64_t keys, const PlanRow& row) {
  std::fill_n(y, keys, 0.f);
  bool sees = false;
  for (int64_t j = row.begin; j < row.end; ++j) {
    y[j] = row.sees(j) ? x[j] : -kInfinity;
    sees |= y[j] != -kInfinity;
  }
  if (!sees) {
    std::fill_n(y, keys, 0.f);
    return false;
  }
  kernels::softmax(y + row.begin, y + row.begin, 1, row.end - row.begin);
  for (int64_t j = row.begin; j < row.end; ++j)
    if (!row.sees(j)) y[j] = 0;  // NaN in a visible score spreads over the row
  return true;
}

}  // namespace

// y = e^x / sum e^x over what is seen.   dx = y (dy - sum(y dy)) there, 0 elsewhere
MaskedSoftmax masked_softmax(const Tensor& scores, const AttentionPlan& plan) {
  check_present("masked_softmax", scores);
  check(scores.rank() == 4, "[masked_softmax] expected scores (B, H, Lq, Lk), got ", scores.shape());
  const Shape shape = scores.shape();
  const int64_t keys = shape[3], rows = shape[0] * shape[1] * shape[2];
  Tensor y = Tensor::empty(shape);
  Ids seen = Ids::empty({rows});
  for_rows(shape, 1.5 * static_cast<double>(keys), [&](int64_t r, int64_t b, int64_t h, int64_t i) {
    seen.mutable_ptr()[r] =
        softmax_row(scores.ptr() + r * keys, y.mutable_ptr() + r * keys, keys, plan.row(b, h, i, keys));
  });
  record("masked_softmax", y, {&scores}, [y, plan, shape, keys](Pull& p) {
    const Tensor& dy = p.dy();
    Tensor dx = zeros(shape);
    for_rows(shape, 2.0 * static_cast<double>(keys), [&](int64_t r, int64_t b, int64_t h, int64_t i) {
      const PlanRow row = plan.row(b, h, i, keys);
      const float *weight = y.ptr() + r * keys, *given = dy.ptr() + r * keys;
      float* out = dx.mutable_ptr() + r * keys;
      double dot = 0;
      for (int64_t j = row.begin; j < row.end; ++j)
        if (row.sees(j)) dot += double{weight[j]} * given[j];
      for (int64_t j = row.begin; j < row.end; ++j)
        if (row.sees(j)) out[j] = weight[j] * (given[j] - static_cast<float>(dot));
    });
    p.give(0, std::move(dx));
  });
  return {y, rows - std::count(seen.data().begin(), seen.data().end(), 1)};
}

// y_i = sum over seen j of w_ij v_j.   dw_ij = dy_i . v_j where seen, dv_j = sum over the i that see j of w_ij dy_i
Tensor pool_values(const Tensor& weights, const Tensor& v, const AttentionPlan& plan) {
  if (all_finite(v)) return matmul(weights, v);
  const Shape shape = weights.shape();
  const int64_t keys = shape[3], width = v.size(3), queries = shape[2];
  Tensor y = zeros({shape[0], shape[1], queries, width});
  for_rows(shape, static_cast<double>(keys * width), [&](int64_t r, int64_t b, int64_t h, int64_t i) {
    const PlanRow row = plan.row(b, h, i, keys);
    float* out = y.mutable_ptr() + r * width;
    for (int64_t j = row.begin; j < row.end; ++j) {
      if (!row.sees(j)) continue;
      const float weight = weights.ptr()[r * keys + j], *value = v.ptr() + (r / queries * keys + j) * width;
      for (int64_t c = 0; c < width; ++c) out[c] += weight * value[c];
    }
  });
  record("pool_values", y, {&weights, &v},
         [weights = weights.detached(), v = v.detached(), plan, shape, keys, width, queries](Pull& p) {
           const Tensor& dy = p.dy();
           Tensor dweights = zeros(shape), dv = zeros(v.shape());
           // One head at a time: its rows add to the same values.
           parallel_for(shape[0] * shape[1], static_cast<double>(shape.numel() * width), [&](int64_t head) {
             for (int64_t i = 0; i < queries; ++i) {
               const PlanRow row = plan.row(head / shape[1], head % shape[1], i, keys);
               const int64_t r = head * queries + i;
               const float* given = dy.ptr() + r * width;
               for (int64_t j = row.begin; j < row.end; ++j) {
                 if (!row.sees(j)) continue;
                 const float weight = weights.ptr()[r * keys + j], *value = v.ptr() + (head * keys + j) * width;
                 float *to = dv.mutable_ptr() + (head * keys + j) * width, dot = 0;
                 for (int64_t c = 0; c < width; ++c) {
                   dot += given[c] * value[c];
                   to[c] += weight * given[c];
                 }
                 dweights.mutable_ptr()[r * keys + j] = dot;
               }
             }
           });
           if (p.wants(0)) p.give(0, std::move(dweights));
           if (p.wants(1)) p.give(1, std::move(dv));
         });
  return y;
}

Tensor dropout_factors(const Shape& weights, const AttentionDropout& dropout) {
  Tensor factors = Tensor::empty(weights);
  const int64_t keys = weights[3];
  const double threshold = static_cast<double>(dropout.rate) * 0x1p32;
  const float kept = 1 / (1 - dropout.rate);
  for_rows(weights, 4.0 * static_cast<double>(keys), [&](int64_t r, int64_t b, int64_t h, int64_t i) {
    std::array<uint32_t, 4> words{};
    for (int64_t j = 0; j < keys; ++j) {
      if (j % 4 == 0)
        words = philox({dropout.step, dropout.first_row + static_cast<uint32_t>(b * weights[1] + h),
                        static_cast<uint32_t>(i), static_cast<uint32_t>(j / 4)},
                       dropout.key);
      factors.mutable_ptr()[r * keys + j] =
          static_cast<double>(words[static_cast<size_t>(j % 4)]) >= threshold ? kept : 0;
    }
  });
  return factors;
}

bool all_finite(const Tensor& x) {
  // NaN and infinities have an exponent field of all ones, so the largest field decides.
  uint32_t most = 0;
  for (float v : x.data()) most = std::max(most, std::bit_cast<uint32_t>(v) & 0x7f800000u);
  return most != 0x7f800000u;
}

}  // namespace qkv
