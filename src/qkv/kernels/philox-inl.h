// Philox4x32-10 on vectors: the words of qkv::philox, 8 vectors of consecutive words per call, and dropout decisions
// made from them.
#if defined(QKV_KERNELS_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_PHILOX_INL_H_
#undef QKV_KERNELS_PHILOX_INL_H_
#else
#define QKV_KERNELS_PHILOX_INL_H_
#endif

#include <algorithm>

#include "qkv/core/rng.h"
#include "qkv/kernels/dropout.h"
#include "qkv/kernels/row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

using Words = hn::RebindToUnsigned<Floats>;
using WordPairs = hn::RepartitionToWide<Words>;
using WordVec = hn::Vec<Words>;
using PairVec = hn::Vec<WordPairs>;

/// The words of one stream. Two vectors hold the state of lanes / 2 counters: (c0, c2) and (c1, c3) in each 64-bit
/// lane, so that a round needs two multiplications, and interleaving the two at the end puts the words in order.
class WordStream {
 public:
  explicit WordStream(const Rng& rng) : step_(rng.step()), shard_(rng.shard()) {
    PhiloxKey k = rng.key();
    for (uint64_t& key : keys_) {
      key = uint64_t{k[1]} << 32 | k[0];
      k[0] += 0x9E3779B9;
      k[1] += 0xBB67AE85;
    }
  }

  /// Words come eight vectors at a time: four states at once hide the latency of ten dependent rounds.
  static constexpr int64_t kVectors = 8;

  /// f(v, vector v of the words starting at 4 block), v = 0 .. kVectors - 1.
  template <class F>
  HWY_INLINE void Next(uint64_t block, F&& f) const {
    const WordPairs d;
    // In 128-bit block k of a vector the lower counter is number k, the upper one k + (128-bit blocks per vector).
    const uint64_t pairs = hn::Lanes(d);
    const PairVec lane = hn::Iota(d, 0), one = hn::Set(d, uint64_t{1});
    const PairVec upper = hn::IfThenElseZero(hn::Eq(hn::And(lane, one), one), hn::Set(d, pairs / 2));
    const PairVec number = hn::Add(hn::ShiftRight<1>(lane), upper);
    PairVec a0, b0, a1, b1, a2, b2, a3, b3;
    Start(hn::Add(number, hn::Set(d, block)), a0, b0);
    Start(hn::Add(number, hn::Set(d, block + pairs)), a1, b1);
    Start(hn::Add(number, hn::Set(d, block + 2 * pairs)), a2, b2);
    Start(hn::Add(number, hn::Set(d, block + 3 * pairs)), a3, b3);
    for (const uint64_t key : keys_) {
      const PairVec k = hn::Set(d, key);
      Round(k, a0, b0);
      Round(k, a1, b1);
      Round(k, a2, b2);
      Round(k, a3, b3);
    }
    Finish(0, a0, b0, f);
    Finish(2, a1, b1, f);
    Finish(4, a2, b2, f);
    Finish(6, a3, b3, f);
  }

 private:
  // (c0, c2) = (step, low word of the block number), (c1, c3) = (shard, high word)
  HWY_INLINE void Start(PairVec block, PairVec& even, PairVec& odd) const {
    const WordPairs d;
    even = hn::Or(hn::ShiftLeft<32>(block), hn::Set(d, step_));
    odd = hn::Or(hn::And(block, hn::Set(d, 0xFFFFFFFF00000000u)), hn::Set(d, shard_));
  }

  template <class F>
  static HWY_INLINE void Finish(int64_t v, PairVec even, PairVec odd, F&& f) {
    const Words dw;
    f(v, hn::InterleaveLower(dw, hn::BitCast(dw, even), hn::BitCast(dw, odd)));
    f(v + 1, hn::InterleaveUpper(dw, hn::BitCast(dw, even), hn::BitCast(dw, odd)));
  }

  // even = (c0, c2), odd = (c1, c3):  c0, c1 <- hi(M1 c2) ^ c1 ^ k0, lo(M1 c2);  c2, c3 <- hi(M0 c0) ^ c3 ^ k1, lo(M0
  // c0)
  static HWY_INLINE void Round(PairVec k, PairVec& even, PairVec& odd) {
    const Words dw;
    const WordPairs d;
    const PairVec p0 = hn::MulEven(hn::BitCast(dw, even), hn::Set(dw, 0xD2511F53u));
    const PairVec p1 = hn::MulEven(hn::BitCast(dw, hn::ShiftRight<32>(even)), hn::Set(dw, 0xCD9E8D57u));
    const PairVec hi = hn::BitCast(d, hn::OddEven(hn::BitCast(dw, p0), hn::BitCast(dw, hn::ShiftRight<32>(p1))));
    even = hn::Xor(hi, hn::Xor(odd, k));
    odd = hn::BitCast(d, hn::OddEven(hn::BitCast(dw, hn::ShiftLeft<32>(p0)), hn::BitCast(dw, p1)));
  }

  uint64_t keys_[10];
  uint64_t step_, shard_;
};

/// Bytes of a row's decisions, one bit each; a vector's bits start at a byte.
HWY_INLINE int64_t KeepRowBytes(int64_t width) {
  return (width + kLanes - 1) / kLanes * std::max<int64_t>(kLanes / 8, 1);
}
HWY_INLINE int64_t KeepOffset(int64_t i) { return i / kLanes * std::max<int64_t>(kLanes / 8, 1); }

/// Makes the decisions of a Drop for consecutive elements starting at `first`; `count` is how many will be needed.
class KeepBits {
 public:
  KeepBits(const Drop& drop, uint64_t first, int64_t count)
      : stream_(drop.rng),
        threshold_(static_cast<int32_t>((drop.threshold() - 1) ^ 0x80000000u)),
        block_(first / 4),
        coming_(count + static_cast<int64_t>(first % 4)) {
    if (coming_ > 0) Fill();
    at_ = static_cast<int64_t>(first % 4);
  }

  /// f(i, left, mask) for the vectors of the next n elements, left = n - i; the decisions go to `bits` unless it is
  /// null.
  template <class F>
  HWY_INLINE void ForKept(int64_t n, uint8_t* bits, F&& f) {
    const Floats d;
    for (int64_t i = 0; i < n; i += kLanes) {
      const int64_t need = std::min(kLanes, n - i);
      if (end_ - at_ < need) Fill();
      const auto kept = hn::MaskFromVec(hn::LoadU(d, masks_ + at_));
      if (bits) hn::StoreMaskBits(d, kept, bits + KeepOffset(i));
      f(i, n - i, kept);
      at_ += need;
    }
  }

 private:
  static constexpr int64_t kChunk = 512;
  static constexpr int64_t kMaxLanes = HWY_MAX_BYTES / sizeof(float);

  // Appends decisions, all-ones or zero, after the few that are left.
  HWY_NOINLINE void Fill() {
    const Floats d;
    std::copy(masks_ + at_, masks_ + end_, masks_);
    end_ -= at_;
    at_ = 0;
    for (int64_t made = 0; made < kChunk && coming_ > 0; made += WordStream::kVectors * kLanes) {
      stream_.Next(block_, [&](int64_t v, WordVec w) HWY_ATTR { hn::StoreU(Test(w), d, masks_ + end_ + v * kLanes); });
      block_ += static_cast<uint64_t>(WordStream::kVectors * kLanes / 4);
      end_ += WordStream::kVectors * kLanes;
      coming_ -= WordStream::kVectors * kLanes;
    }
    hn::StoreU(hn::Zero(d), d, masks_ + end_);  // the last vector of a row may read past the end
  }

  // word > threshold - 1 as a signed comparison
  HWY_INLINE Vec Test(WordVec w) const {
    const hn::RebindToSigned<Floats> di;
    const auto moved = hn::BitCast(di, hn::Xor(w, hn::Set(Words(), 0x80000000u)));
    return hn::BitCast(Floats(), hn::VecFromMask(di, hn::Gt(moved, hn::Set(di, threshold_))));
  }

  WordStream stream_;
  int32_t threshold_;
  uint64_t block_;            // counter block of the next words to make
  int64_t coming_;            // approximate number of words still to make
  int64_t at_ = 0, end_ = 0;  // masks_[at_, end_) are ready
  HWY_ALIGN float masks_[kChunk + (WordStream::kVectors + 2) * kMaxLanes];
};

/// The decisions of the vector at element i of a row.
HWY_INLINE hn::Mask<Floats> KeptAt(Floats d, const uint8_t* row_bits, int64_t i) {
  return hn::LoadMaskBits(d, row_bits + KeepOffset(i));
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
