// Dropout on attention weights: Philox4x32-10 with queries in lanes, so that the four words of a counter are four rows
// of a tile.
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

/// Dropout decisions of the weights of one (batch row, head): queries in lanes, the four words of a counter are four
/// keys.
class Dropper {
 public:
  Dropper(const AttentionDropout& dropout, const AttentionSizes& sizes, int64_t b, int64_t h)
      : on_(dropout.rate > 0),
        step_(dropout.step),
        row_(dropout.first_row + static_cast<uint32_t>(b * sizes.heads + h)) {
    if (!on_) return;
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
    for (int64_t v = 0; v < vectors; ++v) {
      const PairVec queries = hn::BitCast(Pairs(), hn::Iota(Words(), static_cast<uint32_t>(first + v * kLanes)));
      const Opening even = Open(queries), odd = Open(hn::ShiftRight<32>(queries));
      for (int64_t group = j0 / 4; 4 * group < j1; ++group) {
        hn::Vec<Words> w[4];
        Next(even, odd, static_cast<uint32_t>(group), w);
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

  // A counter's words are in the lower halves of 64-bit lanes; the upper halves are never read.
  struct State {
    PairVec c0, c1, c2, c3;

    HWY_INLINE void Round(PairVec k0, PairVec k1) {
      const PairVec p0 = Times(0xD2511F53u, c0), p1 = Times(0xCD9E8D57u, c2);
      c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), c1), k0);
      c1 = p1;
      c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), c3), k1);
      c3 = p0;
    }
  };
  static HWY_INLINE PairVec Times(uint32_t factor, PairVec x) {
    return hn::MulEven(hn::BitCast(Words(), x), hn::Set(Words(), factor));
  }

  // The part of the first rounds on counter (step, row, query, group) that does not depend on the group. After round 1,
  // c0 and c1 depend on the query alone, and c2 and c3 do not depend on it; after round 2, c2 and c3 depend on the
  // query alone, c1 on the group alone.
  struct Opening {
    PairVec c0;      // after round 2, except for the group's part
    PairVec c3, p1;  // in round 3: c3 xor key, M1 * c2
  };
  HWY_INLINE Opening Open(PairVec query) const {
    const Pairs d;
    const uint64_t p0 = uint64_t{0xD2511F53} * step_;
    const PairVec p1 = Times(0xCD9E8D57u, query);
    const PairVec c0 = hn::Xor(hn::ShiftRight<32>(p1), hn::Set(d, row_ ^ keys_[0][0]));
    const PairVec q0 = Times(0xD2511F53u, c0);
    const PairVec c2 = hn::Xor(hn::ShiftRight<32>(q0), hn::Set(d, (p0 & 0xFFFFFFFF) ^ keys_[1][1]));
    return {hn::Xor(p1, hn::Set(d, uint64_t{keys_[1][0]})), hn::Xor(q0, hn::Set(d, uint64_t{keys_[2][1]})),
            Times(0xCD9E8D57u, c2)};
  }

  HWY_INLINE void Next(const Opening& even, const Opening& odd, uint32_t group, hn::Vec<Words> (&w)[4]) const {
    const Pairs d;
    const uint32_t c2 = static_cast<uint32_t>(uint64_t{0xD2511F53} * step_ >> 32) ^ group ^ keys_[0][1];
    const uint64_t p1 = uint64_t{0xCD9E8D57} * c2;
    const PairVec high = hn::Set(d, p1 >> 32), low = hn::Set(d, (p1 & 0xFFFFFFFF) ^ keys_[2][0]);
    const auto third = [&](const Opening& open) HWY_ATTR {
      const PairVec p0 = Times(0xD2511F53u, hn::Xor(open.c0, high));
      return State{hn::Xor(hn::ShiftRight<32>(open.p1), low), open.p1, hn::Xor(hn::ShiftRight<32>(p0), open.c3), p0};
    };
    State a = third(even), b = third(odd);
#pragma GCC unroll 10
    for (int round = 3; round < 10; ++round) {
      const PairVec k0 = hn::Set(d, uint64_t{keys_[round][0]}), k1 = hn::Set(d, uint64_t{keys_[round][1]});
      a.Round(k0, k1);
      b.Round(k0, k1);
    }
    w[0] = Join(a.c0, b.c0);
    w[1] = Join(a.c1, b.c1);
    w[2] = Join(a.c2, b.c2);
    w[3] = Join(a.c3, b.c3);
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
