// The formulas of the scorers, and the kernel form of each.
#include "qkv/attention/scorers.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "qkv/ops/elementwise.h"
#include "qkv/ops/matmul.h"
#include "qkv/ops/reduce.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/present.h"

namespace qkv {
namespace {

Tensor no_scores(const Tensor& q, const Tensor& k) { return zeros({q.size(0), q.size(1), q.size(2), k.size(2)}); }

// The score of every key, the same for every query: (B, H, Lk) -> (B, H, Lq, Lk).
Tensor for_every_query(const Tensor& key_scores, const Tensor& q, const Tensor& k) {
  return add(no_scores(q, k), reshape(key_scores, {k.size(0), k.size(1), 1, k.size(2)}));
}

// A dot product that is 0 for any q and k, plus a key bias.
PairScores key_only(const Tensor& q, const Tensor& k, const Tensor& key_bias) {
  return {.q = zeros({q.size(0), q.size(1), q.size(2), 1}),
          .k = zeros({k.size(0), k.size(1), k.size(2), 1}),
          .key_bias = key_bias};
}

void check_vector(const char* name, const Tensor& w, const Tensor& x) {
  check_present(name, w, "w");
  check(w.shape() == Shape{x.size(-1)}, "[", name, "] w does not fit: ", w.shape(), " for keys ", x.shape());
}

void check_widths(const char* name, const Tensor& q, const Tensor& k) {
  check(q.size(-1) == k.size(-1), "[", name, "] query and key widths differ: ", q.shape(), " x ", k.shape());
}

// x . w over the last axis.
Tensor along(const Tensor& x, const Tensor& w) { return sum(mul(x, w), -1); }

// Every query beside every key: (B, H, Lq, 1, D) and (B, H, 1, Lk, D).
Tensor query_rows(const Tensor& q) { return reshape(q, {q.size(0), q.size(1), q.size(2), 1, q.size(3)}); }
Tensor key_columns(const Tensor& k) { return reshape(k, {k.size(0), k.size(1), 1, k.size(2), k.size(3)}); }

template <class Condition>
Tensor indicator(const Tensor& x, Condition&& condition) {
  Tensor out = Tensor::empty(x.shape());
  for (int64_t i = 0; i < x.numel(); ++i) out.mutable_ptr()[i] = condition(x.ptr()[i]);
  return out;
}

// u^2 = |w (q - k)|^2 for every pair.
Tensor squared_distances(const char* name, const Tensor& width, const Tensor& q, const Tensor& k) {
  check_widths(name, q, k);
  check_present(name, width, "width");
  check(width.numel() == 1 || width.shape() == Shape{q.size(-1)}, "[", name,
        "] expected one width or one per dimension, got ", width.shape(), " for queries ", q.shape());
  const Tensor scaled = mul(sub(query_rows(q), key_columns(k)), width.numel() == 1 ? reshape(width, Shape{}) : width);
  return sum(mul(scaled, scaled), -1);
}

// log x where x > 0, else -inf with no gradient.
Tensor log_or_masked(const Tensor& x) {
  const Tensor inside = indicator(x, [](float v) { return !(v <= 0); });
  return where(inside, log(where(inside, x, ones(x.shape()))),
               full(x.shape(), -std::numeric_limits<float>::infinity()));
}

// sqrt x, with derivative 0 at 0.
Tensor root(const Tensor& x) {
  const Tensor positive = indicator(x, [](float v) { return v != 0; });
  return where(positive, sqrt(where(positive, x, ones(x.shape()))), zeros(x.shape()));
}

PairScores distance(const char* name, ScoreForm form, const Tensor& width, const Tensor& q, const Tensor& k) {
  check_widths(name, q, k);
  check_present(name, width, "width");
  // A single width stays outside: its gradient then comes from differences q - k, exact even far from 0.
  if (width.numel() == 1)
    return {.q = q, .k = k, .form = form, .scale = width.item() < 0 ? -1.f : 1.f, .factor = width};
  check(width.shape() == Shape{q.size(-1)}, "[", name, "] expected one width or one per dimension, got ", width.shape(),
        " for queries ", q.shape());
  return {.q = mul(q, width), .k = mul(k, width), .form = form};
}

// A power of two per row, (..., 1), that scales its largest element into [1, 2): an exact change of units.
Tensor row_units(const Tensor& x) {
  Shape shape = x.shape();
  shape.set(-1, 1);
  Tensor out = Tensor::empty(shape);
  const int64_t width = x.size(-1);
  for (int64_t r = 0; r < out.numel(); ++r) {
    float largest = 0;
    for (int64_t a = 0; a < width; ++a) largest = std::max(largest, std::abs(x.ptr()[r * width + a]));
    const bool usual = largest > 0 && std::isfinite(largest);
    out.mutable_ptr()[r] = usual ? std::ldexp(1.f, std::clamp(-std::ilogb(largest), -126, 126)) : 1.f;
  }
  return out;
}

// x / |x|; a zero vector stays zero.
Tensor unit(const Tensor& given) {
  Tensor x = given, squares = sum(mul(x, x), -1, KeepDims::yes);
  const auto sound = [](float v) { return v > 1e-30f && v < 1e30f; };
  if (!std::all_of(squares.data().begin(), squares.data().end(),
                   sound)) {  // a square may have overflowed or underflowed
    x = mul(given, row_units(given));
    squares = sum(mul(x, x), -1, KeepDims::yes);
  }
  const Tensor positive = indicator(squares, [](float v) { return v != 0; });
  return div(x, sqrt(where(positive, squares, ones(squares.shape()))));
}

Tensor xavier(const Shape& shape, const Rng& rng) {
  const float bound = std::sqrt(6.f / static_cast<float>(shape[0] + (shape.rank() == 2 ? shape[1] : 1)));
  return parameter(uniform(shape, rng, -bound, bound));
}

}  // namespace

Tensor Constant::scores(const Tensor& q, const Tensor& k) const { return no_scores(q, k); }
PairScores Constant::lower(const Tensor& q, const Tensor& k) const { return key_only(q, k, {}); }

namespace {
Tensor salience(const Salience& s, const Tensor& k) {
  check_vector("salience", s.w, k);
  check(s.temperature > 0, "[salience] the temperature must be positive, got ", s.temperature);
  return scale(along(k, s.w), 1 / s.temperature);
}
}  // namespace
Salience Salience::random(int64_t, int64_t key_width, const Rng& rng) { return {xavier({key_width}, rng.at("w"))}; }
Tensor Salience::scores(const Tensor& q, const Tensor& k) const { return for_every_query(salience(*this, k), q, k); }
PairScores Salience::lower(const Tensor& q, const Tensor& k) const { return key_only(q, k, salience(*this, k)); }

Tensor Gaussian::scores(const Tensor& q, const Tensor& k) const {
  return scale(squared_distances("gaussian", width, q, k), -0.5f);
}
PairScores Gaussian::lower(const Tensor& q, const Tensor& k) const {
  return distance("gaussian", ScoreForm::gaussian, width, q, k);
}

Tensor Boxcar::scores(const Tensor& q, const Tensor& k) const {
  const Tensor squares = squared_distances("boxcar", width, q, k);
  return log_or_masked(indicator(squares, [](float v) { return v <= 1 ? 1 : v > 1 ? 0 : v; }));  // NaN stays NaN
}
PairScores Boxcar::lower(const Tensor& q, const Tensor& k) const {
  return distance("boxcar", ScoreForm::boxcar, width, q, k);
}

Tensor Triangular::scores(const Tensor& q, const Tensor& k) const {
  return log_or_masked(shift(neg(root(squared_distances("triangular", width, q, k))), 1));
}
PairScores Triangular::lower(const Tensor& q, const Tensor& k) const {
  return distance("triangular", ScoreForm::triangular, width, q, k);
}

Tensor Epanechnikov::scores(const Tensor& q, const Tensor& k) const {
  return log_or_masked(shift(neg(squared_distances("epanechnikov", width, q, k)), 1));
}
PairScores Epanechnikov::lower(const Tensor& q, const Tensor& k) const {
  return distance("epanechnikov", ScoreForm::epanechnikov, width, q, k);
}

Tensor NegativeSquaredDistance::scores(const Tensor& q, const Tensor& k) const {
  return neg(squared_distances("negative squared distance", scalar(1), q, k));
}
PairScores NegativeSquaredDistance::lower(const Tensor& q, const Tensor& k) const {
  check_widths("negative squared distance", q, k);
  return {.q = q, .k = k, .form = ScoreForm::gaussian, .scale = std::sqrt(2.f)};
}

Tensor Dot::scores(const Tensor& q, const Tensor& k) const {
  check_widths("dot", q, k);
  return matmul(q, k, Transpose::no, Transpose::yes);
}

Tensor ScaledDot::scores(const Tensor& q, const Tensor& k) const {
  check_widths("scaled dot", q, k);
  return qkv::scale(matmul(q, k, Transpose::no, Transpose::yes), scale_for(q.size(-1)));
}

namespace {
Tensor projected_query(const Bilinear& s, const Tensor& q, const Tensor& k) {
  check_present("bilinear", s.W, "W");
  check(s.W.shape() == Shape{q.size(-1), k.size(-1)}, "[bilinear] W must be (query width, key width): ", s.W.shape(),
        " for queries ", q.shape(), " and keys ", k.shape());
  return matmul(q, s.W);
}
}  // namespace
Bilinear Bilinear::random(int64_t query_width, int64_t key_width, const Rng& rng) {
  return {xavier({query_width, key_width}, rng.at("W"))};
}
Tensor Bilinear::scores(const Tensor& q, const Tensor& k) const {
  return matmul(projected_query(*this, q, k), k, Transpose::no, Transpose::yes);
}
PairScores Bilinear::lower(const Tensor& q, const Tensor& k) const { return {projected_query(*this, q, k), k}; }

Tensor Cosine::scores(const Tensor& q, const Tensor& k) const {
  check_widths("cosine", q, k);
  check_present("cosine", temperature, "temperature");
  return div(matmul(unit(q), unit(k), Transpose::no, Transpose::yes), reshape(temperature, Shape{}));
}
PairScores Cosine::lower(const Tensor& q, const Tensor& k) const {
  check_widths("cosine", q, k);
  check_present("cosine", temperature, "temperature");
  check(temperature.numel() == 1 && temperature.item() > 0,
        "[cosine] the temperature must be one positive number, got ",
        temperature.numel() == 1 ? text(temperature.item()) : temperature.shape().str());
  return {.q = unit(q), .k = unit(k), .factor = div(scalar(1), reshape(temperature, Shape{}))};
}

namespace {
Tensor vector_sum(const VectorSum& s, const Tensor& x) {
  if (!s.w) return sum(x, -1);
  check_vector("vector sum", *s.w, x);
  return along(x, *s.w);
}
}  // namespace
Tensor VectorSum::scores(const Tensor& q, const Tensor& k) const {
  check_widths("vector sum", q, k);
  return add(for_every_query(vector_sum(*this, k), q, k),
             reshape(vector_sum(*this, q), {q.size(0), q.size(1), q.size(2), 1}));
}
PairScores VectorSum::lower(const Tensor& q, const Tensor& k) const {
  check_widths("vector sum", q, k);
  return key_only(q, k, vector_sum(*this, k));
}

Additive Additive::random(int64_t query_width, int64_t key_width, int64_t hidden, const Rng& rng) {
  return {xavier({hidden, query_width}, rng.at("W_q")), xavier({hidden, key_width}, rng.at("W_k")),
          xavier({hidden}, rng.at("w_v"))};
}

Tensor Additive::project(const Tensor& k) const {
  check_present("additive", W_k, "W_k");
  check_present("additive", w_v, "w_v");
  check(W_k.rank() == 2 && W_k.size(1) == k.size(-1) && w_v.shape() == Shape{W_k.size(0)},
        "[additive] W_k must be (h, key width), w_v (h): ", W_k.shape(), " and ", w_v.shape(), " for keys ", k.shape());
  return linear(k, W_k);
}

AdditiveScores ProjectedAdditive::lower(const Tensor& q, const Tensor& projected) const {
  check_present("additive", W_q, "W_q");
  check(W_q.rank() == 2 && W_q.size(1) == q.size(-1) && W_q.size(0) == projected.size(-1),
        "[additive] W_q must be (h, query width), h as in the keys: ", W_q.shape(), " for queries ", q.shape(),
        " and projected keys ", projected.shape());
  return {linear(q, W_q), projected, w_v};
}

Tensor ProjectedAdditive::scores(const Tensor& q, const Tensor& projected) const {
  const AdditiveScores s = lower(q, projected);
  return sum(mul(tanh(add(query_rows(s.pq), key_columns(s.pk))), s.w), -1);
}

}  // namespace qkv
