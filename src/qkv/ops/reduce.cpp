// Reductions: neighbouring axes are merged, and each group of them is one pass over (outer, n, inner).
#include "qkv/ops/reduce.h"

#include <cmath>
#include <limits>

#include "qkv/kernels/elementwise.h"
#include "qkv/kernels/reduce.h"
#include "qkv/tensor/present.h"
#include "qkv/tensor/tape.h"

namespace qkv {

using kernels::Split;

Axes::Axes(std::span<const int> axes) {
  check(axes.size() <= Shape::kMaxRank, "[axes] at most ", Shape::kMaxRank, " axes, got ", axes.size());
  for (int axis : axes) axes_[static_cast<size_t>(count_++)] = axis;
}

std::array<bool, Shape::kMaxRank> Axes::of(const char* op, const Shape& shape) const {
  std::array<bool, Shape::kMaxRank> reduced{};
  for (int i = 0; i < count_; ++i) {
    const int axis = axes_[static_cast<size_t>(i)];
    bool& named = reduced[static_cast<size_t>(normal_axis(op, axis, shape.rank()))];
    check(!named, "[", op, "] axis ", axis, " is named twice for shape ", shape);
    named = true;
  }
  if (count_ == 0) reduced.fill(true);
  return reduced;
}

namespace {

// Applies reduce(x, split, shape) to each group of neighbouring reduced axes, last group first, so that the first
// maximum of first maxima is the first in row-major order. `shape` keeps the reduced axes, with size 1.
template <class Reduce>
Tensor over_groups(const char* op, const Tensor& x, const Axes& axes, KeepDims keep, Reduce&& reduce) {
  check_present(op, x);
  const auto reduced = axes.of(op, x.shape());
  Shape shape = x.shape(), result;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (!reduced[static_cast<size_t>(axis)])
      result.push_back(shape[axis]);
    else if (keep == KeepDims::yes)
      result.push_back(1);
  }
  Tensor y = x;
  bool done = false;
  for (int end = x.rank(); end > 0;) {
    if (!reduced[static_cast<size_t>(end - 1)]) {
      --end;
      continue;
    }
    int begin = end;
    while (begin > 0 && reduced[static_cast<size_t>(begin - 1)]) --begin;
    const Split split{shape.product(0, begin), shape.product(begin, end), shape.product(end, shape.rank())};
    for (int axis = begin; axis < end; ++axis) shape.set(axis, 1);
    bool more = false;
    for (int axis = 0; axis < begin; ++axis) more |= reduced[static_cast<size_t>(axis)];
    y = reduce(y, split, more ? shape : result);
    done = true;
    end = begin;
  }
  return done ? y : reduce(x, Split{x.numel(), 1, 1}, result);  // a scalar
}

Tensor summed(const Tensor& x, Split s, const Shape& shape, double divisor) {
  Tensor y = Tensor::empty(shape);
  kernels::sum(x.ptr(), y.mutable_ptr(), s, divisor);
  return y;
}
void spread_gradient(Pull& pull, Split s, float factor) {
  const auto [dx, add] = pull.into(0);
  kernels::spread(pull.dy().ptr(), dx, s, factor, add);
}

}  // namespace

// y = sum_i x_i.   dx_i = dy
Tensor sum(const Tensor& x, const Axes& axes, KeepDims keep) {
  return over_groups("sum", x, axes, keep, [](const Tensor& t, Split s, const Shape& shape) {
    Tensor y = summed(t, s, shape, 1);
    record("sum", y, {&t}, [s](Pull& pull) { spread_gradient(pull, s, 1); });
    return y;
  });
}

// y = sum_i x_i / n.   dx_i = dy / n
Tensor mean(const Tensor& x, const Axes& axes, KeepDims keep) {
  return over_groups("mean", x, axes, keep, [](const Tensor& t, Split s, const Shape& shape) {
    Tensor y = summed(t, s, shape, static_cast<double>(s.n));
    record("mean", y, {&t}, [s](Pull& pull) { spread_gradient(pull, s, 1 / static_cast<float>(s.n)); });
    return y;
  });
}

// y = max_i x_i.   dx_i = dy for the first i with x_i = y, else 0
Tensor max(const Tensor& x, const Axes& axes, KeepDims keep) {
  return over_groups("max", x, axes, keep, [](const Tensor& t, Split s, const Shape& shape) {
    check(s.n > 0 || s.outer * s.inner == 0, "[max] no maximum over an axis of size 0: ", t.shape(), " to ", shape);
    Tensor y = Tensor::empty(shape);
    if (y.numel() > 0) kernels::max(t.ptr(), y.mutable_ptr(), s);
    record("max", y, {&t}, [t = Tape::saved(t, {&t}), y, s](Pull& pull) {
      const auto [dx, add] = pull.into(0);
      kernels::max_back(t.ptr(), y.ptr(), pull.dy().ptr(), dx, s, add);
    });
    return y;
  });
}

// y = min_i x_i.   dx_i = dy for the first i with x_i = y, else 0
Tensor min(const Tensor& x, const Axes& axes, KeepDims keep) {
  return over_groups("min", x, axes, keep, [](const Tensor& t, Split s, const Shape& shape) {
    check(s.n > 0 || s.outer * s.inner == 0, "[min] no minimum over an axis of size 0: ", t.shape(), " to ", shape);
    Tensor y = Tensor::empty(shape);
    if (y.numel() > 0) {  // -max(-x)
      Tensor negative = Tensor::empty(t.shape());
      kernels::neg(t.ptr(), negative.mutable_ptr(), t.numel());
      kernels::max(negative.ptr(), y.mutable_ptr(), s);
      kernels::neg(y.ptr(), y.mutable_ptr(), y.numel());
    }
    record("min", y, {&t}, [t = Tape::saved(t, {&t}), y, s](Pull& pull) {
      const auto [dx, add] = pull.into(0);
      kernels::max_back(t.ptr(), y.ptr(), pull.dy().ptr(), dx, s, add);  // finds the place of y, whatever it is
    });
    return y;
  });
}

Ids argmax(const Tensor& x, int axis) {
  check_present("argmax", x);
  axis = normal_axis("argmax", axis, x.rank());
  const Split s{x.shape().product(0, axis), x.size(axis), x.shape().product(axis + 1, x.rank())};
  Shape shape;
  for (int k = 0; k < x.rank(); ++k)
    if (k != axis) shape.push_back(x.size(k));
  check(s.n > 0 || shape.numel() == 0, "[argmax] no maximum over an axis of size 0: ", x.shape(), " to ", shape);
  check(s.n <= std::numeric_limits<int32_t>::max(), "[argmax] axis ", axis, " of shape ", x.shape(), " is too long");
  Ids out = Ids::empty(shape);
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t j = 0; j < s.inner; ++j) {
      const float* column = x.ptr() + o * s.n * s.inner + j;
      int64_t best = 0;
      for (int64_t i = 1; i < s.n && !std::isnan(column[best * s.inner]); ++i)
        if (!(column[i * s.inner] <= column[best * s.inner])) best = i;  // larger, or NaN
      out.mutable_ptr()[o * s.inner + j] = static_cast<int32_t>(best);
    }
  return out;
}

}  // namespace qkv
