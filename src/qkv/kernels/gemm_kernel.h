// The raw product behind gemm.h: a packed, register-tiled loop nest on Highway.
#pragma once

#include <cstdint>

namespace qkv::kernels {

/// C <- alpha op(A) op(B) + beta C with M, N, K >= 1; op(A) is (M, K), op(B) is (K, N), all row-major.
struct GemmCall {
  bool transpose_a, transpose_b;
  int64_t M, N, K;
  float alpha;
  const float* A;
  int64_t lda;
  const float* B;
  int64_t ldb;
  float beta;
  float* C;
  int64_t ldc;
};

/// Every element is one chain of multiply-adds over k in ascending order, cut into panels that K alone decides; so its bits depend on its
/// row of op(A), its column of op(B), K, alpha and beta, and on nothing else: not M, not N, not its place, not the layout.
void tiled_gemm(const GemmCall& call);

}  // namespace qkv::kernels
