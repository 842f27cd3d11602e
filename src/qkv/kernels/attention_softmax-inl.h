// The online softmax of a panel of queries (Milakov and Gimelshein, 2018): scores of a tile become weights relative to
// a running maximum.
#if defined(QKV_KERNELS_ATTENTION_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_ATTENTION_SOFTMAX_INL_H_
#undef QKV_KERNELS_ATTENTION_SOFTMAX_INL_H_
#else
#define QKV_KERNELS_ATTENTION_SOFTMAX_INL_H_
#endif

#include "qkv/kernels/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace attn {

// A row's weights so far are 2^(score - top) with sum `total`; top follows the maximum if exceeded by more than this.
constexpr float kSlack = 16;
constexpr float kMuch = 1 << 15;  // a tile whose weights sum to less has not exceeded it

constexpr int kTogether = 6;  // exponentials computed together, and summed with each other first
static_assert(kChunk % kTogether == 0 && kTogether % 2 == 0);

struct Running {
  HWY_ALIGN float top[kPanel], total[kPanel], rescale[kPanel];
  bool look;   // whether to look for the maximum of the next tile
  bool rises;  // scores once exceeded `top` without a look: now the maximum is always looked for

  void Clear() {
    std::fill_n(top, kPanel, -kInfinity);
    std::fill_n(total, kPanel, 0.f);
    look = true;
    rises = false;
  }
};

// at[j] <- 2^(at[j] - base) for the vectors of one group, kPanel apart; vectors missing from the last group count as
// -inf. sum += their values.
template <bool kWhole>
HWY_INLINE void WeighGroup(int64_t count, Vec base, float* at, Vec& sum) {
  const Floats d;
  const auto there = [count](int i) { return kWhole || i < count; };
  Vec weight[kTogether];
#pragma GCC unroll 8
  for (int i = 0; i < kTogether; ++i)
    weight[i] = there(i) ? hn::Sub(hn::Load(d, at + i * kPanel), base) : hn::Set(d, -kInfinity);
    // Without a search for the maximum there is no bound: a score far above `base` becomes 2^127 and shows in the sum.
#pragma GCC unroll 8
  for (int i = 0; i < kTogether; ++i) weight[i] = AtMost(hn::Set(d, 127.f), weight[i]);
  PowersOfTwo(d, weight);
#pragma GCC unroll 8
  for (int i = 0; i < kTogether; ++i) {
    if (there(i)) hn::Store(weight[i], d, at + i * kPanel);
  }
  Vec group = hn::Add(weight[0], weight[1]);
#pragma GCC unroll 8
  for (int i = 2; i < kTogether; i += 2) group = hn::Add(group, hn::Add(weight[i], weight[i + 1]));
  sum = hn::Add(sum, group);
}

// at[j] <- 2^(at[j] - base) for `count` vectors kPanel apart. Returns their sum, added up in groups.
HWY_NOINLINE Vec WeighColumn(int64_t count, Vec base, float* at) {
  Vec sum = hn::Zero(Floats());
  for (; count >= kTogether; count -= kTogether, at += kTogether * kPanel) WeighGroup<true>(kTogether, base, at, sum);
  if (count > 0) WeighGroup<false>(count, base, at, sum);
  return sum;
}

// Sets row.top and row.rescale for the maximum of each lane of s (count, kPanel). Returns whether any row's earlier
// sums must be rescaled.
template <int kVectors>
HWY_INLINE bool MoveTop(int64_t count, const float* s, Running& row) {
  const Floats d;
  Vec top[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) top[v] = hn::Set(d, -kInfinity);
  for (int64_t j = 0; j < count; ++j) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      top[v] = hn::Max(hn::Load(d, s + j * kPanel + v * kLanes), top[v]);  // a NaN score leaves it unchanged
  }
  bool moved = false;
  row.look = row.rises;
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const Vec before = hn::Load(d, row.top + v * kLanes);
    const auto passed = hn::Gt(top[v], hn::Add(before, hn::Set(d, kSlack)));
    const Vec now = hn::IfThenElse(passed, top[v], before);
    moved |= !hn::AllFalse(d, passed);
    row.look |= !hn::AllFalse(d, hn::Eq(now, hn::Set(d, -kInfinity)));
    hn::Store(now, d, row.top + v * kLanes);
    hn::Store(hn::IfThenElse(passed, PowerOfTwo(d, hn::Sub(before, now)), hn::Set(d, 1.f)), d,
              row.rescale + v * kLanes);
  }
  return moved;
}

enum class Softmax { kept, moved, look_again };

// s (count, kPanel) <- weights relative to row.top. `moved`: some row's earlier sums must be rescaled. `look_again`:
// the maximum was not looked for, and some row may have exceeded its top by too much; nothing but s has changed.
// Looking or not never changes the resulting bits.
template <int kVectors>
HWY_INLINE Softmax SoftmaxStep(int64_t count, float* s, Running& row) {
  const Floats d;
  const bool looked = row.look, moved = looked && MoveTop<kVectors>(count, s, row);
  Vec sum[kVectors];
  bool small = true;
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const Vec top = hn::Load(d, row.top + v * kLanes);
    const Vec base =
        hn::IfThenZeroElse(hn::Eq(top, hn::Set(d, -kInfinity)), top);  // nothing seen yet: every weight is 2^-inf
    sum[v] = WeighColumn(count, base, s + v * kLanes);
    small &= hn::AllTrue(d, hn::Lt(sum[v], hn::Set(d, kMuch)));  // false for NaN
  }
  if (!looked && !small) return Softmax::look_again;
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const Vec total = hn::Load(d, row.total + v * kLanes),
              rescale = moved ? hn::Load(d, row.rescale + v * kLanes) : hn::Set(d, 1.f);
    hn::Store(hn::MulAdd(total, rescale, sum[v]), d, row.total + v * kLanes);
  }
  return moved ? Softmax::moved : Softmax::kept;
}

HWY_NOINLINE Softmax SoftmaxStep(int64_t vectors, int64_t count, float* s, Running& row) {
  if (vectors == 3) return SoftmaxStep<3>(count, s, row);
  return vectors == 2 ? SoftmaxStep<2>(count, s, row) : SoftmaxStep<1>(count, s, row);
}

}  // namespace attn
}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
