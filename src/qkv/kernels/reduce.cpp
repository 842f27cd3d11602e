// Reductions: rows (inner = 1) by vectors along the row, columns by vectors across them, long axes in fixed chunks.
#include "qkv/kernels/reduce.h"

#include <algorithm>
#include <limits>

#include "qkv/core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/reduce.cpp"
#include <hwy/foreach_target.h>

#include "qkv/kernels/map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

using Doubles = hn::Repartition<double, Floats>;
using DoubleVec = hn::Vec<Doubles>;

// The lanes of a float vector, added into two vectors of doubles.
struct Wide {
  DoubleVec low, high;
  HWY_INLINE Wide() : low(hn::Zero(Doubles())), high(hn::Zero(Doubles())) {}
  HWY_INLINE void add(Vec v) {
    const hn::Half<Floats> half;
    low = hn::Add(low, hn::PromoteTo(Doubles(), hn::LowerHalf(half, v)));
    high = hn::Add(high, hn::PromoteTo(Doubles(), hn::UpperHalf(half, v)));
  }
};

double SumKernel(const float* x, int64_t n) {
  const Floats d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  Wide sum;
  int64_t i = 0;
  for (; i + 16 * lanes <= n; i += 16 * lanes) {
    Vec a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + i + lanes);
    Vec c = hn::LoadU(d, x + i + 2 * lanes), e = hn::LoadU(d, x + i + 3 * lanes);
    for (int64_t k = i + 4 * lanes; k < i + 16 * lanes; k += 4 * lanes) {
      a = hn::Add(a, hn::LoadU(d, x + k));
      b = hn::Add(b, hn::LoadU(d, x + k + lanes));
      c = hn::Add(c, hn::LoadU(d, x + k + 2 * lanes));
      e = hn::Add(e, hn::LoadU(d, x + k + 3 * lanes));
    }
    sum.add(hn::Add(hn::Add(a, b), hn::Add(c, e)));
  }
  for (; i + lanes <= n; i += lanes) sum.add(hn::LoadU(d, x + i));
  double total = hn::GetLane(hn::SumOfLanes(Doubles(), hn::Add(sum.low, sum.high)));
  for (; i < n; ++i) total += x[i];
  return total;
}

void SumRowsKernel(const float* x, float* y, int64_t rows, int64_t n, double divisor) {
  for (int64_t r = 0; r < rows; ++r) y[r] = static_cast<float>(SumKernel(x + r * n, n) / divisor);
}

constexpr int64_t kBlockRows = 8;  // rows of a column sum added in float

template <int V>
HWY_INLINE void SumTile(const float* x, int64_t stride, int64_t n, double* out) {
  const Floats d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), half = lanes / 2;
  Wide sums[V];
  for (int64_t i = 0; i < n; i += kBlockRows) {
    Vec block[V];
    for (int v = 0; v < V; ++v) block[v] = hn::LoadU(d, x + i * stride + v * lanes);
    for (int64_t k = i + 1; k < std::min(i + kBlockRows, n); ++k)
      for (int v = 0; v < V; ++v) block[v] = hn::Add(block[v], hn::LoadU(d, x + k * stride + v * lanes));
    for (int v = 0; v < V; ++v) sums[v].add(block[v]);
  }
  for (int v = 0; v < V; ++v) {
    hn::StoreU(sums[v].low, Doubles(), out + v * lanes);
    hn::StoreU(sums[v].high, Doubles(), out + v * lanes + half);
  }
}

// out[j] = sum_i x[i * stride + j]; the last columns are added one by one in the order of the vectors.
void SumColumnsKernel(const float* x, int64_t stride, int64_t n, int64_t columns, double* out) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  int64_t j = 0;
  for (; j + 4 * lanes <= columns; j += 4 * lanes) SumTile<4>(x + j, stride, n, out + j);
  for (; j + lanes <= columns; j += lanes) SumTile<1>(x + j, stride, n, out + j);
  if (j == columns) return;
  std::fill(out + j, out + columns, 0.0);
  for (int64_t i = 0; i < n; i += kBlockRows)
    for (int64_t c = j; c < columns; ++c) {
      float block = x[i * stride + c];
      for (int64_t k = i + 1; k < std::min(i + kBlockRows, n); ++k) block += x[k * stride + c];
      out[c] += block;
    }
}

float MaxKernel(const float* x, int64_t n) {
  const Floats d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  Vec most = hn::Set(d, x[0]), nan = hn::Zero(d);  // Max drops a NaN on some CPUs
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const Vec v = hn::LoadU(d, x + i);
    most = hn::Max(most, v);
    nan = hn::Or(nan, hn::VecFromMask(d, hn::IsNaN(v)));
  }
  float result = LargestLane(d, most);
  bool any = !hn::AllFalse(d, hn::IsNaN(nan));
  for (; i < n; ++i) {
    result = std::max(result, x[i]);
    any |= x[i] != x[i];
  }
  return any || x[0] != x[0] ? std::numeric_limits<float>::quiet_NaN() : result;
}

template <int V>
HWY_INLINE void MaxTile(const float* x, int64_t stride, int64_t n, float* out) {
  const Floats d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  Vec most[V];
  for (int v = 0; v < V; ++v) most[v] = hn::LoadU(d, x + v * lanes);
  for (int64_t i = 1; i < n; ++i)
    for (int v = 0; v < V; ++v) {
      const Vec u = hn::LoadU(d, x + i * stride + v * lanes);
      most[v] =
          hn::IfThenElse(hn::Or(hn::Lt(most[v], u), hn::IsNaN(u)), u, most[v]);  // a NaN compares false, so it stays
    }
  for (int v = 0; v < V; ++v) hn::StoreU(most[v], d, out + v * lanes);
}

void MaxColumnsKernel(const float* x, int64_t stride, int64_t n, int64_t columns, float* out) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  int64_t j = 0;
  for (; j + 8 * lanes <= columns; j += 8 * lanes) MaxTile<8>(x + j, stride, n, out + j);
  for (; j + lanes <= columns; j += lanes) MaxTile<1>(x + j, stride, n, out + j);
  for (; j < columns; ++j) {
    out[j] = x[j];
    for (int64_t i = 1; i < n; ++i) {
      const float v = x[i * stride + j];
      if (out[j] < v || v != v) out[j] = v;
    }
  }
}

// The first i with x[i] == y or x[i] NaN, which must exist.
int64_t FindFirstKernel(const float* x, float y, int64_t n) {
  const Floats d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const Vec wanted = hn::Set(d, y);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const Vec v = hn::LoadU(d, x + i);
    const intptr_t found = hn::FindFirstTrue(d, hn::Or(hn::Eq(v, wanted), hn::IsNaN(v)));
    if (found >= 0) return i + found;
  }
  while (i + 1 < n && x[i] != y && x[i] == x[i]) ++i;
  return i;
}

template <bool kAdd>
HWY_INLINE void SpreadTo(const float* x, float* y, int64_t n, float factor) {
  const Floats d;
  const Vec by = hn::Set(d, factor);
  if constexpr (kAdd)
    Map(x, y, y, n, [=](Floats, Vec v, Vec sum) HWY_ATTR { return hn::Add(sum, hn::Mul(v, by)); });
  else
    Map(x, y, n, [=](Floats, Vec v) HWY_ATTR { return hn::Mul(v, by); });
}

void SpreadKernel(const float* x, float* y, Split s, float factor, bool add) {
  const Floats d;
  for (int64_t o = 0; o < s.outer; ++o, x += s.inner, y += s.n * s.inner) {
    if (s.inner > 1) {
      for (int64_t i = 0; i < s.n; ++i)
        if (add)
          SpreadTo<true>(x, y + i * s.inner, s.inner, factor);
        else
          SpreadTo<false>(x, y + i * s.inner, s.inner, factor);
    } else if (add) {
      const Vec v = hn::Set(d, x[0] * factor);
      Map(y, y, s.n, [=](Floats, Vec sum) HWY_ATTR { return hn::Add(sum, v); });
    } else {
      std::fill_n(y, s.n, x[0] * factor);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(SumKernel);
HWY_EXPORT(SumRowsKernel);
HWY_EXPORT(SumColumnsKernel);
HWY_EXPORT(MaxKernel);
HWY_EXPORT(MaxColumnsKernel);
HWY_EXPORT(FindFirstKernel);
HWY_EXPORT(SpreadKernel);

namespace {

// Each call dispatches: a pointer taken before the very first call would look up the CPU again on every use.
double sum_range(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(SumKernel)(x, n); }
void sum_block(const float* x, int64_t stride, int64_t n, int64_t columns, double* out) {
  HWY_DYNAMIC_DISPATCH(SumColumnsKernel)(x, stride, n, columns, out);
}
float max_range(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(MaxKernel)(x, n); }
int64_t find_first(const float* x, float y, int64_t n) { return HWY_DYNAMIC_DISPATCH(FindFirstKernel)(x, y, n); }
void spread_rows(const float* x, float* y, Split s, float factor, bool add) {
  HWY_DYNAMIC_DISPATCH(SpreadKernel)(x, y, s, factor, add);
}

constexpr double kNanoseconds = 0.1;  // per float read
constexpr int64_t kColumns = 128;     // columns handled together
constexpr int64_t kMaxChunks = 64;
constexpr int64_t kFewBlocks = 8;  // with fewer rows or column groups, threads share the chunks of each

// A long axis is summed in at most 64 chunks, whose size depends on its length alone.
int64_t chunk_size(int64_t n, int64_t at_least) { return std::max(at_least, (n + kMaxChunks - 1) / kMaxChunks); }
int64_t chunk_count(int64_t n, int64_t size) { return (n + size - 1) / size; }

// fold(c) for each chunk into partial[c], on threads when `shared`.
template <class Partial, class Fold>
void each_chunk(int64_t chunks, bool shared, double total_ns, Partial* partial, Fold&& fold) {
  if (shared)
    parallel_for(chunks, total_ns, [&](int64_t c) { partial[c] = fold(c); });
  else
    for (int64_t c = 0; c < chunks; ++c) partial[c] = fold(c);
}

void sum_rows(const float* x, float* y, int64_t rows, int64_t n, double divisor) {
  const int64_t size = chunk_size(n, 16384), chunks = chunk_count(n, size);
  if (chunks <= 1) {
    parallel_ranges(rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(n, 1)),
                    kNanoseconds * static_cast<double>(rows * n), [&](int64_t begin, int64_t end) {
                      HWY_DYNAMIC_DISPATCH(SumRowsKernel)(x + begin * n, y + begin, end - begin, n, divisor);
                    });
    return;
  }
  const bool share_chunks = rows < kFewBlocks;
  const auto one_row = [&](int64_t r) {
    double partial[kMaxChunks];
    each_chunk(chunks, share_chunks, kNanoseconds * static_cast<double>(n), partial,
               [&](int64_t c) { return sum_range(x + r * n + c * size, std::min(size, n - c * size)); });
    double total = 0;
    for (int64_t c = 0; c < chunks; ++c) total += partial[c];
    y[r] = static_cast<float>(total / divisor);
  };
  if (share_chunks)
    for (int64_t r = 0; r < rows; ++r) one_row(r);
  else
    parallel_for(rows, kNanoseconds * static_cast<double>(rows * n), one_row);
}

// One group of at most kColumns columns of one outer row.
struct ColumnGroup {
  const float* x;
  int64_t columns, y;  // y: offset in the output
  ColumnGroup(const float* base, const Split& s, int64_t groups, int64_t g) {
    const int64_t o = g / groups, first = g % groups * kColumns;
    x = base + o * s.n * s.inner + first;
    columns = std::min(kColumns, s.inner - first);
    y = o * s.inner + first;
  }
};

void sum_columns(const float* x, float* y, Split s, double divisor) {
  const int64_t groups = (s.inner + kColumns - 1) / kColumns;
  const int64_t size = chunk_size(s.n, 256), chunks = chunk_count(s.n, size);
  const bool share_chunks = s.outer * groups < kFewBlocks && chunks > 1;
  const auto one_group = [&](int64_t g) {
    const ColumnGroup group(x, s, groups, g);
    double total[kColumns];
    std::fill_n(total, group.columns, 0.0);
    if (share_chunks) {
      double partial[kMaxChunks][kColumns];
      parallel_for(chunks, kNanoseconds * static_cast<double>(s.n * group.columns), [&](int64_t c) {
        sum_block(group.x + c * size * s.inner, s.inner, std::min(size, s.n - c * size), group.columns, partial[c]);
      });
      for (int64_t c = 0; c < chunks; ++c)
        for (int64_t j = 0; j < group.columns; ++j) total[j] += partial[c][j];
    } else {
      double partial[kColumns];
      for (int64_t c = 0; c < chunks; ++c) {
        sum_block(group.x + c * size * s.inner, s.inner, std::min(size, s.n - c * size), group.columns, partial);
        for (int64_t j = 0; j < group.columns; ++j) total[j] += partial[j];
      }
    }
    for (int64_t j = 0; j < group.columns; ++j) y[group.y + j] = static_cast<float>(total[j] / divisor);
  };
  if (share_chunks) {
    for (int64_t g = 0; g < s.outer * groups; ++g) one_group(g);
  } else {
    parallel_for(s.outer * groups, kNanoseconds * static_cast<double>(s.outer * s.n * s.inner), one_group);
  }
}

}  // namespace

void sum(const float* x, float* y, Split s, double divisor) {
  if (s.inner == 1)
    sum_rows(x, y, s.outer, s.n, divisor);
  else
    sum_columns(x, y, s, divisor);
}

void max(const float* x, float* y, Split s) {
  const double total_ns = kNanoseconds * static_cast<double>(s.outer * s.n * s.inner);
  if (s.inner == 1) {
    const int64_t size = chunk_size(s.n, 16384), chunks = chunk_count(s.n, size);
    const bool share_chunks = s.outer < kFewBlocks;
    const auto one_row = [&](int64_t r) {
      float partial[kMaxChunks];
      each_chunk(chunks, share_chunks, kNanoseconds * static_cast<double>(s.n), partial,
                 [&](int64_t c) { return max_range(x + r * s.n + c * size, std::min(size, s.n - c * size)); });
      y[r] = max_range(partial, chunks);
    };
    if (share_chunks)
      for (int64_t r = 0; r < s.outer; ++r) one_row(r);
    else
      parallel_for(s.outer, total_ns, one_row);
    return;
  }
  const int64_t groups = (s.inner + kColumns - 1) / kColumns;
  parallel_for(s.outer * groups, total_ns, [&](int64_t g) {
    const ColumnGroup group(x, s, groups, g);
    HWY_DYNAMIC_DISPATCH(MaxColumnsKernel)(group.x, s.inner, s.n, group.columns, y + group.y);
  });
}

void max_back(const float* x, const float* y, const float* dy, float* dx, Split s, bool add) {
  if (!add) std::fill_n(dx, s.outer * s.n * s.inner, 0.f);
  const double total_ns = 2 * kNanoseconds * static_cast<double>(s.outer * s.n * s.inner);
  if (s.inner == 1) {
    parallel_ranges(s.outer, std::max<int64_t>(1, 16384 / std::max<int64_t>(s.n, 1)), total_ns,
                    [&](int64_t begin, int64_t end) {
                      for (int64_t r = begin; r < end; ++r) dx[r * s.n + find_first(x + r * s.n, y[r], s.n)] += dy[r];
                    });
    return;
  }
  const int64_t groups = (s.inner + kColumns - 1) / kColumns;
  parallel_for(s.outer * groups, total_ns, [&](int64_t g) {
    const ColumnGroup group(x, s, groups, g);
    float* out = dx + (group.x - x);
    bool found[kColumns] = {};
    for (int64_t i = 0; i < s.n; ++i)
      for (int64_t j = 0; j < group.columns; ++j) {
        const float v = group.x[i * s.inner + j];
        if (found[j] || (v != y[group.y + j] && v == v)) continue;
        found[j] = true;
        out[i * s.inner + j] += dy[group.y + j];
      }
  });
}

void spread(const float* x, float* y, Split s, float factor, bool add) {
  if (s.n * s.inner == 0) return;
  const int64_t size = s.n * s.inner;
  const double total_ns = kNanoseconds * static_cast<double>(s.outer * size);
  if (s.outer < kFewBlocks) {
    for (int64_t o = 0; o < s.outer; ++o)
      parallel_ranges(s.n, std::max<int64_t>(1, 16384 / s.inner), total_ns, [&](int64_t begin, int64_t end) {
        spread_rows(x + o * s.inner, y + (o * s.n + begin) * s.inner, {1, end - begin, s.inner}, factor, add);
      });
    return;
  }
  parallel_ranges(s.outer, std::max<int64_t>(1, 16384 / size), total_ns, [&](int64_t begin, int64_t end) {
    spread_rows(x + begin * s.inner, y + begin * s.n * s.inner, {end - begin, s.n, s.inner}, factor, add);
  });
}

}  // namespace qkv::kernels
#endif
