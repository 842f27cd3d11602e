// Selection: of few in a row that is there, a bound below the k-th largest and a second look at what reaches it; of many, a heap of the best
// so far; of rows that come in stretches, the best so far in order.
#include "qkv/kernels/largest.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/largest.cpp"
#include <hwy/foreach_target.h>

#include "qkv/kernels/scratch.h"
#include "qkv/kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

// A total order, since places differ: the heap's front is the worst that is kept.
HWY_INLINE bool Better(const Scored& a, const Scored& b) { return a.value != b.value ? a.value > b.value : a.id < b.id; }

constexpr float kLeast = -std::numeric_limits<float>::infinity();
constexpr int64_t kBlock = 8;   // vectors of the row whose largest are looked at together

// The k-th largest of the shares of a row: as so many elements of the row reach it, it is at most the k-th largest of these, and not far
// below it while k is at most half the shares.
template <int kShares>
HWY_INLINE float KthOfShares(const Vec (&shares)[kShares], int64_t k) {
  const Floats d;
  const int64_t lanes = LaneCount();
  HWY_ALIGN float values[kShares * HWY_MAX_BYTES / sizeof(float)];
  for (int i = 0; i < kShares; ++i) hn::Store(shares[i], d, values + i * lanes);
  const Vec one = hn::Set(d, 1.f);
  Vec reached[kShares];  // by how many shares
#pragma GCC unroll 8
  for (int i = 0; i < kShares; ++i) reached[i] = hn::Zero(d);
  for (int64_t s = 0; s < kShares * lanes; ++s) {
    const Vec value = hn::Set(d, values[s]);
#pragma GCC unroll 8
    for (int i = 0; i < kShares; ++i) reached[i] = hn::Add(reached[i], hn::IfThenElseZero(hn::Ge(value, shares[i]), one));
  }
  Vec most = hn::Set(d, kLeast);
#pragma GCC unroll 8
  for (int i = 0; i < kShares; ++i)
    most = hn::Max(most, hn::IfThenElse(hn::Ge(reached[i], hn::Set(d, static_cast<float>(k))), shares[i], hn::Set(d, kLeast)));
  return hn::GetLane(hn::MaxOfLanes(d, most));
}

// The k best so far, in order.
struct Kept {
  Scored* out;
  int64_t k, count = 0;
  float bound;  // what is not above it need not be offered

  HWY_INLINE void Offer(const float* x, int64_t from, int64_t to) {
    for (int64_t j = from; j < to; ++j) {
      if (!(x[j] > bound)) continue;  // an equal one further on is worse; NaN compares false
      int64_t at = count == k ? k - 1 : count++;
      for (; at > 0 && out[at - 1].value < x[j]; --at) out[at] = out[at - 1];
      out[at] = {x[j], static_cast<int32_t>(j)};
      if (count == k) bound = out[k - 1].value;
    }
  }
};

// Few of a long row: the largest of each block are kept, and only blocks are read again that have one of the wanted. -1 where there is no
// bound, since too much of the row is -inf or NaN. A lane of the kShares shares has the largest of that lane in every kShares-th block.
// tops: room for n / kBlock floats.
template <int kShares>
HWY_INLINE int64_t FewLargest(const float* x, int64_t n, int64_t k, Scored* out, float* tops) {
  const Floats d;
  const int64_t lanes = LaneCount(), step = kBlock * lanes, blocks = n / step;
  Vec shares[kShares];
#pragma GCC unroll 8
  for (int i = 0; i < kShares; ++i) shares[i] = hn::Set(d, kLeast);
  const auto top_of = [&](int64_t block, Vec& share) HWY_ATTR {
    Vec top = hn::Set(d, kLeast);
#pragma GCC unroll 8
    for (int64_t v = 0; v < kBlock; ++v) top = hn::Max(hn::LoadU(d, x + block * step + v * lanes), top);  // NaN leaves it
    hn::Store(top, d, tops + block * lanes);
    share = hn::Max(top, share);
  };
  int64_t b = 0;
  for (; b + kShares <= blocks; b += kShares) {
#pragma GCC unroll 8
    for (int i = 0; i < kShares; ++i) top_of(b + i, shares[i]);
  }
  for (; b < blocks; ++b) top_of(b, shares[0]);
  const float kth = KthOfShares(shares, k);
  if (kth == kLeast) return -1;
  Kept kept{out, k, 0, std::nextafter(kth, kLeast)};
  for (b = 0; b < blocks; ++b) {
    if (hn::AllFalse(d, hn::Gt(hn::Load(d, tops + b * lanes), hn::Set(d, kept.bound)))) continue;
    for (int64_t i = b * step; i < (b + 1) * step; i += lanes)
      if (!hn::AllFalse(d, hn::Gt(hn::LoadU(d, x + i), hn::Set(d, kept.bound)))) kept.Offer(x, i, i + lanes);
  }
  kept.Offer(x, blocks * step, n);
  return kept.count;
}

// -1 too where k is not few, or the row not long.
int64_t FewLargestOf(const float* x, int64_t n, int64_t k, Scored* out, float* tops) {
  const int64_t lanes = LaneCount();
  if (k <= 2 * lanes && n >= 4 * kBlock * lanes) return FewLargest<4>(x, n, k, out, tops);
  if (k <= 4 * lanes && n >= 8 * kBlock * lanes) return FewLargest<8>(x, n, k, out, tops);
  return -1;
}

int64_t LargestKernel(const float* x, int64_t n, int64_t k, Scored* out) {
  if (k <= 0) return 0;
  const Floats d;
  const int64_t lanes = LaneCount();
  int64_t i = 0, count = FewLargestOf(x, n, k, out, Scratch(n / kBlock, 1).take(n / kBlock));
  if (count >= 0) return count;
  count = 0;
  for (; i < n && count < k; ++i)
    if (!std::isnan(x[i])) out[count++] = {x[i], static_cast<int32_t>(i)};
  std::make_heap(out, out + count, Better);
  const auto offer = [&](int64_t from, int64_t to) {
    for (int64_t j = from; j < to; ++j) {
      if (!(x[j] > out[0].value)) continue;
      std::pop_heap(out, out + count, Better);
      out[count - 1] = {x[j], static_cast<int32_t>(j)};
      std::push_heap(out, out + count, Better);
    }
  };
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const Vec least = hn::Set(d, out[0].value);
    const auto above = [&](int64_t v) HWY_ATTR { return hn::Gt(hn::LoadU(d, x + i + v * lanes), least); };
    if (!hn::AllFalse(d, hn::Or(hn::Or(above(0), above(1)), hn::Or(above(2), above(3))))) offer(i, i + 4 * lanes);
  }
  offer(i, n);
  std::sort_heap(out, out + count, Better);
  return count;
}

// The sum of a row's exponentials as far as it was seen, less its largest element.
struct RunningSum {
  float most = kLeast, sum = 0;

  // n elements more, the largest of which is `top`, NaN apart.
  HWY_INLINE void Add(const float* x, int64_t n, float top) {
    if (top > most) {
      sum *= std::exp(most - top);
      most = top;
    }
    if (most > kLeast) sum += SumOfExp(x, most, n);
    else if (std::any_of(x, x + n, [](float v) { return std::isnan(v); })) sum = std::numeric_limits<float>::quiet_NaN();
  }
  LogSum Result() const { return {most, std::log(sum)}; }
};

constexpr int64_t kStretch = 256;     // elements of a row that are looked at together
constexpr int64_t kStretchGap = 16;   // floats between the rows of a block of stretches: no power of two
constexpr int64_t kInOrder = 32;      // so many are kept in order, more as a heap

HWY_INLINE float TopOf(const float* x, int64_t n) {
  const Floats d;
  const int64_t lanes = LaneCount();
  Vec a = hn::Set(d, kLeast), b = a;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    a = hn::Max(hn::LoadU(d, x + i), a);  // NaN leaves it
    b = hn::Max(hn::LoadU(d, x + i + lanes), b);
  }
  float top = hn::GetLane(hn::MaxOfLanes(d, hn::Max(a, b)));
  for (; i < n; ++i) top = x[i] > top ? x[i] : top;
  return top;
}

LogSum LogSumExpKernel(const float* x, int64_t n) {
  RunningSum sum;
  for (int64_t i = 0; i < n; i += kStretch) {
    const int64_t count = std::min(kStretch, n - i);
    sum.Add(x + i, count, TopOf(x + i, count));
  }
  return sum.Result();
}

// A row's best so far, and its sum.
struct Selection {
  RunningSum sum;
  int64_t count = 0;

  // The n elements from place `id` on.
  HWY_INLINE void Add(const float* x, int64_t n, int32_t id, int64_t k, Scored* out) {
    const Floats d;
    const int64_t lanes = LaneCount();
    const float top = TopOf(x, n);
    HWY_ALIGN float tops[kStretch / kBlock];
    if (id == 0) count = std::max<int64_t>(FewLargestOf(x, n, k, out, tops), 0);
    if (count == 0 || (id > 0 && top > Bound(k, out))) {
      int64_t i = 0;
      for (; i + lanes <= n; i += lanes)
        if (!hn::AllFalse(d, hn::Gt(hn::LoadU(d, x + i), hn::Set(d, Bound(k, out))))) Offer(x, i, i + lanes, id, k, out);
      Offer(x, i, n, id, k, out);
    }
    sum.Add(x, n, top);
  }

 private:
  HWY_INLINE float Bound(int64_t k, const Scored* out) const { return count < k ? kLeast : k <= kInOrder ? out[k - 1].value : out[0].value; }

  HWY_INLINE void Offer(const float* x, int64_t from, int64_t to, int32_t id, int64_t k, Scored* out) {
    for (int64_t j = from; j < to; ++j) {
      if (!(x[j] > Bound(k, out))) continue;  // an equal one further on is worse; NaN compares false
      const Scored found{x[j], id + static_cast<int32_t>(j)};
      if (k > kInOrder) {
        if (count == k) std::pop_heap(out, out + count--, Better);
        out[count++] = found;
        std::push_heap(out, out + count, Better);
        continue;
      }
      int64_t at = count == k ? k - 1 : count++;
      for (; at > 0 && out[at - 1].value < found.value; --at) out[at] = out[at - 1];
      out[at] = found;
    }
  }
};

// A stretch of each row: columns [id, id + n) of it are at x, `stride` floats from row to row.
void SelectStretch(const float* x, int64_t rows, int64_t stride, int64_t n, int32_t id, int64_t k, Selection* selections, Scored* out) {
  for (int64_t r = 0; r < rows; ++r) selections[r].Add(x + r * stride, n, id, k, out + r * k);
}

void FinishSelections(LargestOfRows& out, int64_t first, int64_t rows, const Selection* selections) {
  for (int64_t r = 0; r < rows; ++r) {
    const auto at = static_cast<size_t>(first + r);
    Scored* best = out.scored.data() + (first + r) * out.k;
    if (out.k > kInOrder) std::sort_heap(best, best + selections[r].count, Better);
    out.counts[at] = selections[r].count;
    out.sums[at] = selections[r].sum.Result();
  }
}

void LargestOfRowsKernel(const float* x, int64_t rows, int64_t n, LargestOfRows& out, int64_t first) {
  for (int64_t r = 0; r < rows; ++r) {
    Selection selection;
    for (int64_t i = 0; i < n; i += kStretch)
      selection.Add(x + r * n + i, std::min(kStretch, n - i), static_cast<int32_t>(i), out.k, out.scored.data() + (first + r) * out.k);
    FinishSelections(out, first + r, 1, &selection);
  }
}

void LargestOfProductKernel(GemmCall call, LargestOfRows& out, int64_t first) {
  const GemmCall whole = call;
  std::vector<Selection> selections(static_cast<size_t>(call.M));
  call.ldc = kStretch + kStretchGap;
  call.C = Scratch(call.M * call.ldc, 1).take(call.M * call.ldc);
  for (int64_t j = 0; j < whole.N; j += kStretch) {
    call.N = std::min(kStretch, whole.N - j);
    call.B = whole.B + j * (whole.transpose_b == Transpose::yes ? whole.ldb : 1);
    if (whole.panels) call.panels = whole.panels + j * whole.K;
    if (whole.bias) call.bias = whole.bias + j;
    gemm(call);
    SelectStretch(call.C, call.M, call.ldc, call.N, static_cast<int32_t>(j), out.k, selections.data(), out.scored.data() + first * out.k);
  }
  FinishSelections(out, first, call.M, selections.data());
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(LargestKernel);
HWY_EXPORT(LogSumExpKernel);
HWY_EXPORT(LargestOfRowsKernel);
HWY_EXPORT(LargestOfProductKernel);

int64_t largest(const float* x, int64_t n, int64_t k, Scored* out) { return HWY_DYNAMIC_DISPATCH(LargestKernel)(x, n, k, out); }
LogSum log_sum_exp(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(LogSumExpKernel)(x, n); }

LargestOfRows::LargestOfRows(int64_t rows, int64_t k)
    : k(k), scored(static_cast<size_t>(rows * k)), counts(static_cast<size_t>(rows)), sums(static_cast<size_t>(rows)) {}

void largest_of_rows(const float* x, int64_t rows, int64_t n, LargestOfRows& out, int64_t first) {
  HWY_DYNAMIC_DISPATCH(LargestOfRowsKernel)(x, rows, n, out, first);
}
void largest_of_product(const GemmCall& call, LargestOfRows& out, int64_t first) {
  HWY_DYNAMIC_DISPATCH(LargestOfProductKernel)(call, out, first);
}

}  // namespace qkv::kernels
#endif
