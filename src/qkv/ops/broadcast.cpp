// Broadcasting: axes are merged, then runs along the last axis go through contiguous kernels.
#include "qkv/ops/broadcast.h"

#include <algorithm>
#include <array>

#include "qkv/core/parallel.h"
#include "qkv/ops/elementwise.h"
#include "qkv/tensor/present.h"

namespace qkv {
namespace {

constexpr int64_t kBlock = 1 << 14;

// The common shape, with neighbouring axes merged where both operands allow it; stride 0 on axes that an operand
// repeats.
struct Plan {
  int rank = 0;
  std::array<int64_t, Shape::kMaxRank> size{}, stride_a{}, stride_b{};
  int64_t rows = 1;  // product of all sizes but the last

  Plan(const Shape& out, const Shape& a, const Shape& b) {
    int64_t step_a = 1, step_b = 1;
    std::array<int64_t, Shape::kMaxRank> n{}, sa{}, sb{};  // innermost first
    int count = 0;
    for (int i = 1; i <= out.rank(); ++i) {
      const int64_t in_a = i <= a.rank() ? a[-i] : 1, in_b = i <= b.rank() ? b[-i] : 1;
      const int64_t here_a = in_a == 1 ? 0 : step_a, here_b = in_b == 1 ? 0 : step_b;
      step_a *= in_a;
      step_b *= in_b;
      if (out[-i] == 1) continue;
      if (count && here_a == sa[count - 1] * n[count - 1] && here_b == sb[count - 1] * n[count - 1]) {
        n[count - 1] *= out[-i];
      } else {
        n[count] = out[-i];
        sa[count] = here_a;
        sb[count] = here_b;
        ++count;
      }
    }
    if (count == 0) n[count++] = 1;
    rank = count;
    for (int i = 0; i < count; ++i) {
      size[i] = n[count - 1 - i];
      stride_a[i] = sa[count - 1 - i];
      stride_b[i] = sb[count - 1 - i];
    }
    for (int i = 0; i + 1 < rank; ++i) rows *= size[i];
  }

  int64_t width() const { return size[rank - 1]; }
  // Offsets of row r (a position on all axes but the last) in both operands.
  std::pair<int64_t, int64_t> offsets(int64_t r) const {
    int64_t a = 0, b = 0;
    for (int i = rank - 2; i >= 0; --i) {
      const int64_t at = r % size[i];
      r /= size[i];
      a += at * stride_a[i];
      b += at * stride_b[i];
    }
    return {a, b};
  }
};

// A run where one operand is a single number: it is copied into a small array.
void run_row(kernels::Binary kernel, const float* a, bool spread_a, const float* b, bool spread_b, float* y,
             int64_t n) {
  if (!spread_a && !spread_b) return kernel(a, b, y, n);
  std::array<float, 256> same_a, same_b;
  if (spread_a) same_a.fill(*a);
  if (spread_b) same_b.fill(*b);
  for (int64_t i = 0; i < n; i += 256)
    kernel(spread_a ? same_a.data() : a + i, spread_b ? same_b.data() : b + i, y + i, std::min<int64_t>(256, n - i));
}

}  // namespace

Tensor broadcast_map(const char* op, kernels::Binary kernel, const Tensor& a, const Tensor& b) {
  check_present(op, a, "a");
  check_present(op, b, "b");
  if (a.shape() == b.shape()) {
    Tensor y = Tensor::empty(a.shape());
    const int64_t n = y.numel();
    if (n <= kBlock) {
      flush_denormals();  // as the blocks of a large tensor do
      kernel(a.ptr(), b.ptr(), y.mutable_ptr(), n);
      return y;
    }
    parallel_ranges(n, kBlock, 0.4 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
      kernel(a.ptr() + begin, b.ptr() + begin, y.mutable_ptr() + begin, end - begin);
    });
    return y;
  }
  Tensor y = Tensor::empty(broadcast(op, a.shape(), b.shape()));
  if (y.numel() == 0) return y;
  const Plan plan(y.shape(), a.shape(), b.shape());
  const int64_t width = plan.width(), step = std::max<int64_t>(1, kBlock / width);
  const bool spread_a = plan.stride_a[plan.rank - 1] == 0, spread_b = plan.stride_b[plan.rank - 1] == 0;
  parallel_ranges(plan.rows, step, 0.5 * static_cast<double>(y.numel()) + 5.0 * static_cast<double>(plan.rows),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t r = begin; r < end; ++r) {
                      const auto [at_a, at_b] = plan.offsets(r);
                      run_row(kernel, a.ptr() + at_a, spread_a, b.ptr() + at_b, spread_b, y.mutable_ptr() + r * width,
                              width);
                    }
                  });
  return y;
}

Tensor sum_to(Tensor x, const Shape& shape) {
  check_present("sum_to", x);
  if (x.shape() == shape) return x;
  check(broadcast("sum_to", x.shape(), shape) == x.shape(), "[sum_to] ", x.shape(), " is not a broadcast of ", shape);
  const int64_t n = shape.numel();
  Tensor y = zeros(shape);
  if (x.numel() == 0) return y;
  // Sums in double, in the order of x.
  Buffer memory = Buffer::take(static_cast<size_t>(n) * sizeof(double));
  double* sums = reinterpret_cast<double*>(memory.data());
  std::fill_n(sums, n, 0.0);
  const Plan plan(x.shape(), shape, x.shape());
  const int64_t width = plan.width();
  const bool one = plan.stride_a[plan.rank - 1] == 0;
  for (int64_t r = 0; r < plan.rows; ++r) {
    double* to = sums + plan.offsets(r).first;
    const float* from = x.ptr() + r * width;
    if (one) {
      double sum = 0;
      for (int64_t i = 0; i < width; ++i) sum += from[i];
      *to += sum;
    } else {
      for (int64_t i = 0; i < width; ++i) to[i] += from[i];
    }
  }
  for (int64_t i = 0; i < n; ++i) y.mutable_ptr()[i] = static_cast<float>(sums[i]);
  return y;
}

}  // namespace qkv
