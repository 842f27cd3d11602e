// Linformer and Nystromformer, made of products and of exact attention with few queries or few keys.
#include "qkv/attention/low_rank.h"

#include <algorithm>
#include <cmath>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/attention/seen_keys.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/matmul.h"
#include "qkv/ops/reduce.h"
#include "qkv/ops/shape.h"
#include "qkv/ops/softmax.h"

namespace qkv {
namespace {

constexpr AttendOptions kInner{.axis = HeadAxis::inner};

Mask as_mask(const PlainMask& mask) { return mask.lengths.defined() ? Mask::valid_lens(mask.lengths) : Mask::none(); }

// (B, L, H, D) -> (B, L, H D) and back.
Tensor joined(const Tensor& x) { return reshape(x, {x.size(0), x.size(1), x.size(2) * x.size(3)}); }
Tensor apart(const Tensor& x, int64_t heads) { return reshape(x, {x.size(0), x.size(1), heads, x.size(2) / heads}); }

void check_same_text(const char* op, const Tensor& q, const Tensor& k, const PlainMask& mask) {
  check(!mask.offset, "[", op, "] mixes all positions: it has no causal form");
  check(q.rank() == 4 && k.rank() == 4 && q.size(2) == k.size(2), "[", op,
        "] expected (B, L, H, D) with as many key heads as query heads, got ", q.shape(), " and ", k.shape());
}

// Means of segments: (B or 1, m, L). Segment s of a text of n tokens has the tokens from s n / m on, at least one.
Tensor segments(int64_t m, int64_t length, const PlainMask& mask) {
  const int64_t rows = mask.lengths.defined() ? mask.lengths.size(0) : 1;
  Tensor out = zeros({rows, m, length});
  for (int64_t b = 0; b < rows; ++b) {
    const int64_t n = mask.lengths.defined() ? std::min<int64_t>(mask.lengths.ptr()[b], length) : length;
    for (int64_t s = 0; s < m && n > 0; ++s) {
      const int64_t begin = s * n / m, end = std::max((s + 1) * n / m, begin + 1);
      std::fill(out.mutable_ptr() + (b * m + s) * length + begin, out.mutable_ptr() + (b * m + s) * length + end,
                1 / static_cast<float>(end - begin));
    }
  }
  return out;
}

}  // namespace

LowRank::LowRank(int64_t rank, int64_t positions, const Rng& rng) {
  check(rank > 0 && positions > 0, "[linformer] expected a rank and positions of 1 or more, got ", rank, " and ",
        positions);
  const float deviation = 1 / std::sqrt(static_cast<float>(rank));
  keys = parameter(normal({rank, positions}, rng.at("keys"), 0, deviation));
  values = parameter(normal({rank, positions}, rng.at("values"), 0, deviation));
}

Tensor LowRank::operator()(const Tensor& q, const Tensor& k, const Tensor& v, const PlainMask& mask) const {
  check_same_text("linformer", q, k, mask);
  const int64_t n = k.size(1), heads = k.size(2);
  require(n <= keys.size(1),
          "[linformer] a text of {tokens} tokens is longer than the {positions} positions that were "
          "learned",
          "tokens"_a = n, "positions"_a = keys.size(1));
  const auto fewer = [&](const Tensor& projection, const Tensor& x) {
    return apart(matmul(slice(projection, 1, 0, n), joined(only_seen(x, mask, 1))), heads);
  };
  return attend(ScaledDot{}, q, fewer(keys, k), fewer(values, v), Mask::none(), {}, kInner).output;
}

// Z0 = A^T / (largest column sum * largest row sum), so that the iteration converges.
Tensor pseudo_inverse(const Tensor& a, int64_t steps) {
  const int64_t m = a.size(-1);
  const Tensor identity = eye(m);
  const Tensor norms =
      mul(max(sum(a, -2, KeepDims::yes), -1, KeepDims::yes), max(sum(a, -1, KeepDims::yes), -2, KeepDims::yes));
  Tensor z = div(transpose(a), norms);
  for (int64_t s = 0; s < steps; ++s) {
    const Tensor az = matmul(a, z);
    Tensor inner = sub(scale(identity, 7), az);
    inner = sub(scale(identity, 15), matmul(az, inner));
    inner = sub(scale(identity, 13), matmul(az, inner));
    z = scale(matmul(z, inner), 0.25f);
  }
  return z;
}

Tensor Nystrom::operator()(const Tensor& q, const Tensor& k, const Tensor& v, const PlainMask& mask) const {
  check_same_text("nystrom", q, k, mask);
  check(q.size(1) == k.size(1), "[nystrom] queries and keys are not the same text: ", q.shape(), " and ", k.shape());
  check(landmarks > 0 && steps > 0, "[nystrom] expected one landmark and one step or more, got ", landmarks, " and ",
        steps);
  const int64_t n = q.size(1), heads = q.size(2), B = q.size(0);
  if (q.numel() == 0) return q;
  Tensor means = segments(landmarks, n, mask);
  if (means.size(0) == 1 && B > 1) means = reshape(means, {landmarks, n});
  const auto landmarks_of = [&](const Tensor& x) {
    return apart(matmul(means, joined(only_seen(x, mask, 1))), heads);  // (B, m, H, D)
  };
  const Tensor ql = landmarks_of(q), kl = landmarks_of(k);
  const Tensor scores = matmul(permute(ql, {0, 2, 1, 3}), permute(kl, {0, 2, 1, 3}), Transpose::no, Transpose::yes);
  const Tensor z = pseudo_inverse(softmax(scale(scores, 1 / std::sqrt(static_cast<float>(q.size(3))))), steps);
  const Tensor read = attend(ScaledDot{}, ql, k, v, as_mask(mask), {}, kInner).output;  // by the landmarks
  const Tensor mixed = permute(matmul(z, permute(read, {0, 2, 1, 3})), {0, 2, 1, 3});
  return attend(ScaledDot{}, q, kl, mixed, Mask::none(), {}, kInner).output;
}

}  // namespace qkv
