// Matrix products of row-major float32 arrays: C <- alpha op(A) op(B) + beta C, or + a bias, op(A) being (M, K), op(B)
// (K, N) and C (M, N).
//
// All of these are row-stable and more: an element's bits depend on its row of op(A), its column of op(B), K, alpha and
// beta (or the bias), and on nothing else. M, N, the position in the batch, the leading sizes, the transposes and the
// number of threads change nothing, for any entry point here; so a row has the same bits alone and in any batch, and a
// weight gradient has the same bits at any thread count. beta = 0 never reads C; K = 0 or alpha = 0 scales C by beta,
// or gives the bias. NaN and infinity propagate as in the formula; denormal results are 0.
#pragma once

#include <cstdint>

#include "qkv/core/forms.h"

namespace qkv::kernels {

/// One product. A is (M, K), or (K, M) if transposed, with lda floats from row to row; B is (K, N) or (N, K) likewise.
struct GemmCall {
  Transpose transpose_a = Transpose::no, transpose_b = Transpose::no;
  int64_t M, N, K;
  float alpha = 1;
  const float* A;
  int64_t lda;
  const float* B;
  int64_t ldb;
  float beta = 0;
  float* C;
  int64_t ldc;
  const float* panels = nullptr;  // op(B) as written by pack_right: B is then not read
  const float* bias = nullptr;    // (N), added last to every row; only with beta = 0
};

/// A product on the calling thread.
void gemm(const GemmCall& call);

/// A right operand shared by many products, copied once into the order they read it in: `panels` needs packed_floats
/// floats, 64-byte aligned. Valid for the current kernel target only.
int64_t packed_floats(int64_t N, int64_t K);
inline constexpr int64_t kPanelColumns = 32;  // panels may be cut at multiples of it: whole panels on every target
void pack_right(Transpose transpose_b, int64_t N, int64_t K, const float* B, int64_t ldb, float* panels);

/// A completed block of C.
struct GemmBlock {
  int64_t row, rows, column, columns;
};

/// The same product over fixed blocks of C in parallel. after(context, block), if given, runs once for every block of C
/// as soon as it is complete, on the thread that has it in its cache.
void gemm_parallel(const GemmCall& call, void (*after)(void* context, GemmBlock block) = nullptr,
                   void* context = nullptr);

/// Distances between the products of a batch, in floats; 0 shares an operand. C must not be shared.
struct GemmBatch {
  int64_t count, stride_a, stride_b, stride_c;
};

/// count independent products, in parallel over fixed blocks of them; `call` is the first.
void gemm_batched(const GemmCall& call, const GemmBatch& batch);

}  // namespace qkv::kernels
