// Element moves: runs by memcpy, transposes in 4 x 4 tiles.
#include "qkv/kernels/rearrange.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "qkv/core/parallel.h"
#include "qkv/kernels/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/rearrange.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// y[r, c] = x[c, r] for a 4 x 4 tile.
HWY_INLINE void TransposeTile(const float* x, int64_t x_stride, float* y, int64_t y_stride) {
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> pairs;
  const auto r0 = hn::LoadU(d, x), r1 = hn::LoadU(d, x + x_stride);
  const auto r2 = hn::LoadU(d, x + 2 * x_stride), r3 = hn::LoadU(d, x + 3 * x_stride);
  const auto a = hn::BitCast(pairs, hn::InterleaveLower(d, r0, r1)),
             b = hn::BitCast(pairs, hn::InterleaveUpper(d, r0, r1));
  const auto c = hn::BitCast(pairs, hn::InterleaveLower(d, r2, r3)),
             e = hn::BitCast(pairs, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, a, c)), d, y);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, a, c)), d, y + y_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, b, e)), d, y + 2 * y_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, b, e)), d, y + 3 * y_stride);
}

// y[r * y_stride + c] = x[c * x_stride + r], in squares that are transposed in a buffer: so every cache line of x and y
// is touched once, even if a power-of-two stride maps them all to the same cache set.
void TransposeKernel(const float* x, int64_t x_stride, float* y, int64_t y_stride, int64_t rows, int64_t columns) {
  constexpr int64_t kSquare = 32;
  HWY_ALIGN float square[kSquare * kSquare];
  for (int64_t r0 = 0; r0 < rows; r0 += kSquare)
    for (int64_t c0 = 0; c0 < columns; c0 += kSquare) {
      const int64_t height = std::min(kSquare, rows - r0), width = std::min(kSquare, columns - c0);
      const float* from = x + c0 * x_stride + r0;
      float* to = y + r0 * y_stride + c0;
      const bool whole = height == kSquare && width == kSquare;
      float* turned = whole ? square : to;
      const int64_t stride = whole ? kSquare : y_stride;
      const int64_t whole_rows = height / 4 * 4, whole_columns = width / 4 * 4;
      for (int64_t c = 0; c < whole_columns; c += 4) {
        for (int64_t r = 0; r < whole_rows; r += 4)
          TransposeTile(from + c * x_stride + r, x_stride, turned + r * stride + c, stride);
        for (int64_t r = whole_rows; r < height; ++r)
          for (int64_t k = c; k < c + 4; ++k) turned[r * stride + k] = from[k * x_stride + r];
      }
      for (int64_t c = whole_columns; c < width; ++c)
        for (int64_t r = 0; r < height; ++r) turned[r * stride + c] = from[c * x_stride + r];
      if (!whole) continue;
      for (int64_t r = 0; r < kSquare; ++r)
        std::memcpy(to + r * y_stride, square + r * kSquare, kSquare * sizeof(float));
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(TransposeKernel);

namespace {

constexpr double kNanoseconds = 0.3;  // per element moved
constexpr int64_t kBlockElements = 16384;

int64_t rows_a_block(int64_t length) { return std::max<int64_t>(1, kBlockElements / std::max<int64_t>(length, 1)); }

// Each call dispatches: a pointer taken before the very first call would look up the CPU again on every use.
void transpose(const float* x, int64_t x_stride, float* y, int64_t y_stride, int64_t rows, int64_t columns) {
  HWY_DYNAMIC_DISPATCH(TransposeKernel)(x, x_stride, y, y_stride, rows, columns);
}

// Calling memcpy costs more than copying a short run.
void copy_run(const float* x, float* y, int64_t n) {
  if (n > 64) {
    std::memcpy(y, x, static_cast<size_t>(n) * sizeof(float));
    return;
  }
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) std::memcpy(y + i, x + i, 8 * sizeof(float));
  for (; i < n; ++i) y[i] = x[i];
}

constexpr int kMaxAxes = 8;

// Axes of a permuted read, outermost first, without axes of size 1, with neighbours merged if adjacent in x too.
struct Walk {
  std::array<int64_t, kMaxAxes> size{}, stride{}, step{};  // step: stride in y
  int rank = 0;

  Walk(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
    for (size_t k = 0; k < sizes.size(); ++k) {
      if (sizes[k] == 1) continue;
      if (rank && stride[rank - 1] == sizes[k] * strides[k]) {
        size[rank - 1] *= sizes[k];
        stride[rank - 1] = strides[k];
      } else {
        size[rank] = sizes[k];
        stride[rank++] = strides[k];
      }
    }
    int64_t run = 1;
    for (int k = rank - 1; k >= 0; --k) {
      step[k] = run;
      run *= size[k];
    }
  }

  void remove(int axis) {
    for (int k = axis; k + 1 < rank; ++k) {
      size[k] = size[k + 1];
      stride[k] = stride[k + 1];
      step[k] = step[k + 1];
    }
    --rank;
  }

  int64_t count() const {
    int64_t n = 1;
    for (int k = 0; k < rank; ++k) n *= size[k];
    return n;
  }

  // Offsets in x and y of index i, with the last axis fastest.
  std::pair<int64_t, int64_t> offsets(int64_t i) const {
    int64_t in = 0, out = 0;
    for (int k = rank - 1; k >= 0; --k) {
      in += i % size[k] * stride[k];
      out += i % size[k] * step[k];
      i /= size[k];
    }
    return {in, out};
  }
};

// move(x offset, y offset) at every index of the walk, each moving `elements`; the last axis needs no divisions.
template <class Move>
void for_each_place(const Walk& walk, int64_t elements, Move&& move) {
  const int64_t places = walk.count(), last = walk.rank ? walk.size[walk.rank - 1] : 1;
  const int64_t in_step = walk.rank ? walk.stride[walk.rank - 1] : 0,
                out_step = walk.rank ? walk.step[walk.rank - 1] : 0;
  parallel_ranges(places, rows_a_block(elements), kNanoseconds * static_cast<double>(places * elements),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end;) {
                      auto [in, out] = walk.offsets(i);
                      for (const int64_t stop = std::min(end, i + last - i % last); i < stop;
                           ++i, in += in_step, out += out_step)
                        move(in, out);
                    }
                  });
}

}  // namespace

void copy_rows(const float* x, int64_t x_stride, float* y, int64_t y_stride, int64_t rows, int64_t length) {
  if (x_stride == length && y_stride == length) {
    length *= rows;
    rows = 1;
  }
  parallel_ranges(rows, rows_a_block(length), kNanoseconds * static_cast<double>(rows * length),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t r = begin; r < end; ++r) copy_run(x + r * x_stride, y + r * y_stride, length);
                  });
}

void add_rows(const float* x, int64_t x_stride, float* y, int64_t y_stride, int64_t rows, int64_t length) {
  parallel_ranges(rows, rows_a_block(length), kNanoseconds * static_cast<double>(rows * length),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t r = begin; r < end; ++r) {
                      float* to = y + r * y_stride;
                      if (length >= 8)
                        add(x + r * x_stride, to, to, length);
                      else
                        for (int64_t i = 0; i < length; ++i) to[i] += x[r * x_stride + i];
                    }
                  });
}

void permute(const float* x, float* y, std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return;
  Walk walk(sizes, strides);
  if (walk.rank == 0) {
    *y = *x;
    return;
  }
  const int last = walk.rank - 1;
  const int64_t columns = walk.size[last], column_stride = walk.stride[last];
  if (column_stride == 1) {  // runs of the last axis
    walk.remove(last);
    return for_each_place(walk, columns, [&](int64_t in, int64_t out) { copy_run(x + in, y + out, columns); });
  }
  // The axis that is contiguous in x becomes the rows of transposes whose columns are the last axis of y.
  const int first =
      static_cast<int>(std::find(walk.stride.begin(), walk.stride.begin() + walk.rank, 1) - walk.stride.begin());
  const int64_t rows = walk.size[first], row_step = walk.step[first];
  walk.remove(last);
  walk.remove(first);
  if (walk.rank == 0) {  // one large transpose: threads share its rows
    parallel_ranges(rows, 32, kNanoseconds * static_cast<double>(rows * columns), [&](int64_t begin, int64_t end) {
      transpose(x + begin, column_stride, y + begin * row_step, row_step, end - begin, columns);
    });
    return;
  }
  for_each_place(walk, rows * columns,
                 [&](int64_t in, int64_t out) { transpose(x + in, column_stride, y + out, row_step, rows, columns); });
}

template <class Mask>
int64_t count_nonzero(const Mask* mask, int64_t n) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += mask[i] != 0;
  return count;
}

template <class Mask>
void select(const float* x, const Mask* mask, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (mask[i] != 0) *y++ = x[i];
}

template <class Mask>
void select_back(const float* dy, const Mask* mask, float* dx, int64_t n, bool add) {
  if (!add) std::fill_n(dx, n, 0.f);
  for (int64_t i = 0; i < n; ++i)
    if (mask[i] != 0) dx[i] += *dy++;
}

template <class Mask>
void where(const Mask* mask, const float* a, const float* b, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = mask[i] != 0 ? a[i] : b[i];
}

template int64_t count_nonzero(const float*, int64_t);
template int64_t count_nonzero(const int32_t*, int64_t);
template void select(const float*, const float*, float*, int64_t);
template void select(const float*, const int32_t*, float*, int64_t);
template void select_back(const float*, const float*, float*, int64_t, bool);
template void select_back(const float*, const int32_t*, float*, int64_t, bool);
template void where(const float*, const float*, const float*, float*, int64_t);
template void where(const int32_t*, const float*, const float*, float*, int64_t);

}  // namespace qkv::kernels
#endif
