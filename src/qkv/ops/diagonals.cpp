// Diagonal ops: forward and pullback side by side. Sums along a diagonal are taken in double and in order.
#include "qkv/ops/diagonals.h"

#include <vector>

#include "qkv/core/parallel.h"
#include "qkv/tensor/present.h"
#include "qkv/tensor/tape.h"

namespace qkv {

// y_ij = x[j - i + Lq - 1].   dx[t] = sum over the pairs of diagonal t of dy_ij
Tensor dense_of_diagonals(const Tensor& x, int64_t queries, int64_t keys) {
  check_present("dense_of_diagonals", x);
  const int64_t count = diagonals_of(queries, keys);
  check(x.rank() >= 1 && queries >= 0 && keys >= 0 && x.size(-1) == count, "[dense_of_diagonals] expected ", count,
        " diagonals for the weights ", Shape{queries, keys}, ", got ", x.shape());
  Shape shape = x.shape();
  shape.set(-1, queries);
  shape.push_back(keys);
  Tensor y = Tensor::empty(shape);
  const int64_t heads = x.shape().product(0, x.rank() - 1);
  const double ns = 0.3 * static_cast<double>(y.numel());
  parallel_for(heads, ns, [&](int64_t h) {
    for (int64_t i = 0; i < queries; ++i) {
      std::copy_n(x.ptr() + h * count + queries - 1 - i, keys, y.mutable_ptr() + (h * queries + i) * keys);
    }
  });
  record("dense_of_diagonals", y, {&x}, [shape = x.shape(), heads, count, queries, keys, ns](Pull& p) {
    const Tensor& dy = p.dy();
    Tensor dx = Tensor::empty(shape);
    parallel_for(heads, ns, [&](int64_t h) {
      std::vector<double> sums(static_cast<size_t>(count));
      for (int64_t i = 0; i < queries; ++i) {
        for (int64_t j = 0; j < keys; ++j) {
          sums[static_cast<size_t>(j - i + queries - 1)] += double{dy.ptr()[(h * queries + i) * keys + j]};
        }
      }
      std::copy(sums.begin(), sums.end(), dx.mutable_ptr() + h * count);
    });
    p.give(0, std::move(dx));
  });
  return y;
}

// y[h, t] = table[h, place(t)].   dtable[h, c] = sum of dy[h, t] over the t with place(t) = c
Tensor clipped_diagonals(const Tensor& table, int64_t queries, int64_t keys, int64_t offset) {
  check_present("clipped_diagonals", table);
  check(table.rank() == 2 && table.size(1) % 2 == 1, "[clipped_diagonals] expected a table (H, 2 m + 1), got ",
        table.shape());
  check(queries >= 0 && keys >= 0, "[clipped_diagonals] the numbers of queries and keys cannot be negative, got ",
        queries, " and ", keys);
  const int64_t heads = table.size(0), width = table.size(1), farthest = width / 2, count = diagonals_of(queries, keys);
  const auto place = [=](int64_t t) { return std::clamp(t - (queries - 1) - offset, -farthest, farthest) + farthest; };
  Tensor y = Tensor::empty({heads, count});
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t t = 0; t < count; ++t) y.mutable_ptr()[h * count + t] = table.ptr()[h * width + place(t)];
  }
  record("clipped_diagonals", y, {&table}, [=, shape = table.shape()](Pull& p) {
    const Tensor& dy = p.dy();
    Tensor dtable = Tensor::empty(shape);
    static thread_local std::vector<double> sums;  // no allocation once warm
    for (int64_t h = 0; h < heads; ++h) {
      sums.assign(static_cast<size_t>(width), 0.0);
      for (int64_t t = 0; t < count; ++t) sums[static_cast<size_t>(place(t))] += double{dy.ptr()[h * count + t]};
      std::copy(sums.begin(), sums.end(), dtable.mutable_ptr() + h * width);
    }
    p.give(0, std::move(dtable));
  });
  return y;
}

}  // namespace qkv
