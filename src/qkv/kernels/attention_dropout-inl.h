// Dropout on attention weights: Philox4x32-10 with queries in lanes, so that the four words of a counter are four rows of a tile.
#if defined(QKV_KERNELS_ATTENTION_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_ATTENTION_DROPOUT_INL_H_
#undef QKV_KERNELS_ATTENTION_DROPOUT_INL_H_
#else
#define QKV_KERNELS_ATTENTION_DROPOUT_INL_H_
#endif

#include <cmath>

#include "qkv/kernels/attention.h"
#include "qkv/kernels/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace attn {

/// Dropout decisions of the weights of one (batch row, head): queries in lanes, the four words of a counter are four keys.
class Dropper {
 public:
  Dropper(const AttentionDropout& dropout, const AttentionSizes& sizes, int64_t b, int64_t h)
      : on_(dropout.rate > 0), step_(dropout.step), row_(dropout.first_row + static_cast<uint32_t>(b * sizes.heads + h)) {
    const double threshold = std::ceil(static_cast<double>(dropout.rate) * 0x1p32);
    none_ = threshold >= 0x1p32;
    last_dropped_ = none_ ? 0 : static_cast<int32_t>((static_cast<uint32_t>(threshold) - 1) ^ 0x80000000u);
    PhiloxKey k = dropout.key;
    for (int round = 0; round < 10; ++round) {
      keys_[round] = k;
      k[0] += 0x9E3779B9;
      k[1] += 0xBB67AE85;
    }
  }
  bool on() const { return on_; }
  static float Factor(const AttentionDropout& dropout) {
    return dropout.rate <= 0 ? 1.f : dropout.rate >= 1 ? 0.f : 1.f / (1.f - dropout.rate);
  }

  /// f(j, lane, kept) for every vector of rows first + lane of the keys [j0, j1).
  template <class F>
  HWY_INLINE void ForEach(int64_t first, int64_t vectors, int64_t j0, int64_t j1, F&& f) const {
    const Floats d;
    const Words dw;
    for (int64_t group = j0 / 4; 4 * group < j1; ++group) {
      for (int64_t v = 0; v < vectors; ++v) {
        hn::Vec<Words> w[4];
        Next(hn::Iota(dw, static_cast<uint32_t>(first + v * kLanes)), static_cast<uint32_t>(group), w);
#pragma GCC unroll 4
        for (int64_t i = 0; i < 4; ++i) {
          const int64_t j = 4 * group + i;
          if (j >= j0 && j < j1) f(j, v * kLanes, hn::RebindMask(d, Kept(w[i])));
        }
      }
    }
  }

 private:
  using Words = hn::RebindToUnsigned<Floats>;
  using Pairs = hn::RepartitionToWide<Words>;
  using PairVec = hn::Vec<Pairs>;

  // Counter (step, row, query, group): the words live in the lower halves of 64-bit lanes, what is above them is never read.
  struct State {
    PairVec c0, c1, c2, c3;

    HWY_INLINE void Round(PairVec k0, PairVec k1) {
      const Words dw;
      const PairVec p0 = hn::MulEven(hn::BitCast(dw, c0), hn::Set(dw, 0xD2511F53u));
      const PairVec p1 = hn::MulEven(hn::BitCast(dw, c2), hn::Set(dw, 0xCD9E8D57u));
      c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), c1), k0);
      c1 = p1;
      c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), c3), k1);
      c3 = p0;
    }
  };

  HWY_INLINE void Next(hn::Vec<Words> query, uint32_t group, hn::Vec<Words> (&w)[4]) const {
    const Pairs d;
    const PairVec step = hn::Set(d, step_), row = hn::Set(d, row_), key = hn::Set(d, group), both = hn::BitCast(d, query);
    State even{step, row, both, key}, odd{step, row, hn::ShiftRight<32>(both), key};
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const PairVec k0 = hn::Set(d, keys_[round][0]), k1 = hn::Set(d, keys_[round][1]);
      even.Round(k0, k1);
      odd.Round(k0, k1);
    }
    w[0] = Join(even.c0, odd.c0);
    w[1] = Join(even.c1, odd.c1);
    w[2] = Join(even.c2, odd.c2);
    w[3] = Join(even.c3, odd.c3);
  }
  static HWY_INLINE hn::Vec<Words> Join(PairVec even, PairVec odd) {
    const Words dw;
    return hn::OddEven(hn::BitCast(dw, hn::ShiftLeft<32>(odd)), hn::BitCast(dw, even));
  }
  // word >= threshold, as a signed comparison
  HWY_INLINE hn::Mask<hn::RebindToSigned<Floats>> Kept(hn::Vec<Words> word) const {
    const hn::RebindToSigned<Floats> di;
    const auto moved = hn::BitCast(di, hn::Xor(word, hn::Set(Words(), 0x80000000u)));
    if (none_) return hn::Lt(moved, moved);
    return hn::Gt(moved, hn::Set(di, last_dropped_));
  }

  bool on_, none_ = false;
  int32_t last_dropped_ = 0;
  uint64_t step_, row_;
  PhiloxKey keys_[10];
};

}  // namespace attn
}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
