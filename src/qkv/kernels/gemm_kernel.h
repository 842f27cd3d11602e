// The raw product that gemm.h uses: a packed, register-tiled loop nest on Highway. Internal to the kernels.
#pragma once

#include <cstdint>

#include "qkv/kernels/gemm.h"

namespace qkv::kernels {

// Sizes of the loop nest. They may change bits only through kDepth.
inline constexpr int64_t kDepth = 320;        // longest panel of K: 16 columns of it are 20 KB, and stay in L1
inline constexpr int64_t kColumnBlock = 512;  // columns of op(B) packed at once
inline constexpr int64_t kRowBlock = 48;      // rows of op(A) used at once: 60 KB, in L2
inline constexpr int64_t kTileRows = 6;
inline constexpr int64_t kFewRows = 4;         // with at most this many rows B^T is not packed
inline constexpr int64_t kManyRows = 24;       // with more than this many rows a large B is packed even if not required
inline constexpr int64_t kPrefetchDepth = 96;  // loops of at least this length prefetch their tile of C
inline constexpr int64_t kFarFloats = 1 << 16;  // an op(B) with more floats than this may come from memory
inline constexpr int64_t kRowGap = 16;          // floats between rows or tiles of a packed block
inline constexpr int64_t kNearFloats = 6144;    // a panel of op(B) with at most this many floats stays in L1 as a whole

/// Length of the panels of K: equal parts of at most kDepth, in multiples of 8.
inline int64_t panel_depth(int64_t K) {
  if (K <= kDepth) return K;
  const int64_t parts = (K + kDepth - 1) / kDepth;
  return ((K + parts - 1) / parts + 7) / 8 * 8;
}

/// Memory for packed blocks, one set per thread, allocated at its first product.
struct GemmScratch {
  float* a;
  float* b;
};
GemmScratch gemm_scratch();

/// The product for M, N, K >= 1; a bias only if K is one panel. Every element is one chain of multiply-adds over k in
/// ascending order, cut into panels that depend on K alone: its bits depend on its row of op(A), its column of op(B),
/// K, alpha and beta, not on M, N, its position or the layout.
void tiled_gemm(const GemmCall& call);

}  // namespace qkv::kernels
