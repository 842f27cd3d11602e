// Scores, softmax and weighted sum of one query at a time: everything a row needs fits into the L1 cache. Where
// possible, four heads are computed together, side by side in a vector; each has the same bits as alone.
#include "qkv/kernels/step_attention.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/step_attention.cpp"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>

#include "qkv/kernels/scratch.h"
#include "qkv/kernels/slot_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

// One head of one row; scores has room for count floats plus one vector.
HWY_INLINE void StepHead(const StepAttention& s, const float* q, const StepKeys& keys, int64_t first,
                         const int32_t* slots, int64_t count, float* scores, float* out) {
  const Floats d;
  const int64_t row = s.key_heads * s.width;
  const float *k = keys.k + first, *v = keys.v + first;
  int64_t j = 0;
  for (; j + 4 <= count; j += 4) Scores<4>(q, k, slots + j, row, s.width, s.scale, scores + j);
  for (; j < count; ++j) Scores<1>(q, k, slots + j, row, s.width, s.scale, scores + j);
  const int64_t padded = (count + kLanes - 1) / kLanes * kLanes;
  std::fill(scores + count, scores + padded, -std::numeric_limits<float>::infinity());
  Vec highest = hn::Load(d, scores);
  for (int64_t i = kLanes; i < padded; i += kLanes) highest = hn::Max(highest, hn::Load(d, scores + i));
  const float most = LargestLane(d, highest);
  float sum = 0;
  if (most > -std::numeric_limits<float>::infinity()) {
    const Vec shift = hn::Set(d, most);
    Vec sums = hn::Zero(d);
    for (int64_t i = 0; i < padded; i += kLanes) {
      const Vec e = ExpLess(d, hn::Load(d, scores + i), shift);
      hn::Store(e, d, scores + i);
      sums = hn::Add(sums, e);
    }
    sum = hn::GetLane(hn::SumOfLanes(d, sums));
  } else {
    for (int64_t i = 0; i < count; ++i) sum += scores[i] == scores[i] ? 0 : scores[i];  // NaN stays NaN
    std::fill_n(scores, count, 0.f);
  }
  const float inverse = sum == 0 ? 0 : 1 / sum;
  int64_t c = 0;
  for (; c + 4 * kLanes <= s.width; c += 4 * kLanes) Mean<4>(scores, v + c, slots, count, row, inverse, out + c);
  for (; c + kLanes <= s.width; c += kLanes) Mean<1>(scores, v + c, slots, count, row, inverse, out + c);
  if (c == s.width) return;
  Vec tail = hn::Zero(d);
  for (int64_t i = 0; i < count; ++i)
    tail = hn::MulAdd(hn::Set(d, scores[i]), LoadPart(d, v + c + slots[i] * row, s.width - c), tail);
  StorePart(hn::Mul(tail, hn::Set(d, inverse)), d, out + c, s.width - c);
}

constexpr int kGroup = 4;  // heads computed together
constexpr int kKeysOfVector =
    static_cast<int>(hn::MaxLanes(Floats())) / kGroup;  // keys whose scores for these heads fill a vector
static_assert(kKeysOfVector == 1 || kKeysOfVector == 2);

// The sum of the halves of x in the lower half, and of y in the upper half.
HWY_INLINE Vec AddHalves(Floats d, Vec x, Vec y) {
#if HWY_TARGET == HWY_AVX2
  return hn::Add(hn::ConcatUpperLower(d, y, x), hn::ConcatLowerUpper(d, y, x));
#else
  (void)d;
  (void)y;
  return x;
#endif
}

// The lane sums of x[head][key], key by key, each in the order of SumOfLanes.
HWY_INLINE Vec SumsOfLanes(Floats d, const Vec (&x)[kGroup][kKeysOfVector]) {
  const hn::Repartition<double, Floats> pairs;
  Vec half[kGroup];
#pragma GCC unroll 4
  for (int h = 0; h < kGroup; ++h) half[h] = AddHalves(d, x[h][0], x[h][kKeysOfVector - 1]);
  const auto two = [&](Vec a, Vec b) HWY_ATTR {
    const auto first = hn::BitCast(pairs, a), second = hn::BitCast(pairs, b);
    return hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, first, second)),
                   hn::BitCast(d, hn::InterleaveUpper(pairs, first, second)));
  };
  const Vec even = two(half[0], half[2]), odd = two(half[1], half[3]);
  return hn::Add(hn::OddEven(odd, even), hn::Shuffle2301(hn::OddEven(even, odd)));
}

// Four heads of a row, side by side in queries, keys, values and output.
struct HeadGroup {
  const float *q, *k, *v;
  float* out;
  int64_t row, width;  // row: floats from slot to slot; width: width of a head
};

// The width of a head, known to the compiler unless kWidth is 0.
template <int kWidth>
HWY_INLINE int64_t WidthOf(const HeadGroup& g) {
  return kWidth ? kWidth : g.width;
}

// The scores of the key in slot `first` and, if a vector has room for two, of the key in slot `last`.
template <int kWidth>
HWY_INLINE Vec GroupScores(const HeadGroup& g, int32_t first, int32_t last, float scale) {
  const Floats d;
  const int64_t width = WidthOf<kWidth>(g);
  const float* key[] = {g.k + first * g.row, g.k + last * g.row};
  Vec sum[kGroup][kKeysOfVector];
#pragma GCC unroll 4
  for (int h = 0; h < kGroup; ++h) {
#pragma GCC unroll 2
    for (int i = 0; i < kKeysOfVector; ++i) sum[h][i] = hn::Zero(d);
  }
#pragma GCC unroll 4
  for (int64_t c = 0; c < width; c += kLanes) {
#pragma GCC unroll 4
    for (int h = 0; h < kGroup; ++h) {
      const Vec x = hn::LoadU(d, g.q + h * width + c);
#pragma GCC unroll 2
      for (int i = 0; i < kKeysOfVector; ++i)
        sum[h][i] = hn::MulAdd(x, hn::LoadU(d, key[i] + h * width + c), sum[h][i]);
    }
  }
  return hn::Mul(hn::Set(d, scale), SumsOfLanes(d, sum));
}

// kVectors vectors of the weighted sums of the values of heads h and h + 1, starting at column c; weights (keys,
// kGroup).
template <int kWidth, int kVectors>
HWY_INLINE void MeanOfTwo(const HeadGroup& g, int h, const float* weights, const int32_t* slots, int64_t count,
                          const float* inverse, int64_t c) {
  const Floats d;
  const int64_t width = WidthOf<kWidth>(g);
  const float* v = g.v + h * width + c;
  Vec sum[2][kVectors];
#pragma GCC unroll 4
  for (int i = 0; i < kVectors; ++i) sum[0][i] = sum[1][i] = hn::Zero(d);
  for (int64_t j = 0; j < count; ++j) {
    const float* value = v + slots[j] * g.row;
    const Vec p = hn::Set(d, weights[j * kGroup + h]), r = hn::Set(d, weights[j * kGroup + h + 1]);
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) {
      sum[0][i] = hn::MulAdd(p, hn::LoadU(d, value + i * kLanes), sum[0][i]);
      sum[1][i] = hn::MulAdd(r, hn::LoadU(d, value + width + i * kLanes), sum[1][i]);
    }
  }
#pragma GCC unroll 2
  for (int two = 0; two < 2; ++two) {
    const Vec by = hn::Set(d, inverse[h + two]);
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i)
      hn::StoreU(hn::Mul(sum[two][i], by), d, g.out + (h + two) * width + c + i * kLanes);
  }
}

// Returns whether it did the work: NaN scores, or a head with none above -inf, are left to StepHead. `scores` has room
// for count + 1 keys.
template <int kWidth>
HWY_NOINLINE bool StepGroup(const HeadGroup& g, const int32_t* slots, int64_t count, float scale, float* scores) {
  const Floats d;
  const int64_t width = WidthOf<kWidth>(g);
  const Vec none = hn::Set(d, -std::numeric_limits<float>::infinity());
  Vec highest = none;
  float* to = scores;
  int64_t j = 0;
  for (; j + kKeysOfVector <= count; j += kKeysOfVector, to += kLanes) {
    const Vec s = GroupScores<kWidth>(g, slots[j], slots[j + kKeysOfVector - 1], scale);
    hn::Store(s, d, to);
    highest = hn::Max(highest, s);
  }
#if HWY_TARGET == HWY_AVX2
  if (j < count) {
    const Vec s = hn::ConcatUpperLower(d, none, GroupScores<kWidth>(g, slots[j], slots[j], scale));
    hn::Store(s, d, to);
    to += kLanes;
    highest = hn::Max(highest, s);
  }
  highest = hn::Max(highest, hn::ConcatLowerUpper(d, highest, highest));
#endif
  if (!hn::AllTrue(d, hn::Gt(highest, none))) return false;
  // Key j is added to lane j mod lanes, then the lanes are summed as in SumOfLanes.
  Vec sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  float* at = scores;
  const auto add = [&](Vec& sum) HWY_ATTR {
    const Vec e = ExpLess(d, hn::Load(d, at), highest);
    hn::Store(e, d, at);
    sum = hn::Add(sum, e);
    at += kLanes;
  };
  for (; at + 4 * kLanes <= to;) {
    add(sums[0]);
    add(sums[1]);
    add(sums[2]);
    add(sums[3]);
  }
  if (at < to) add(sums[0]);
  if (at < to) add(sums[1]);
  if (at < to) add(sums[2]);
  const Vec sum = hn::Add(hn::Add(sums[0], sums[2]), hn::Add(sums[1], sums[3]));
  HWY_ALIGN float inverse[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(hn::Div(hn::Set(d, 1.f), AddHalves(d, sum, sum)), d, inverse);
  for (int h = 0; h < kGroup; h += 2) {
    int64_t c = 0;
    for (; c + 4 * kLanes <= width; c += 4 * kLanes) MeanOfTwo<kWidth, 4>(g, h, scores, slots, count, inverse, c);
    if (c + 2 * kLanes <= width) {
      MeanOfTwo<kWidth, 2>(g, h, scores, slots, count, inverse, c);
      c += 2 * kLanes;
    }
    if (c < width) MeanOfTwo<kWidth, 1>(g, h, scores, slots, count, inverse, c);
  }
  return true;
}

using GroupFunction = bool (*)(const HeadGroup&, const int32_t*, int64_t, float, float*);

// Null if heads cannot be computed together: several read the same keys, or a head is not a whole number of vectors.
HWY_INLINE GroupFunction GroupOf(const StepAttention& s) {
  if (s.heads != s.key_heads || s.width % kLanes != 0) return nullptr;
  return s.width == 16 ? StepGroup<16> : s.width == 32 ? StepGroup<32> : s.width == 64 ? StepGroup<64> : StepGroup<0>;
}

// One row with keys.
HWY_INLINE void StepRow(const StepAttention& s, GroupFunction group, const float* q, const StepKeys& keys,
                        const int32_t* slots, int64_t count, float* scores, float* out) {
  const int64_t shared = s.heads / s.key_heads;
  for (int64_t h = 0; h < s.heads;) {
    const int64_t at = h * s.width;
    const HeadGroup heads{q + at, keys.k + at, keys.v + at, out + at, s.heads * s.width, s.width};
    if (group && h + kGroup <= s.heads && group(heads, slots, count, s.scale, scores)) {
      h += kGroup;
      continue;
    }
    StepHead(s, q + at, keys, h / shared * s.width, slots, count, scores, out + at);
    ++h;
  }
}

// Prefetches the keys and values of row r >= 1, except those that the previous row has at the same index: they are
// scattered in memory.
HWY_INLINE void Prefetch(const StepKeys& keys, int64_t r, int64_t row) {
  const int32_t* slots = keys.slots + r * keys.stride;
  for (int64_t j = 0; j < keys.counts[r]; ++j) {
    if (slots[j] == slots[j - keys.stride]) continue;
    for (int64_t c = 0; c < row; c += 16) {
      hwy::Prefetch(keys.k + slots[j] * row + c);
      hwy::Prefetch(keys.v + slots[j] * row + c);
    }
  }
}

void StepAttentionRows(const StepAttention& s, const float* q, const StepKeys& keys, float* out, int64_t begin,
                       int64_t end) {
  const int64_t width = s.heads * s.width;
  int64_t most = 1;
  for (int64_t r = begin; r < end; ++r) most = std::max<int64_t>(most, keys.counts[r]);
  const int64_t room = std::max<int64_t>(most + kLanes, (most + 1) * kGroup);
  float* scores = Scratch(room, 1).take(room);
  const GroupFunction group = GroupOf(s);
  for (int64_t r = begin; r < end; ++r) {
    if (r + 1 < end) Prefetch(keys, r + 1, s.key_heads * s.width);
    const int32_t* slots = keys.slots + r * keys.stride;
    if (keys.counts[r] == 0) {
      std::fill_n(out + r * width, width, 0.f);
      continue;
    }
    StepRow(s, group, q + r * width, keys, slots, keys.counts[r], scores, out + r * width);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(StepAttentionRows);
void step_attention(const StepAttention& sizes, const float* q, const StepKeys& keys, float* out, int64_t begin,
                    int64_t end) {
  HWY_DYNAMIC_DISPATCH(StepAttentionRows)(sizes, q, keys, out, begin, end);
}

}  // namespace qkv::kernels
#endif
