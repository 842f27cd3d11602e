// Changes of shape and order, each with its pullback below it.
#include "qkv/ops/shape.h"

#include <algorithm>
#include <array>

#include "qkv/kernels/rearrange.h"
#include "qkv/kernels/reduce.h"
#include "qkv/tensor/present.h"
#include "qkv/tensor/tape.h"

namespace qkv {

using kernels::Split;

namespace {

// (-1, 4) as text: a Shape cannot hold the -1.
std::string sizes_text(std::span<const int64_t> sizes) {
  std::string out = "(";
  for (size_t i = 0; i < sizes.size(); ++i) out += (i ? ", " : "") + std::to_string(sizes[i]);
  return out + (sizes.size() == 1 ? ",)" : ")");
}

Shape inferred(const Shape& from, std::span<const int64_t> sizes) {
  Shape shape;
  int open = -1;
  for (int64_t size : sizes) {
    if (size < -1 || (size == -1 && open >= 0))
      fail("[reshape] sizes must be at least 0, one may be -1: ", from, " to ", sizes_text(sizes));
    if (size == -1) open = shape.rank();
    shape.push_back(size == -1 ? 1 : size);
  }
  if (open >= 0) {
    const int64_t rest = shape.numel();
    if (rest == 0 || from.numel() % rest != 0)
      fail("[reshape] no size for the -1 fits: ", from, " to ", sizes_text(sizes));
    shape.set(open, from.numel() / rest);
  }
  check(shape.numel() == from.numel(), "[reshape] the number of elements differs: ", from, " to ", shape);
  return shape;
}

}  // namespace

// y = x.   dx = dy
Tensor reshape(const Tensor& x, std::span<const int64_t> sizes) {
  check_present("reshape", x);
  Tensor y = x.viewed(inferred(x.shape(), sizes));
  record("reshape", y, {&x}, [shape = x.shape()](Pull& pull) { pull.give(0, pull.dy().viewed(shape)); });
  return y;
}

namespace {

using Order = std::array<int, Shape::kMaxRank>;

Tensor permuted(const Tensor& x, const Order& order) {
  std::array<int64_t, Shape::kMaxRank> strides, sizes, in_strides;
  const size_t rank = static_cast<size_t>(x.rank());
  int64_t run = 1;
  for (size_t k = rank; k-- > 0;) {
    in_strides[k] = run;
    run *= x.size(static_cast<int>(k));
  }
  Shape shape = x.shape();
  for (size_t k = 0; k < rank; ++k) {
    sizes[k] = x.size(order[k]);
    strides[k] = in_strides[static_cast<size_t>(order[k])];
    shape.set(static_cast<int>(k), sizes[k]);
  }
  Tensor y = Tensor::empty(shape);
  kernels::permute(x.ptr(), y.mutable_ptr(), {sizes.data(), rank}, {strides.data(), rank});
  return y;
}

}  // namespace

// y = permute(x, order).   dx = permute(dy, the inverse order)
Tensor permute(const Tensor& x, std::span<const int> order) {
  check_present("permute", x);
  check(static_cast<int>(order.size()) == x.rank(), "[permute] an order of ", order.size(), " axes for shape ",
        x.shape());
  Order forward{}, inverse{};
  unsigned seen = 0;
  for (size_t k = 0; k < order.size(); ++k) {
    forward[k] = normal_axis("permute", order[k], x.rank());
    check(!(seen >> forward[k] & 1), "[permute] axis ", order[k], " is named twice for shape ", x.shape());
    seen |= 1u << forward[k];
    inverse[static_cast<size_t>(forward[k])] = static_cast<int>(k);
  }
  Tensor y = permuted(x, forward);
  record("permute", y, {&x}, [inverse](Pull& pull) { pull.give(0, permuted(pull.dy(), inverse)); });
  return y;
}

Tensor transpose(const Tensor& x, int a, int b) {
  check_present("transpose", x);
  Order order{};
  for (int k = 0; k < x.rank(); ++k) order[static_cast<size_t>(k)] = k;
  std::swap(order[static_cast<size_t>(normal_axis("transpose", a, x.rank()))],
            order[static_cast<size_t>(normal_axis("transpose", b, x.rank()))]);
  return permute(x, std::span<const int>(order.data(), static_cast<size_t>(x.rank())));
}

// y = x[begin:end].   dx[begin:end] = dy, else 0
Tensor slice(const Tensor& x, int axis, int64_t begin, int64_t end) {
  check_present("slice", x);
  axis = normal_axis("slice", axis, x.rank());
  check(0 <= begin && begin <= end && end <= x.size(axis), "[slice] ", begin, ":", end, " is outside axis ", axis,
        " of shape ", x.shape());
  Shape shape = x.shape();
  shape.set(axis, end - begin);
  const int64_t outer = shape.product(0, axis), inner = shape.product(axis + 1, shape.rank());
  const int64_t stride = x.size(axis) * inner, first = begin * inner, length = (end - begin) * inner;
  Tensor y;
  if (outer == 1) {
    y = x.part(first, shape);
  } else {
    y = Tensor::empty(shape);
    kernels::copy_rows(x.ptr() + first, stride, y.mutable_ptr(), length, outer, length);
  }
  record("slice", y, {&x}, [outer, stride, first, length](Pull& pull) {
    const auto [dx, add] = pull.into(0);
    const float* dy = pull.dy().ptr();
    if (add) return kernels::add_rows(dy, length, dx + first, stride, outer, length);
    for (int64_t o = 0; o < outer; ++o) {
      std::fill_n(dx + o * stride, first, 0.f);
      std::fill_n(dx + o * stride + first + length, stride - first - length, 0.f);
    }
    kernels::copy_rows(dy, length, dx + first, stride, outer, length);
  });
  return y;
}

Ids slice(const Ids& x, int axis, int64_t begin, int64_t end) {
  check_present("slice", x);
  axis = normal_axis("slice", axis, x.rank());
  check(0 <= begin && begin <= end && end <= x.size(axis), "[slice] ", begin, ":", end, " is outside axis ", axis,
        " of shape ", x.shape());
  Shape shape = x.shape();
  shape.set(axis, end - begin);
  const int64_t inner = shape.product(axis + 1, shape.rank()), length = (end - begin) * inner;
  Ids y = Ids::empty(shape);
  for (int64_t o = 0; o < shape.product(0, axis); ++o)
    std::copy_n(x.ptr() + (o * x.size(axis) + begin) * inner, length, y.mutable_ptr() + o * length);
  return y;
}

// y = [x_0, x_1, ...].   dx_i = the i-th part of dy
Tensor concat(std::span<const Tensor> parts, int axis) {
  check(!parts.empty(), "[concat] nothing to join: expected at least one tensor");
  for (const Tensor& part : parts) check_present("concat", part);
  const size_t count = parts.size();
  Shape shape = parts[0].shape();
  axis = normal_axis("concat", axis, shape.rank());
  int64_t total = 0;
  for (const Tensor& part : parts) {
    bool fits = part.rank() == shape.rank();
    for (int k = 0; fits && k < shape.rank(); ++k) fits = k == axis || part.size(k) == shape[k];
    check(fits, "[concat] shapes differ outside axis ", axis, ": ", parts[0].shape(), " and ", part.shape());
    total += part.size(axis);
  }
  shape.set(axis, total);
  const int64_t outer = shape.product(0, axis), inner = shape.product(axis + 1, shape.rank()), stride = total * inner;

  // From the pool: the inputs as the tape needs them, and the row length of each.
  const Buffer memory = Buffer::take(count * (sizeof(const Tensor*) + sizeof(int64_t)));
  auto* lengths = reinterpret_cast<int64_t*>(memory.data());
  auto* inputs = reinterpret_cast<const Tensor**>(lengths + count);
  Tensor y = Tensor::empty(shape);
  float* to = y.mutable_ptr();
  for (size_t i = 0; i < count; ++i) {
    inputs[i] = &parts[i];
    lengths[i] = parts[i].size(axis) * inner;
    kernels::copy_rows(parts[i].ptr(), lengths[i], to, stride, outer, lengths[i]);
    to += lengths[i];
  }
  Tensor* const output = &y;
  record("concat", std::span(&output, 1), std::span<const Tensor* const>(inputs, count),
         [memory, count, outer, stride](Pull& pull) {
           const auto* lengths = reinterpret_cast<const int64_t*>(memory.data());
           const float* dy = pull.dy().ptr();
           for (size_t i = 0; i < count; dy += lengths[i++]) {
             if (!pull.wants(static_cast<int>(i))) continue;
             const auto [dx, add] = pull.into(static_cast<int>(i));
             if (add)
               kernels::add_rows(dy, stride, dx, lengths[i], outer, lengths[i]);
             else
               kernels::copy_rows(dy, stride, dx, lengths[i], outer, lengths[i]);
           }
         });
  return y;
}

namespace {

// The shape with one axis `count` times as large.
Shape stretched(const char* op, const Shape& from, int axis, int64_t count) {
  Shape shape;
  for (int k = 0; k < from.rank(); ++k) {
    int64_t size = from[k];
    if (k == axis && __builtin_mul_overflow(size, count, &size))
      fail("[", op, "] too many elements: ", from, " times ", count);
    shape.push_back(size);
  }
  return shape;
}

// y[o, i, j] = x[o, j] for i < s.n.   dx[o, j] = sum_i dy[o, i, j]
Tensor repeated(const Tensor& x, Split s, const Shape& shape) {
  Tensor y = Tensor::empty(shape);
  kernels::spread(x.ptr(), y.mutable_ptr(), s, 1, false);
  return y;
}
void give_sum(Pull& pull, Split s, const Shape& shape) {
  Tensor dx = Tensor::empty(shape);
  kernels::sum(pull.dy().ptr(), dx.mutable_ptr(), s, 1);
  pull.give(0, std::move(dx));
}

}  // namespace

// As (outer, 1, inner) -> (outer, repeats, inner), outer including the axis.
Tensor repeat_interleave(const Tensor& x, int64_t repeats, int axis) {
  check_present("repeat_interleave", x);
  axis = normal_axis("repeat_interleave", axis, x.rank());
  check(repeats >= 0, "[repeat_interleave] the count cannot be negative: ", repeats, " for shape ", x.shape());
  Shape shape = x.shape();
  const Split s{shape.product(0, axis + 1), repeats, shape.product(axis + 1, shape.rank())};
  shape = stretched("repeat_interleave", shape, axis, repeats);
  Tensor y = repeated(x, s, shape);
  record("repeat_interleave", y, {&x}, [s, from = x.shape()](Pull& pull) { give_sum(pull, s, from); });
  return y;
}

// Axis by axis, as (outer, 1, inner) -> (outer, count, inner), inner including the axis.
Tensor tile(const Tensor& x, std::span<const int64_t> counts) {
  check_present("tile", x);
  if (counts.size() > Shape::kMaxRank || std::any_of(counts.begin(), counts.end(), [](int64_t n) { return n < 0; }))
    fail("[tile] expected at most ", Shape::kMaxRank, " counts of 0 or more: ", sizes_text(counts), " for shape ",
         x.shape());
  const int rank = std::max(x.rank(), static_cast<int>(counts.size()));
  Shape shape;
  for (int k = x.rank(); k < rank; ++k) shape.push_back(1);
  for (int64_t size : x.shape()) shape.push_back(size);
  Tensor y = x;
  for (int axis = rank - 1; axis >= 0; --axis) {
    const int k = axis - (rank - static_cast<int>(counts.size()));
    const int64_t count = k >= 0 ? counts[static_cast<size_t>(k)] : 1;
    if (count == 1 && axis > 0) continue;  // the first axis is never skipped: it gives the result its rank
    const Split s{shape.product(0, axis), count, shape.product(axis, rank)};
    shape = stretched("tile", shape, axis, count);
    Tensor next = repeated(y, s, shape);
    record("tile", next, {&y}, [s, from = y.shape()](Pull& pull) { give_sum(pull, s, from); });
    y = std::move(next);
  }
  return y;
}

namespace {

// y = x[mask].   dx[mask] = dy, else 0
template <class Mask>
Tensor select_by(const Tensor& x, const Mask& mask) {
  check_present("select", x, "x");
  check_present("select", mask, "mask");
  check(x.shape() == mask.shape(), "[select] the mask has a different shape: ", x.shape(), " and ", mask.shape());
  const int64_t n = x.numel();
  Tensor y = Tensor::empty({kernels::count_nonzero(mask.ptr(), n)});
  kernels::select(x.ptr(), mask.ptr(), y.mutable_ptr(), n);
  record("select", y, {&x}, [mask, n](Pull& pull) {
    const auto [dx, add] = pull.into(0);
    kernels::select_back(pull.dy().ptr(), mask.ptr(), dx, n, add);
  });
  return y;
}

// y = mask ? a : b.   da = mask ? dy : 0,  db = mask ? 0 : dy
template <class Mask>
Tensor where_by(const Mask& mask, const Tensor& a, const Tensor& b) {
  check_present("where", mask, "mask");
  check_present("where", a, "a");
  check_present("where", b, "b");
  check(a.shape() == b.shape(), "[where] shapes differ: ", a.shape(), " and ", b.shape());
  check(a.shape() == mask.shape(), "[where] the mask has a different shape: ", mask.shape(), " and ", a.shape());
  Tensor y = Tensor::empty(a.shape());
  kernels::where(mask.ptr(), a.ptr(), b.ptr(), y.mutable_ptr(), y.numel());
  record("where", y, {&a, &b}, [mask](Pull& pull) {
    const Tensor dy = pull.dy(), none = zeros(dy.shape());
    for (int input : {0, 1}) {
      if (!pull.wants(input)) continue;
      Tensor dx = Tensor::empty(dy.shape());
      const Tensor& taken = input == 0 ? dy : none;
      const Tensor& left = input == 0 ? none : dy;
      kernels::where(mask.ptr(), taken.ptr(), left.ptr(), dx.mutable_ptr(), dx.numel());
      pull.give(input, std::move(dx));
    }
  });
  return y;
}

}  // namespace

Tensor select(const Tensor& x, const Tensor& mask) { return select_by(x, mask.detached()); }
Tensor select(const Tensor& x, const Ids& mask) { return select_by(x, mask); }
Tensor where(const Tensor& mask, const Tensor& a, const Tensor& b) { return where_by(mask.detached(), a, b); }
Tensor where(const Ids& mask, const Tensor& a, const Tensor& b) { return where_by(mask, a, b); }

}  // namespace qkv
