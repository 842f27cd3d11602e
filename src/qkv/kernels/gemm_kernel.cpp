// A row-stable matrix product on Highway. Tiles of up to 6 rows by 2 vectors (4 by 3 at an odd edge, 1 by 8 for few rows) stay in
// registers; panels of op(B) are packed so that a tile reads them in order. How the work is cut never changes an element's bits.
#include "qkv/kernels/gemm_kernel.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <cstring>
#include <new>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/gemm_kernel.cpp"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>

#include "qkv/kernels/map-inl.h"

#ifndef QKV_KERNELS_GEMM_SCRATCH_
#define QKV_KERNELS_GEMM_SCRATCH_
namespace qkv::kernels {

#ifndef KD
#define KD 320
#define KC 256
#define KR 96
#endif
constexpr int64_t kDepth = KD;     // longest panel of K: 16 columns of it are 20 KB, and stay in L1
constexpr int64_t kColumns = KC;   // columns of op(B) packed at once: 320 KB, in L2
constexpr int64_t kRowBlock = KR;   // rows of op(A) used at once
constexpr int64_t kTileRows = 6;
constexpr int64_t kFewRows = 4;      // up to here B^T is not packed
constexpr int64_t kPrefetchDepth = 96;
constexpr int64_t kRowGap = 16;     // between rows of a packed block
constexpr int64_t kRowOrder = 6144; // a panel of op(B) of at most that many floats stays in L1 whole

// Memory for packed panels, one set a thread, taken once.
struct GemmScratch {
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  static std::unique_ptr<float, Free> take(int64_t count) {
    float* p = static_cast<float*>(std::aligned_alloc(64, static_cast<size_t>(count) * sizeof(float)));
    if (!p) throw std::bad_alloc();
    return std::unique_ptr<float, Free>(p);
  }
  std::unique_ptr<float, Free> b = take(kDepth * (kColumns + 64));
  std::unique_ptr<float, Free> a = take((kDepth + kRowGap) * kRowBlock);
  static GemmScratch& mine() {
    static thread_local GemmScratch scratch;
    return scratch;
  }
};

// Length of the panels of K: equal parts of at most kDepth, in multiples of 8.
inline int64_t panel_depth(int64_t K) {
  if (K <= kDepth) return K;
  const int64_t parts = (K + kDepth - 1) / kDepth;
  return ((K + parts - 1) / parts + 7) / 8 * 8;
}

}  // namespace qkv::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

// How A lies: rows across (element k of row r at a[r * stride + k]) or down (at a[k * stride + r]).
enum class Lie { across, down };

// A row of tiles, or a column of them: `count` tiles of the same size, each `step` further in its operand.
struct Left {
  const float* data;
  int64_t stride, step;
};

// Vectors 2p and 2p + 1 of row k are at data + p * pair + k * stride.
struct Right {
  const float* data;
  int64_t stride, pair, step;
};

struct Output {
  float* data;
  int64_t stride, step;
  float alpha, beta;
};

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

// C <- alpha sum + beta C for one tile of which `columns` are stored; beta = 0 never reads C.
template <int kRows, int kVectors, bool kAdd>
HWY_INLINE void StoreTile(const Vec (&sum)[kRows][kVectors], float* c, int64_t stride, Vec alpha, Vec beta, int64_t columns) {
  const Floats d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  if (columns >= kVectors * lanes) [[likely]] {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        float* to = c + r * stride + v * lanes;
        const Vec y = hn::Mul(sum[r][v], alpha);
        hn::StoreU(kAdd ? hn::MulAdd(beta, hn::LoadU(d, to), y) : y, d, to);
      }
    }
    return;
  }
  const int64_t tail = columns - (kVectors - 1) * lanes;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      float* to = c + r * stride + v * lanes;
      const Vec y = hn::Mul(sum[r][v], alpha);
      if (v + 1 < kVectors) hn::StoreU(kAdd ? hn::MulAdd(beta, hn::LoadU(d, to), y) : y, d, to);
      else StoreTail(kAdd ? hn::MulAdd(beta, LoadTail(d, to, tail), y) : y, d, to, tail);
    }
  }
}

// `count` tiles of kRows rows of op(A) times kVectors vectors of op(B) over K steps.
template <Lie kLie, int kRows, int kVectors>
HWY_NOINLINE void Tiles(int64_t count, int64_t K, const Left& left, const Right& right, const Output& out, int64_t columns) {
  const Floats d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const Vec alpha = hn::Set(d, out.alpha), beta = hn::Set(d, out.beta);
  const bool add = out.beta != 0;
  const int64_t a_stride = left.stride, b_stride = right.stride, b_pair = right.pair, c_stride = out.stride;
  const float* a_tile = left.data;
  const float* b_tile = right.data;
  float* c_tile = out.data;
  for (; count > 0; --count) {
    Vec sum[kRows][kVectors];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
    }
    if (K >= kPrefetchDepth) {  // C comes from afar: ask for it before the loop, not after
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) hwy::Prefetch(c_tile + r * c_stride), hwy::Prefetch(c_tile + r * c_stride + kVectors * lanes - 1);
    }
    const float* HWY_RESTRICT b = b_tile;
    const float* HWY_RESTRICT a = a_tile;
#pragma GCC unroll 4
    for (int64_t k = 0; k < K; ++k) {
      Vec bv[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) bv[v] = hn::LoadU(d, b + (v / 2) * b_pair + (v % 2) * lanes);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const Vec av = hn::Set(d, kLie == Lie::across ? a[r * a_stride] : a[r]);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(av, bv[v], sum[r][v]);
      }
      b += b_stride;
      a += kLie == Lie::across ? 1 : a_stride;
    }
    if (add) StoreTile<kRows, kVectors, true>(sum, c_tile, c_stride, alpha, beta, columns);
    else StoreTile<kRows, kVectors, false>(sum, c_tile, c_stride, alpha, beta, columns);
    a_tile += left.step;
    b_tile += right.step;
    c_tile += out.step;
  }
}

using TilesFunction = void (*)(int64_t, int64_t, const Left&, const Right&, const Output&, int64_t);

template <Lie kLie>
HWY_INLINE TilesFunction TilesOf(int64_t rows, int64_t vectors) {
  static constexpr TilesFunction table[6][3] = {
      {Tiles<kLie, 1, 1>, Tiles<kLie, 1, 2>, Tiles<kLie, 1, 3>}, {Tiles<kLie, 2, 1>, Tiles<kLie, 2, 2>, Tiles<kLie, 2, 3>},
      {Tiles<kLie, 3, 1>, Tiles<kLie, 3, 2>, Tiles<kLie, 3, 3>}, {Tiles<kLie, 4, 1>, Tiles<kLie, 4, 2>, Tiles<kLie, 4, 3>},
      {Tiles<kLie, 5, 1>, Tiles<kLie, 5, 2>, nullptr},           {Tiles<kLie, 6, 1>, Tiles<kLie, 6, 2>, nullptr}};
  return vectors == 8 ? Tiles<kLie, 1, 8> : table[rows - 1][vectors - 1];
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

// Registers can transpose where a vector is one or two blocks of four lanes; elsewhere the packer goes element by element.
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
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, v[0], v[1])), high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, v[0], v[1]));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, v[2], v[3])), high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, v[2], v[3]));
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

#ifdef QKV_GEMM_TRANSPOSES
// kRows rows of op(A) against B^T without packing: for few rows a packed panel would not be read often enough to pay. kGroups groups of
// columns go side by side, so that one row's chains of additions hide each other's latency.
template <int kRows, int kGroups>
HWY_INLINE void FewRowsGroup(const GemmCall& c, int64_t j, int64_t depth) {
  const Floats d;
  const int64_t row_stride = c.transpose_a ? 1 : c.lda, k_stride = c.transpose_a ? c.lda : 1;
  const float* column[kGroups][kLanes];
  for (int g = 0; g < kGroups; ++g) ColumnPointers(c.B, c.ldb, j + g * kLanes, c.N, column[g]);
  for (int64_t p = 0; p < c.K; p += depth) {
    const int64_t end = std::min(p + depth, c.K);
    Vec sum[kRows][kGroups];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int g = 0; g < kGroups; ++g) sum[r][g] = hn::Zero(d);
    }
    int64_t k = p;
    for (; k + 4 <= end; k += 4) {
      Vec b[kGroups][4];
#pragma GCC unroll 2
      for (int g = 0; g < kGroups; ++g) LoadTransposed(d, column[g], k, b[g]);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          const Vec a = hn::Set(d, c.A[r * row_stride + (k + i) * k_stride]);
#pragma GCC unroll 2
          for (int g = 0; g < kGroups; ++g) sum[r][g] = hn::MulAdd(a, b[g][i], sum[r][g]);
        }
      }
    }
    for (; k < end; ++k) {
#pragma GCC unroll 2
      for (int g = 0; g < kGroups; ++g) {
        HWY_ALIGN float lanes[kLanes];
        for (int64_t i = 0; i < kLanes; ++i) lanes[i] = column[g][i][k];
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) sum[r][g] = hn::MulAdd(hn::Set(d, c.A[r * row_stride + k * k_stride]), hn::Load(d, lanes), sum[r][g]);
      }
    }
    const float beta = p == 0 ? c.beta : 1.f;
    const Vec alpha = hn::Set(d, c.alpha);
    if (beta != 0) StoreTile<kRows, kGroups, true>(sum, c.C + j, c.ldc, alpha, hn::Set(d, beta), c.N - j);
    else StoreTile<kRows, kGroups, false>(sum, c.C + j, c.ldc, alpha, alpha, c.N - j);
  }
}

template <int kRows>
void FewRows(const GemmCall& c) {
  const int64_t depth = panel_depth(c.K);
  int64_t j = 0;
  for (; c.N - j > kLanes; j += 2 * kLanes) FewRowsGroup<kRows, 2>(c, j, depth);
  if (j < c.N) FewRowsGroup<kRows, 1>(c, j, depth);
}

void FewRowsOfTransposed(const GemmCall& c) {
  static constexpr decltype(&FewRows<1>) table[] = {FewRows<1>, FewRows<2>, FewRows<3>, FewRows<4>};
  table[c.M - 1](c);
}
#endif

// Copies a block of op(A) so that tiles of 6 rows read one stretch of memory: across, rows of K + 16 floats (no power of two between
// rows); down, 6 rows side by side for every k.
void PackLeft(Lie lie, const float* A, int64_t lda, int64_t M, int64_t K, float* out) {
  if (lie == Lie::across) {
    for (int64_t i = 0; i < M; ++i) std::copy_n(A + i * lda, K, out + i * (K + kRowGap));
    return;
  }
  const int64_t tile = K * kTileRows + kRowGap;
  for (int64_t k = 0; k < K; ++k, A += lda, out += kTileRows) {
    int64_t i = 0;
    float* to = out;
    for (; i + 8 <= M; i += kTileRows, to += tile) std::memcpy(to, A + i, 8 * sizeof(float));  // two more than needed: the next k mends it
    for (; i < M; i += kTileRows, to += tile) std::copy_n(A + i, std::min(kTileRows, M - i), to);
  }
}

// One block: M rows of op(A), tile after tile of 6 rows `tile_step` apart, against N columns of op(B).
template <Lie kLie>
void Block(int64_t M, int64_t N, int64_t K, Left a, Right b, Output out) {
  const Floats d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), vectors = (N + lanes - 1) / lanes;
  if (M == 1) {
    for (int64_t v = 0; v < vectors;) {
      const int64_t wide = vectors - v >= 8 ? 8 : std::min<int64_t>(vectors - v, 2);
      TilesOf<kLie>(1, wide)(1, K, a, {b.data + v / 2 * b.pair, b.stride, b.pair, 0},
                             {out.data + v * lanes, out.stride, 0, out.alpha, out.beta}, N - v * lanes);
      v += wide;
    }
    return;
  }
  const int64_t odd = vectors % 2 == 0 ? 0 : vectors >= 3 ? 3 : 1;  // vectors of the last column of tiles
  const int64_t pairs = (vectors - odd) / 2;
  const bool tail_pair = odd == 0 && N % lanes != 0;
  if (K * N <= kRowOrder) {  // op(B) stays in L1: rows outside, C written in order
    for (int64_t i = 0; i < M; i += kTileRows) {
      const int64_t rows = std::min(kTileRows, M - i);
      const Left from{a.data + i / kTileRows * a.step, a.stride, 0};
      Output to{out.data + i * out.stride, out.stride, 2 * lanes, out.alpha, out.beta};
      const int64_t full = pairs - tail_pair;
      if (full) TilesOf<kLie>(rows, 2)(full, K, from, {b.data, b.stride, b.pair, b.pair}, to, 2 * lanes);
      to.data += full * 2 * lanes;
      const Right rest{b.data + full * b.pair, b.stride, b.pair, 0};
      if (tail_pair) TilesOf<kLie>(rows, 2)(1, K, from, rest, to, N - full * 2 * lanes);
      if (odd == 3 && rows > 4) {
        TilesOf<kLie>(3, 3)(1, K, from, rest, to, N - full * 2 * lanes);
        to.data += 3 * out.stride;
        TilesOf<kLie>(rows - 3, 3)(1, K, {from.data + (kLie == Lie::across ? 3 * a.stride : 3), a.stride, 0}, rest, to, N - full * 2 * lanes);
      } else if (odd) {
        TilesOf<kLie>(rows, odd)(1, K, from, rest, to, N - full * 2 * lanes);
      }
    }
    return;
  }
  const int64_t full_tiles = M / kTileRows, rest = M % kTileRows;
  for (int64_t v = 0; v < vectors; v += 2) {
    const int64_t wide = std::min<int64_t>(2, vectors - v), columns = N - v * lanes;
    const Right panel{b.data + v / 2 * b.pair, b.stride, b.pair, 0};
    Output to{out.data + v * lanes, out.stride, kTileRows * out.stride, out.alpha, out.beta};
    if (full_tiles) TilesOf<kLie>(kTileRows, wide)(full_tiles, K, a, panel, to, columns);
    to.data += full_tiles * to.step;
    if (rest) TilesOf<kLie>(rest, wide)(1, K, {a.data + full_tiles * a.step, a.stride, 0}, panel, to, columns);
  }
}

void TiledGemm(const GemmCall& c) {
  const Floats d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), width = 2 * lanes;
  const int64_t depth = panel_depth(c.K);
#ifdef QKV_GEMM_TRANSPOSES
  if (c.transpose_b && c.M <= kFewRows) return FewRowsOfTransposed(c);
#endif
  GemmScratch& scratch = GemmScratch::mine();
  for (int64_t j = 0; j < c.N; j += kColumns) {
    const int64_t N = std::min(kColumns, c.N - j);
    for (int64_t p = 0; p < c.K; p += depth) {
      const int64_t K = std::min(depth, c.K - p);
      const float* B = c.transpose_b ? c.B + j * c.ldb + p : c.B + p * c.ldb + j;
      Right right{B, c.ldb, width, 0};
      if (c.transpose_b || N % lanes != 0 || (c.M > 24 && K * c.ldb > kRowOrder)) {
        right = {scratch.b.get(), width, K * width, 0};
        for (int64_t n = 0; n < N; n += width) {
          float* to = scratch.b.get() + n * K;
          const int64_t count = std::min(width, N - n);
          if (c.transpose_b) PackColumns(B + n * c.ldb, c.ldb, K, count, width, to);
          else PackRows(B + n, c.ldb, K, count, width, to);
        }
      }
      for (int64_t i = 0; i < c.M; i += kRowBlock) {
        const int64_t M = std::min(kRowBlock, c.M - i);
        const Output out{c.C + i * c.ldc + j, c.ldc, 0, c.alpha, p == 0 ? c.beta : 1.f};
        const bool pack = N >= 64 && M > 6 && K * c.M > 4096 && c.K >= 128;
        float* packed = scratch.a.get();
        if (c.transpose_a) {
          const float* A = c.A + p * c.lda + i;
          if (pack) PackLeft(Lie::down, A, c.lda, M, K, packed);
          Block<Lie::down>(M, N, K, pack ? Left{packed, kTileRows, K * kTileRows + kRowGap} : Left{A, c.lda, kTileRows}, right, out);
        } else {
          const float* A = c.A + i * c.lda + p;
          const int64_t row = K + kRowGap;
          if (pack) PackLeft(Lie::across, A, c.lda, M, K, packed);
          Block<Lie::across>(M, N, K, pack ? Left{packed, row, kTileRows * row} : Left{A, c.lda, kTileRows * c.lda}, right, out);
        }
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(TiledGemm);
void tiled_gemm(const GemmCall& call) { HWY_DYNAMIC_DISPATCH(TiledGemm)(call); }

}  // namespace qkv::kernels
#endif
