// Masks: composition, and compilation to key intervals, a dense keep and biases.
#include "qkv/attention/mask.h"

#include <algorithm>
#include <cmath>

#include "qkv/ops/diagonals.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/present.h"

namespace qkv {
namespace {

constexpr float kMostBias = 2e38f;  // kernels hold scores in units of log 2: a bias times log2(e) must fit a float

// Element-wise minimum: the intersection of two sets of lengths.
Ids shorter(const char* what, const Ids& a, const Ids& b) {
  if (!a.defined()) return b;
  if (!b.defined()) return a;
  check(a.shape() == b.shape(), "[mask] ", what, " of different shapes: ", a.shape(), " & ", b.shape());
  Ids out = Ids::empty(a.shape());
  std::transform(a.ptr(), a.ptr() + a.numel(), b.ptr(), out.mutable_ptr(),
                 [](int32_t x, int32_t y) { return std::min(x, y); });
  return out;
}

// Messages that `qkv attend` shows are in the user's language.
void check_not_negative(const Text& what, const Ids& lengths) {
  for (int32_t n : lengths.data())
    require(n >= 0, "[mask] {what} cannot be negative, got {n}", "what"_a = what, "n"_a = n);
}

enum class Seen { where_one, where_zero };

Tensor zeros_and_ones(const char* name, const Tensor& x, Seen seen) {
  check_present("mask", x, name);
  check(x.rank() >= 2 && x.rank() <= 4, "[mask] ", name, " takes (Lq, Lk), (B, Lq, Lk) or (B, H, Lq, Lk), got ",
        x.shape());
  Tensor out = Tensor::empty(x.shape());
  for (int64_t i = 0; i < x.numel(); ++i) {
    const float v = x.ptr()[i];
    require(v == 0 || v == 1, "[mask] {name} takes zeros and ones, got {v}", "name"_a = name, "v"_a = v);
    out.mutable_ptr()[i] = seen == Seen::where_one ? v : 1 - v;
  }
  return out;
}

Tensor as_floats(const char* name, const Ids& x) {
  check_present("mask", x, name);
  Tensor out = Tensor::empty(x.shape());
  std::transform(x.ptr(), x.ptr() + x.numel(), out.mutable_ptr(), [](int32_t v) { return static_cast<float>(v); });
  return out;
}

// Three axes mean (B, Lq, Lk), four (B, H, Lq, Lk): aligned at the last axis, B would meet H.
void check_ranks(const char* what, const Shape& a, const Shape& b) {
  check(std::min(a.rank(), b.rank()) == 2 || a.rank() == b.rank(), "[mask] ", what,
        " with and without a head axis: ", a, " & ", b);
}

void check_fits(const char* op, bool ok, const Ids& lengths, const Shape& weights) {
  require(ok, "[{op}] lengths do not fit the weights (B, H, Lq, Lk): {lengths} and {weights}", "op"_a = op,
          "lengths"_a = lengths.shape(), "weights"_a = weights);
}

// The mask's shape as (1 or B, 1 or H, 1 or Lq, 1 or Lk).
Shape four_axes(const char* op, const Text& what, const Shape& s, const MaskSizes& sizes) {
  require(s.rank() != 3 || sizes.rank != 4,
          "[{op}] {what} has three axes although there are heads: expected (B, 1 or H, Lq, Lk), got {s}", "op"_a = op,
          "what"_a = what, "s"_a = s);
  const Shape full = s.rank() == 2 ? Shape{1, 1, s[0], s[1]} : s.rank() == 3 ? Shape{s[0], 1, s[1], s[2]} : s;
  const Shape weights{sizes.batch, sizes.heads, sizes.queries, sizes.keys};
  for (int axis = 0; axis < 4; ++axis)
    require(full[axis] == 1 || full[axis] == weights[axis],
            "[{op}] {what} does not fit the weights (B, H, Lq, Lk): {s} and {weights}", "op"_a = op, "what"_a = what,
            "s"_a = s, "weights"_a = weights);
  return full;
}

}  // namespace

Mask Mask::valid_lens(const Ids& lengths) {
  check_present("mask", lengths, "valid_lens");
  check(lengths.rank() == 1 || lengths.rank() == 2, "[mask] valid_lens takes lengths (B) or (B, Lq), got ",
        lengths.shape());
  check_not_negative(tr("a valid length"), lengths);
  Mask m;
  (lengths.rank() == 1 ? m.lengths_ : m.row_lengths_) = lengths;
  return m;
}

Mask Mask::causal(int64_t offset) {
  check(offset > -kUnlimited && offset < kUnlimited, "[mask] causal offset out of range: ", offset);
  Mask m;
  m.right_ = offset;
  return m;
}

Mask Mask::window(int64_t left, int64_t right) {
  check(left >= 0 && right >= 0 && left <= kUnlimited && right <= kUnlimited,
        "[mask] window sizes must be 0 or more, got ", left, " and ", right);
  Mask m;
  m.left_ = left;
  m.right_ = right;
  return m;
}

Mask Mask::prefix(const Ids& lengths) {
  check_present("mask", lengths, "prefix");
  check(lengths.rank() == 1, "[mask] prefix takes lengths (B), got ", lengths.shape());
  check_not_negative(tr("a prefix length"), lengths);
  Mask m;
  m.prefix_ = lengths;
  return m;
}

Mask Mask::keep(const Tensor& seen) {
  Mask m;
  m.keep_ = zeros_and_ones("keep", seen, Seen::where_one);
  return m;
}

Mask Mask::drop(const Tensor& hidden) {
  Mask m;
  m.keep_ = zeros_and_ones("drop", hidden, Seen::where_zero);
  return m;
}

Mask Mask::keep(const Ids& seen) { return keep(as_floats("keep", seen)); }
Mask Mask::drop(const Ids& hidden) { return drop(as_floats("drop", hidden)); }

Mask Mask::bias(const Tensor& added) {
  check_present("mask", added, "bias");
  check(added.rank() >= 2 && added.rank() <= 4, "[mask] bias takes (Lq, Lk), (B, Lq, Lk) or (B, H, Lq, Lk), got ",
        added.shape());
  for (const float value : added.data())
    check(!(value > kMostBias && std::isfinite(value)), "[mask] a bias of ", value,
          " is too large: scores would overflow a float");
  Mask m;
  m.bias_ = added;
  return m;
}

Mask Mask::relative(const Tensor& diagonals) {
  check_present("mask", diagonals, "relative");
  check(diagonals.rank() == 2, "[mask] relative takes diagonals (1 or H, Lq + Lk - 1), got ", diagonals.shape());
  Mask m;
  m.relative_ = diagonals;
  return m;
}

Mask Mask::operator&(const Mask& other) const {
  Mask m = *this;
  m.left_ = std::min(left_, other.left_);
  m.right_ = std::min(right_, other.right_);
  m.lengths_ = shorter("valid lengths", lengths_, other.lengths_);
  m.row_lengths_ = shorter("valid lengths", row_lengths_, other.row_lengths_);
  m.prefix_ = shorter("prefixes", prefix_, other.prefix_);
  if (!keep_.defined()) m.keep_ = other.keep_;
  if (keep_.defined() && other.keep_.defined()) {
    check_ranks("keep masks", keep_.shape(), other.keep_.shape());
    m.keep_ = mul(keep_, other.keep_);
  }
  if (!bias_.defined()) m.bias_ = other.bias_;
  if (bias_.defined() && other.bias_.defined()) {
    check_ranks("biases", bias_.shape(), other.bias_.shape());
    m.bias_ = add(bias_, other.bias_);
  }
  if (!relative_.defined()) m.relative_ = other.relative_;
  if (relative_.defined() && other.relative_.defined()) {
    check(relative_.size(1) == other.relative_.size(1),
          "[mask] relative biases of different lengths: ", relative_.shape(), " & ", other.relative_.shape());
    m.relative_ = add(relative_, other.relative_);
  }
  return m;
}

bool Mask::has_intervals() const {
  return left_ != kUnlimited || right_ != kUnlimited || lengths_.defined() || row_lengths_.defined() ||
         prefix_.defined();
}

bool Mask::is_none() const { return !has_intervals() && !keep_.defined() && !bias_.defined() && !relative_.defined(); }

std::optional<PlainMask> Mask::plain() const {
  const bool other = left_ != kUnlimited || row_lengths_.defined() || prefix_.defined() || keep_.defined() ||
                     bias_.defined() || relative_.defined() || (right_ != kUnlimited && right_ < 0);
  if (other) return {};
  return PlainMask{right_ == kUnlimited ? std::nullopt : std::optional<int64_t>(right_), lengths_};
}

Mask PlainMask::mask() const {
  return (offset ? Mask::causal(*offset) : Mask::none()) &
         (lengths.defined() ? Mask::valid_lens(lengths) : Mask::none());
}

void Mask::check_lengths(const char* op, const MaskSizes& sizes) const {
  const Shape weights{sizes.batch, sizes.heads, sizes.queries, sizes.keys};
  for (const Ids* lengths : {&lengths_, &prefix_})
    check_fits(op, !lengths->defined() || lengths->size(0) == sizes.batch, *lengths, weights);
  check_fits(op, !row_lengths_.defined() || row_lengths_.shape() == Shape{sizes.batch, sizes.queries}, row_lengths_,
             weights);
}

void Mask::plan_intervals(AttentionPlan& plan, const MaskSizes& sizes) const {
  const bool by_batch = lengths_.defined() || row_lengths_.defined() || prefix_.defined();
  const int64_t rows = by_batch ? sizes.batch : 1;
  plan.begin = Ids::empty({rows, sizes.queries});
  plan.end = Ids::empty({rows, sizes.queries});
  for (int64_t b = 0; b < rows; ++b)
    for (int64_t i = 0; i < sizes.queries; ++i) {
      const int64_t at = b * sizes.queries + i;
      const int64_t first = left_ == kUnlimited ? 0 : i - left_;
      int64_t last = right_ == kUnlimited ? sizes.keys : i + right_ + 1;
      if (lengths_.defined()) last = std::min<int64_t>(last, lengths_.ptr()[b]);
      if (row_lengths_.defined()) last = std::min<int64_t>(last, row_lengths_.ptr()[at]);
      if (prefix_.defined()) last = std::min<int64_t>(last, std::max<int64_t>(i + 1, prefix_.ptr()[b]));
      last = std::clamp<int64_t>(last, 0, sizes.keys);
      plan.end.mutable_ptr()[at] = static_cast<int32_t>(last);
      plan.begin.mutable_ptr()[at] = static_cast<int32_t>(std::clamp<int64_t>(first, 0, last));
    }
}

void Mask::plan_keep(const char* op, AttentionPlan& plan, const MaskSizes& sizes) const {
  const Shape s = four_axes(op, tr("a keep mask"), keep_.shape(), sizes);
  const Shape wide{s[0], s[1], sizes.queries, sizes.keys};
  plan.keep = {wide, Buffer::take(static_cast<size_t>(std::max<int64_t>(wide.numel(), 1)))};
  auto* to = reinterpret_cast<uint8_t*>(plan.keep.bytes.data());
  for (int64_t head = 0; head < s[0] * s[1]; ++head)
    for (int64_t i = 0; i < sizes.queries; ++i) {
      const float* from = keep_.ptr() + (head * s[2] + (s[2] == 1 ? 0 : i)) * s[3];
      for (int64_t j = 0; j < sizes.keys; ++j) *to++ = from[s[3] == 1 ? 0 : j] != 0;
    }
}

AttentionPlan Mask::plan(const char* op, const MaskSizes& sizes) const {
  check(sizes.keys <= kUnlimited && sizes.queries <= kUnlimited, "[", op, "] too many queries or keys: ", sizes.queries,
        " and ", sizes.keys);
  AttentionPlan plan;
  if (has_intervals()) {
    check_lengths(op, sizes);
    plan_intervals(plan, sizes);
  }
  if (keep_.defined()) plan_keep(op, plan, sizes);
  if (bias_.defined()) {
    const Shape s = four_axes(op, tr("a bias"), bias_.shape(), sizes);
    const Shape wide{s[0], s[1], sizes.queries, sizes.keys};
    plan.bias = bias_.shape() == s ? bias_ : reshape(bias_, s);
    if (!(s == wide)) plan.bias = add(plan.bias, zeros(wide));
  }
  if (relative_.defined()) {
    const Shape s = relative_.shape(), weights{sizes.batch, sizes.heads, sizes.queries, sizes.keys};
    check((s[0] == 1 || s[0] == sizes.heads) && s[1] == diagonals_of(sizes.queries, sizes.keys), "[", op,
          "] a relative bias (1 or H, Lq + Lk - 1) does not fit the weights (B, H, Lq, Lk): ", s, " and ", weights);
    plan.relative = reshape(relative_, {1, s[0], s[1]});
  }
  return plan;
}

}  // namespace qkv
