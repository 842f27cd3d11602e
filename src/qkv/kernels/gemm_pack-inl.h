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
#include "qkv/kernels/register_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

// Four steps k .. k + 3 of kLanes columns: y[i] holds step k + i of all of them. row[j] is column j.
HWY_INLINE void LoadTransposed(Floats d, const float* const (&row)[kLanes], int64_t k, Vec (&y)[4]) {
  if constexpr (kLanes == 16) {
    const hn::Half<Floats> eight;
    const hn::Half<decltype(eight)> four;
    const auto pair = [&](int i) HWY_ATTR {
      return hn::Combine(eight, hn::LoadU(four, row[i + 4] + k), hn::LoadU(four, row[i] + k));
    };
    Unrolled<4>([&](int i) HWY_ATTR { y[i] = hn::Combine(d, pair(i + 8), pair(i)); });
  } else if constexpr (kLanes == 8) {
    const hn::Half<Floats> four;
    Unrolled<4>([&](int i)
                    HWY_ATTR { y[i] = hn::Combine(d, hn::LoadU(four, row[i + 4] + k), hn::LoadU(four, row[i] + k)); });
  } else {
    Unrolled<4>([&](int i) HWY_ATTR { y[i] = hn::LoadU(d, row[i] + k); });
  }
  TransposeBlocks(y[0], y[1], y[2], y[3]);
}

// Columns j .. j + kLanes - 1 of B^T; a missing column repeats the last one, and its lane is never stored.
HWY_INLINE void ColumnPointers(const float* B, int64_t ldb, int64_t j, int64_t count, const float* (&row)[kLanes]) {
  for (int64_t i = 0; i < kLanes; ++i) row[i] = B + std::min(j + i, count - 1) * ldb;
}

// Packs op(B) = B^T: column j is B[j * ldb ..]. Rows of `width` floats, like PackRows of the transposed matrix.
void PackColumns(const float* B, int64_t ldb, int64_t K, int64_t count, int64_t width, float* out) {
  const Floats d;
  int64_t k = 0;
  for (int64_t j = 0; j < count; j += kLanes) {
    const float* row[kLanes];
    ColumnPointers(B, ldb, j, count, row);
    float* to = out + j;
    for (k = 0; k + 4 <= K; k += 4, to += 4 * width) {
      Vec v[4];
      LoadTransposed(d, row, k, v);
      Unrolled<4>([&](int i) HWY_ATTR { hn::Store(v[i], d, to + i * width); });
    }
  }
  for (; k < K; ++k)
    for (int64_t j = 0; j < width; ++j) out[k * width + j] = B[std::min(j, count - 1) * ldb + k];
}

// Copies a block of op(A) so that tiles of 6 rows read contiguous memory: row-major with K + 16 floats per row (not a
// power of two apart); column-major with 6 rows side by side for every k.
void PackLeft(Layout layout, const float* A, int64_t lda, int64_t M, int64_t K, float* out) {
  if (layout == Layout::row_major) {
    for (int64_t i = 0; i < M; ++i) std::copy_n(A + i * lda, K, out + i * (K + kRowGap));
    return;
  }
  const int64_t tile = K * kTileRows + kRowGap;
  for (int64_t k = 0; k < K; ++k, A += lda, out += kTileRows) {
    int64_t i = 0;
    float* to = out;
    for (; i + 8 <= M; i += kTileRows, to += tile)
      std::memcpy(to, A + i, 8 * sizeof(float));  // two more than needed: the next k overwrites them
    for (; i < M; i += kTileRows, to += tile) std::copy_n(A + i, std::min(kTileRows, M - i), to);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
