// The register tile of every matrix product here: rows by vectors of sums that stay in registers over the whole depth.
// A step takes one element per row of the left operand and one row of vectors of the right operand, multiplies and
// adds; so every sum is one chain of multiply-adds in ascending order, for any tile size. Also what tiles read: right
// operands in pairs of vectors, and the vector transposes that packing needs.
#if defined(QKV_KERNELS_REGISTER_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_REGISTER_TILE_INL_H_
#undef QKV_KERNELS_REGISTER_TILE_INL_H_
#else
#define QKV_KERNELS_REGISTER_TILE_INL_H_
#endif

#include <hwy/cache_control.h>

#include <cstdint>

#include "qkv/kernels/map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

/// f(0), f(1), ..., f(kCount - 1) without a loop, so that arrays of vectors indexed by i can stay in registers.
template <int kCount, class F>
HWY_INLINE void Unrolled(F&& f) {
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) f(i);
}

/// Prefetches the lines of `kRows` floats, `stride` apart. Not a lambda: GCC removes one that only prefetches.
template <int kRows>
HWY_INLINE void PrefetchRows(const float* first, int64_t stride) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) hwy::Prefetch(first + r * stride);
}

/// How the left operand is stored: element (r, k) at [r * stride + k] or at [k * stride + r].
enum class Layout { row_major, column_major };

/// Right operand of a product: vectors 2p and 2p + 1 of row k are at data + p * pair + k * stride.
struct Right {
  const float* data;
  int64_t stride, pair;

  Right From(int64_t row) const { return {data + row * stride, stride, pair}; }
};

/// What a step adds for elements a and b: a b, or (b - a)^2.
enum class Pairing { product, difference };

template <int kRows, int kVectors>
struct Tile {
  Vec sum[kRows][kVectors];

  /// f(r, v, sum[r][v]) for all sums.
  template <class F>
  HWY_INLINE void Each(F&& f) {
    Unrolled<kRows>([&](int r) HWY_ATTR { Unrolled<kVectors>([&](int v) HWY_ATTR { f(r, v, sum[r][v]); }); });
  }

  HWY_INLINE void Clear() {
    Each([](int, int, Vec& s) HWY_ATTR { s = hn::Zero(Floats()); });
  }

  /// sum[r][v] += left(r) paired with right(v): a float per row, a vector per v.
  template <Pairing kPairing = Pairing::product, class LeftOf, class RightOf>
  HWY_INLINE void Step(LeftOf&& left, RightOf&& right) {
    Vec b[kVectors];
    Unrolled<kVectors>([&](int v) HWY_ATTR { b[v] = right(v); });
    Unrolled<kRows>([&](int r) HWY_ATTR {
      const Vec a = hn::Set(Floats(), left(r));
      Unrolled<kVectors>([&](int v) HWY_ATTR {
        if constexpr (kPairing == Pairing::product) {
          sum[r][v] = hn::MulAdd(a, b[v], sum[r][v]);
        } else {
          const Vec e = hn::Sub(b[v], a);
          sum[r][v] = hn::MulAdd(e, e, sum[r][v]);
        }
      });
    });
  }

  /// sum[r][v] += the sum over `depth` steps of left (r, k) right (k, v).
  template <Layout kLayout>
  HWY_INLINE void AddProduct(int64_t depth, const float* left, int64_t stride, Right right) {
    const float* HWY_RESTRICT a = left;
    const float* HWY_RESTRICT b = right.data;
#pragma GCC unroll 4
    for (int64_t k = 0; k < depth; ++k) {
      Step([&](int r) { return kLayout == Layout::row_major ? a[r * stride] : a[r]; },
           [&](int v) HWY_ATTR { return hn::LoadU(Floats(), b + v / 2 * right.pair + v % 2 * kLanes); });
      a += kLayout == Layout::row_major ? 1 : stride;
      b += right.stride;
    }
  }
};

/// rows (count, width), `stride` floats apart, copied to `to` as a right operand: pairs of vectors, each pair `count`
/// rows long. The last vector ends in zeros.
HWY_INLINE Right PackRows(const float* rows, int64_t stride, int64_t count, int64_t width, float* to) {
  const Floats d;
  const int64_t pair = count * 2 * kLanes, tail = width % kLanes;
  for (int64_t k = 0; k < count; ++k) {
    const float* from = rows + k * stride;
    float* at = to + k * 2 * kLanes;
    int64_t c = 0;
    for (; c + 2 * kLanes <= width; c += 2 * kLanes, at += pair) {
      hn::Store(hn::LoadU(d, from + c), d, at);
      hn::Store(hn::LoadU(d, from + c + kLanes), d, at + kLanes);
    }
    if (c + kLanes <= width) {
      hn::Store(hn::LoadU(d, from + c), d, at);
      c += kLanes;
      at += kLanes;
    }
    if (tail > 0) hn::Store(LoadPart(d, from + c, tail), d, at);
  }
  return {to, 2 * kLanes, pair};
}

/// x[i][j] <-> x[j][i] in every block of four lanes of four vectors.
HWY_INLINE void TransposeBlocks(Vec& a, Vec& b, Vec& c, Vec& e) {
  const Floats d;
  const hn::Repartition<double, Floats> pairs;
  const auto low_ab = hn::BitCast(pairs, hn::InterleaveLower(d, a, b)),
             high_ab = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
  const auto low_ce = hn::BitCast(pairs, hn::InterleaveLower(d, c, e)),
             high_ce = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
  a = hn::BitCast(d, hn::InterleaveLower(pairs, low_ab, low_ce));
  b = hn::BitCast(d, hn::InterleaveUpper(pairs, low_ab, low_ce));
  c = hn::BitCast(d, hn::InterleaveLower(pairs, high_ab, high_ce));
  e = hn::BitCast(d, hn::InterleaveUpper(pairs, high_ab, high_ce));
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
