// Rows of weights on demand, and sums over them in a fixed order.
#include "qkv/attention/weights.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "qkv/core/parallel.h"
#include "qkv/tensor/present.h"

namespace qkv {
namespace {

constexpr int64_t kRowBlock = 8;  // rows per block: fixed, so that sums do not depend on the number of threads

const Tensor& queries_of(const Lowered& s) {
  return std::holds_alternative<PairScores>(s) ? std::get<PairScores>(s).q : std::get<AdditiveScores>(s).pq;
}
const Tensor& keys_of(const Lowered& s) {
  return std::holds_alternative<PairScores>(s) ? std::get<PairScores>(s).k : std::get<AdditiveScores>(s).pk;
}

Lowered detached(const Lowered& scores) {
  if (const auto* s = std::get_if<PairScores>(&scores))
    return PairScores{s->q.detached(),      s->k.detached(),        s->form, s->scale,
                      s->factor.detached(), s->key_bias.detached(), s->axis};
  const auto& s = std::get<AdditiveScores>(scores);
  return AdditiveScores{s.pq.detached(), s.pk.detached(), s.w.detached()};
}

}  // namespace

Weights::Weights(Lowered scores, AttentionPlan plan, Tensor lse, int64_t empty_rows) : empty_rows_(empty_rows) {
  const auto* pairs = std::get_if<PairScores>(&scores);
  const HeadAxis axis = pairs ? pairs->axis : HeadAxis::outer;
  const Shape q = heads_outer(queries_of(scores).shape(), axis), k = heads_outer(keys_of(scores).shape(), axis);
  shape_ = {q[0], q[1], q[2], k[2]};
  plan.bias = plan.bias.detached();
  plan.relative = plan.relative.detached();
  source_ = Kept{detached(scores), std::move(plan), std::move(lse)};
}

Weights::Weights(const Tensor& matrix, int64_t empty_rows)
    : source_(matrix.detached()), shape_(matrix.shape()), empty_rows_(empty_rows) {
  check_present("weights", matrix);
  check(matrix.rank() == 4, "[weights] expected a matrix (B, H, Lq, Lk), got ", matrix.shape());
}

void Weights::check_row(int64_t b, int64_t h, int64_t i) const {
  check(b >= 0 && b < shape_[0] && h >= 0 && h < shape_[1] && i >= 0 && i < shape_[2], "[weights] no row (", b, ", ", h,
        ", ", i, ") in weights ", shape_);
}

double Weights::row_cost() const {
  if (std::holds_alternative<Tensor>(source_)) return 2.0 * static_cast<double>(shape_[3]);
  return static_cast<double>(shape_[3]) *
         (2 + 0.3 * static_cast<double>(queries_of(std::get<Kept>(source_).scores).size(-1)));
}

void Weights::row(int64_t b, int64_t h, int64_t i, float* weights) const {
  if (const auto* matrix = std::get_if<Tensor>(&source_)) {
    std::copy_n(matrix->ptr() + ((b * shape_[1] + h) * shape_[2] + i) * shape_[3], shape_[3], weights);
    return;
  }
  if (shape_[3] == 0) return;
  const Kept& kept = std::get<Kept>(source_);
  std::visit([&](const auto& scores) { attention_row(scores, kept.plan, kept.lse, b, h, i, weights); }, kept.scores);
}

Tensor Weights::row(int64_t b, int64_t h, int64_t i) const {
  check_row(b, h, i);
  Tensor out = Tensor::empty({shape_[3]});
  row(b, h, i, out.mutable_ptr());
  return out;
}

void Weights::check_size(const Shape& shape, int64_t limit) const {
  const int64_t bytes = shape.numel() * static_cast<int64_t>(sizeof(float));
  check(bytes <= limit, "[weights] the whole matrix ", shape, " takes ", bytes, " bytes, the limit is ", limit,
        "; use row() instead");
}

void Weights::fill_rows(int64_t first, Tensor& out) const {
  const int64_t rows = out.shape().product(0, out.rank() - 1);
  float* to = out.mutable_ptr();
  parallel_ranges(rows, kRowBlock, row_cost() * static_cast<double>(rows), [&](int64_t begin, int64_t end) {
    for (int64_t r = first + begin; r < first + end; ++r)
      row(r / shape_[2] / shape_[1], r / shape_[2] % shape_[1], r % shape_[2], to + (r - first) * shape_[3]);
  });
}

Tensor Weights::head(int64_t b, int64_t h) const {
  check(b >= 0 && b < shape_[0] && h >= 0 && h < shape_[1], "[weights] no head (", b, ", ", h, ") in weights ", shape_);
  check_size({shape_[2], shape_[3]}, kMatrixBytes);
  Tensor out = Tensor::empty({shape_[2], shape_[3]});
  fill_rows((b * shape_[1] + h) * shape_[2], out);
  return out;
}

Tensor Weights::matrix(int64_t limit) const {
  check_size(shape_, limit);
  if (const auto* matrix = std::get_if<Tensor>(&source_)) return *matrix;
  Tensor out = Tensor::empty(shape_);
  fill_rows(0, out);
  return out;
}

std::vector<KeyWeight> Weights::top_k(int64_t b, int64_t h, int64_t i, int64_t count) const {
  check(count >= 0, "[weights] cannot list ", count, " keys");
  const Tensor weights = row(b, h, i);
  std::vector<int64_t> order(static_cast<size_t>(shape_[3]));
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto last = order.begin() + std::min(count, shape_[3]);
  const auto weight_of = [&](int64_t j) { return std::isnan(weights.ptr()[j]) ? -1.f : weights.ptr()[j]; };
  std::partial_sort(order.begin(), last, order.end(), [&](int64_t a, int64_t c) {
    return weight_of(a) != weight_of(c) ? weight_of(a) > weight_of(c) : a < c;
  });
  std::vector<KeyWeight> out;
  for (auto it = order.begin(); it != last; ++it) out.push_back({*it, weights.ptr()[*it]});
  return out;
}

Tensor Weights::entropy() const {
  Tensor out = Tensor::empty({shape_[0], shape_[1], shape_[2]});
  parallel_ranges(out.numel(), kRowBlock, row_cost() * static_cast<double>(out.numel()),
                  [&](int64_t begin, int64_t end) {
                    Tensor weights = Tensor::empty({shape_[3]});
                    for (int64_t r = begin; r < end; ++r) {
                      row(r / shape_[2] / shape_[1], r / shape_[2] % shape_[1], r % shape_[2], weights.mutable_ptr());
                      double sum = 0;
                      for (float w : weights.data())
                        if (w != 0) sum -= double{w} * std::log(double{w});
                      out.mutable_ptr()[r] = static_cast<float>(sum);
                    }
                  });
  return out;
}

Tensor Weights::column_mass() const {
  Tensor out = Tensor::empty({shape_[0], shape_[1], shape_[3]});
  const int64_t heads = shape_[0] * shape_[1];
  parallel_for(heads, row_cost() * static_cast<double>(heads * shape_[2]), [&](int64_t head) {
    Tensor weights = Tensor::empty({shape_[3]});
    std::vector<double> sums(static_cast<size_t>(shape_[3]));
    for (int64_t i = 0; i < shape_[2]; ++i) {
      row(head / shape_[1], head % shape_[1], i, weights.mutable_ptr());
      for (size_t j = 0; j < sums.size(); ++j) sums[j] += weights.ptr()[j];
    }
    std::copy(sums.begin(), sums.end(), out.mutable_ptr() + head * shape_[3]);
  });
  return out;
}

}  // namespace qkv
