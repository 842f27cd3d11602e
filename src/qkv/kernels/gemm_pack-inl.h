// Packing for the matrix product: panels of op(B) and blocks of op(A) copied so that tiles read memory in order.
#if defined(QKV_KERNELS_GEMM_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_GEMM_PACK_INL_H_
#undef QKV_KERNELS_GEMM_PACK_INL_H_
#else
#define QKV_KERNELS_GEMM_PACK_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "qkv/kernels/gemm_kernel.h"
#include "qkv/kernels/map-inl.h"

#undef QKV_GEMM_TRANSPOSES

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

// How A lies: rows across (element k of row r at a[r * stride + k]) or down (at a[k * stride + r]).
enum class Lie { across, down };

HWY_INLINE Vec LoadTail(Floats d, const float* p, int64_t count) {
#if HWY_TARGET == HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, p);
#else
  return LoadPart(d, p, count);
#endif
}

// Stores the first count < Lanes(d) elements and touches nothing behind them.
HWY_INLINE void StoreTail(Vec v, Floats d, float* p, int64_t count) {
#if HWY_TARGET == HWY_AVX2
  const hn::Full128<float> d4;
  const hn::Half<decltype(d4)> d2;
  auto part = hn::LowerHalf(d4, v);
  if (count & 4) {
    hn::StoreU(part, d4, p);
    p += 4;
    part = hn::UpperHalf(d4, v);
  }
  if (count & 2) {
    hn::StoreU(hn::LowerHalf(d2, part), d2, p);
    p += 2;
    part = hn::Shuffle1032(part);
  }
  if (count & 1) *p = hn::GetLane(part);
#else
  StorePart(v, d, p, count);
#endif
}

// Packs rows [0, K) x columns [0, count) of op(B) = B into rows of `width` floats, zeros behind count.
void PackRows(const float* B, int64_t ldb, int64_t K, int64_t count, int64_t width, float* out) {
  const Floats d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), tail = count % lanes;
  for (int64_t k = 0; k < K; ++k, B += ldb, out += width) {
    int64_t j = 0;
    for (; j + lanes <= count; j += lanes) hn::Store(hn::LoadU(d, B + j), d, out + j);
    if (tail) hn::Store(LoadTail(d, B + j, tail), d, out + j);
  }
}

// Registers can transpose where a vector is one or two blocks of four lanes; elsewhere the packer goes element by
// element.
#if HWY_TARGET != HWY_SCALAR && (HWY_MAX_BYTES == 16 || HWY_TARGET == HWY_AVX2)
#define QKV_GEMM_TRANSPOSES 1
constexpr int64_t kLanes = HWY_TARGET == HWY_AVX2 ? 8 : 4;

// Four steps k .. k + 3 of kLanes columns: y[i] holds step k + i of all of them. row[j] is column j.
HWY_INLINE void LoadTransposed(Floats d, const float* const (&row)[kLanes], int64_t k, Vec (&y)[4]) {
  const hn::Repartition<double, Floats> pairs;
  Vec v[4];
#if HWY_TARGET == HWY_AVX2
  const hn::Full128<float> d4;
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) v[i] = hn::Combine(d, hn::LoadU(d4, row[i + 4] + k), hn::LoadU(d4, row[i] + k));
#else
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) v[i] = hn::LoadU(d, row[i] + k);
#endif
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, v[0], v[1]));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, v[0], v[1]));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, v[2], v[3]));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, v[2], v[3]));
  y[0] = hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23));
  y[1] = hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23));
  y[2] = hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23));
  y[3] = hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23));
}

// Columns j .. j + kLanes - 1 of B^T; one that is not there repeats the last, and its lane is never stored.
HWY_INLINE void ColumnPointers(const float* B, int64_t ldb, int64_t j, int64_t count, const float* (&row)[kLanes]) {
  for (int64_t i = 0; i < kLanes; ++i) row[i] = B + std::min(j + i, count - 1) * ldb;
}
#endif

// Packs op(B) = B^T: column j is B[j * ldb ..]. Same result as PackRows of the transposed matrix.
void PackColumns(const float* B, int64_t ldb, int64_t K, int64_t count, int64_t width, float* out) {
  int64_t k = 0;
#ifdef QKV_GEMM_TRANSPOSES
  const Floats d;
  for (int64_t j = 0; j < count; j += kLanes) {
    const float* row[kLanes];
    ColumnPointers(B, ldb, j, count, row);
    float* to = out + j;
    for (k = 0; k + 4 <= K; k += 4, to += 4 * width) {
      Vec v[4];
      LoadTransposed(d, row, k, v);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) hn::Store(v[i], d, to + i * width);
    }
  }
#endif
  for (; k < K; ++k)
    for (int64_t j = 0; j < width; ++j) out[k * width + j] = B[std::min(j, count - 1) * ldb + k];
}

// Copies a block of op(A) so that tiles of 6 rows read one stretch of memory: across, rows of K + 16 floats (no power
// of two between rows); down, 6 rows side by side for every k.
void PackLeft(Lie lie, const float* A, int64_t lda, int64_t M, int64_t K, float* out) {
  if (lie == Lie::across) {
    for (int64_t i = 0; i < M; ++i) std::copy_n(A + i * lda, K, out + i * (K + kRowGap));
    return;
  }
  const int64_t tile = K * kTileRows + kRowGap;
  for (int64_t k = 0; k < K; ++k, A += lda, out += kTileRows) {
    int64_t i = 0;
    float* to = out;
    for (; i + 8 <= M; i += kTileRows, to += tile)
      std::memcpy(to, A + i, 8 * sizeof(float));  // two more than needed: the next k mends it
    for (; i < M; i += kTileRows, to += tile) std::copy_n(A + i, std::min(kTileRows, M - i), to);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
