// Linear attention and random features.
#include "qkv/attention/feature_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "qkv/attention/seen_keys.h"
#include "qkv/nn/init.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/matmul.h"
#include "qkv/ops/reduce.h"
#include "qkv/ops/running_attention.h"
#include "qkv/ops/shape.h"

namespace qkv {
namespace {

constexpr double kLargestExponent = 60;  // e^60 times many keys fits a float

// 1 where x is 0, else x: a row that sees nothing has sums of 0.
Tensor not_zero(const Tensor& x) {
  Tensor is_zero = Tensor::empty(x.shape());
  std::transform(x.ptr(), x.ptr() + x.numel(), is_zero.mutable_ptr(), [](float v) { return v == 0 ? 1.f : 0.f; });
  return where(is_zero, ones(x.shape()), x);
}

// Orthogonal directions whose lengths are those of Gaussian vectors.
void orthogonal_block(int64_t rows, int64_t width, const Rng& rng, float* out) {
  const Tensor directions = orthogonal(width, width, rng.at("directions"));
  const Tensor drawn = normal({width, width}, rng.at("lengths"));
  for (int64_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (int64_t c = 0; c < width; ++c) squares += std::pow(drawn.ptr()[r * width + c], 2.0);
    const auto length = static_cast<float>(std::sqrt(squares));
    for (int64_t c = 0; c < width; ++c) out[r * width + c] = length * directions.ptr()[r * width + c];
  }
}

}  // namespace

Tensor pooled_by_features(const Tensor& fq, const Tensor& fk, const Tensor& v, const PlainMask& mask) {
  const int64_t B = v.size(0), H = v.size(1), keys = v.size(2), D = v.size(3);
  const Tensor with_one = concat({v, ones({B, H, keys, 1})}, 3);  // the last column adds up the weights
  const Tensor k = only_seen(fk, mask, 2), values = only_seen(with_one, mask, 2);
  const int64_t queries = fq.size(2);
  Tensor y;
  if (mask.offset && !(queries == 1 && *mask.offset + 1 >= keys)) {
    y = running_attention(fq, k, values, *mask.offset);
  } else {
    y = matmul(fq, matmul(k, values, Transpose::yes));
  }
  return div(slice(y, 3, 0, D), not_zero(slice(y, 3, D, D + 1)));
}

// elu(x) + 1 = max(x, 0) + e^min(x, 0)
Tensor LinearAttention::features(const Tensor& x) {
  return add(relu(x), exp(clamp(x, -std::numeric_limits<float>::max(), 0)));
}

RandomFeatures::RandomFeatures(int64_t features, int64_t width, uint64_t seed) {
  check(features > 0 && width > 0, "[random_features] expected one feature or more, got ", features, " of width ",
        width);
  if (ShapesOnly::active()) return;
  directions = Tensor::empty({features, width});
  double longest = 0;
  for (int64_t first = 0; first < features; first += width)
    orthogonal_block(std::min(width, features - first), width,
                     Rng(seed).at("random_features").at(static_cast<uint64_t>(first)),
                     directions.mutable_ptr() + first * width);
  for (int64_t r = 0; r < features; ++r) {
    double length = 0;
    for (int64_t c = 0; c < width; ++c) length += std::pow(directions.ptr()[r * width + c], 2.0);
    longest = std::max(longest, length);
  }
  shift_ = static_cast<float>(std::max(0.0, longest / 2 - kLargestExponent));  // w . x - |x|^2 / 2 <= |w|^2 / 2
}

Tensor RandomFeatures::projected(const Tensor& x) const {
  const float root = 1 / std::sqrt(std::sqrt(static_cast<float>(x.size(3))));
  return matmul(scale(x, root), directions, Transpose::no, Transpose::yes);
}

// What a query's features have in common cancels: |x|^2 / 2 does, and the largest exponent becomes 0.
Tensor RandomFeatures::query_features(const Tensor& q) const {
  const Tensor x = projected(q);
  if (x.numel() == 0) return x;
  return exp(sub(x, max(x, -1, KeepDims::yes).detached()));
}

Tensor RandomFeatures::key_features(const Tensor& k) const {
  const float half = 0.5f / std::sqrt(static_cast<float>(k.size(3)));
  return exp(shift(sub(projected(k), scale(sum(mul(k, k), -1, KeepDims::yes), half)), -shift_));
}

}  // namespace qkv
