// A row-stable matrix product on Highway. Tiles of up to 6 rows by 2 vectors (4 by 3 at an odd edge, 1 by 8 for a
// single row) stay in registers; panels of op(B) are packed so that a tile reads them in order. How the work is cut
// never changes an element's bits.
#include "qkv/kernels/gemm_kernel.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/gemm_kernel.cpp"
#include <hwy/foreach_target.h>

#include <hwy/cache_control.h>

#include "qkv/kernels/gemm_pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

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

// What beta multiplies: C, or a bias, which has one row for all.
struct Addend {
  const float* data;
  int64_t stride, step;
};

struct Output {
  float* data;
  int64_t stride, step;
  float alpha, beta;
  Addend from;

  // So many rows and columns further, every next tile as many more further.
  Output At(int64_t rows, int64_t columns, int64_t more_rows = 0, int64_t more_columns = 0) const {
    const auto go = [&](int64_t of_row) { return rows * of_row + columns; };
    const auto step_of = [&](int64_t of_row) { return more_rows * of_row + more_columns; };
    return {data + go(stride), stride, step_of(stride), alpha, beta, {from.data + go(from.stride), from.stride, step_of(from.stride)}};
  }
};

// C <- alpha sum + beta from for one tile of which `columns` are stored; without kAdd nothing is read.
template <int kRows, int kVectors, bool kAdd>
HWY_INLINE void StoreTile(const Vec (&sum)[kRows][kVectors], float* c, int64_t stride, const Addend& from, Vec alpha, Vec beta,
                          int64_t columns) {
  const Floats d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  if (columns >= kVectors * lanes) [[likely]] {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const Vec y = hn::Mul(sum[r][v], alpha);
        hn::StoreU(kAdd ? hn::MulAdd(beta, hn::LoadU(d, from.data + r * from.stride + v * lanes), y) : y, d, c + r * stride + v * lanes);
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
      const float* more = from.data + r * from.stride + v * lanes;
      const Vec y = hn::Mul(sum[r][v], alpha);
      if (v + 1 < kVectors)
        hn::StoreU(kAdd ? hn::MulAdd(beta, hn::LoadU(d, more), y) : y, d, to);
      else
        StoreTail(kAdd ? hn::MulAdd(beta, LoadTail(d, more, tail), y) : y, d, to, tail);
    }
  }
}

// `count` tiles of kRows rows of op(A) times kVectors vectors of op(B) over K steps.
template <Lie kLie, int kRows, int kVectors>
HWY_NOINLINE void Tiles(int64_t count, int64_t K, const Left& left, const Right& right, const Output& out,
                        int64_t columns) {
  const Floats d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const Vec alpha = hn::Set(d, out.alpha), beta = hn::Set(d, out.beta);
  const bool add = out.beta != 0;
  const int64_t a_stride = left.stride, b_stride = right.stride, b_pair = right.pair, c_stride = out.stride;
  const float* a_tile = left.data;
  const float* b_tile = right.data;
  float* c_tile = out.data;
  Addend from = out.from;
  for (; count > 0; --count) {
    Vec sum[kRows][kVectors];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
    }
    if (K >= kPrefetchDepth) {  // C comes from afar: ask for it before the loop, not after
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r)
        hwy::Prefetch(c_tile + r * c_stride), hwy::Prefetch(c_tile + r * c_stride + kVectors * lanes - 1);
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
    if (add)
      StoreTile<kRows, kVectors, true>(sum, c_tile, c_stride, from, alpha, beta, columns);
    else
      StoreTile<kRows, kVectors, false>(sum, c_tile, c_stride, from, alpha, beta, columns);
    a_tile += left.step;
    b_tile += right.step;
    c_tile += out.step;
    from.data += from.step;
  }
}

using TilesFunction = void (*)(int64_t, int64_t, const Left&, const Right&, const Output&, int64_t);

template <Lie kLie>
HWY_INLINE TilesFunction TilesOf(int64_t rows, int64_t vectors) {
  static constexpr TilesFunction table[6][3] = {{Tiles<kLie, 1, 1>, Tiles<kLie, 1, 2>, Tiles<kLie, 1, 3>},
                                                {Tiles<kLie, 2, 1>, Tiles<kLie, 2, 2>, Tiles<kLie, 2, 3>},
                                                {Tiles<kLie, 3, 1>, Tiles<kLie, 3, 2>, Tiles<kLie, 3, 3>},
                                                {Tiles<kLie, 4, 1>, Tiles<kLie, 4, 2>, Tiles<kLie, 4, 3>},
                                                {Tiles<kLie, 5, 1>, Tiles<kLie, 5, 2>, nullptr},
                                                {Tiles<kLie, 6, 1>, Tiles<kLie, 6, 2>, nullptr}};
  return vectors == 8 ? Tiles<kLie, 1, 8> : table[rows - 1][vectors - 1];
}

#ifdef QKV_GEMM_TRANSPOSES
// kRows rows of op(A) against B^T without packing: for few rows a packed panel would not be read often enough to pay.
// kGroups groups of columns go side by side, so that one row's chains of additions hide each other's latency.
template <int kRows, int kGroups>
HWY_INLINE void FewRowsGroup(const GemmCall& c, int64_t j, int64_t depth) {
  const Floats d;
  const bool across = c.transpose_a == Transpose::no;
  const int64_t row_stride = across ? c.lda : 1, k_stride = across ? 1 : c.lda;
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
        for (int r = 0; r < kRows; ++r)
          sum[r][g] = hn::MulAdd(hn::Set(d, c.A[r * row_stride + k * k_stride]), hn::Load(d, lanes), sum[r][g]);
      }
    }
    const float beta = p == 0 && !c.bias ? c.beta : 1.f;
    const Vec alpha = hn::Set(d, c.alpha);
    const Addend from = c.bias ? Addend{c.bias + j, 0, 0} : Addend{c.C + j, c.ldc, 0};
    if (beta != 0)
      StoreTile<kRows, kGroups, true>(sum, c.C + j, c.ldc, from, alpha, hn::Set(d, beta), c.N - j);
    else
      StoreTile<kRows, kGroups, false>(sum, c.C + j, c.ldc, from, alpha, alpha, c.N - j);
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

// A row of tiles: `rows` rows against all N columns, left to right.
template <Lie kLie>
void RowOfTiles(int64_t rows, int64_t N, int64_t K, const Left& a, const Right& b, const Output& out) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(Floats())), width = 2 * lanes, vectors = (N + lanes - 1) / lanes;
  int64_t pairs = N / width;                           // full pairs of vectors
  if (vectors - 2 * pairs == 1 && pairs > 0) --pairs;  // a single vector at the edge joins the last pair
  if (pairs) TilesOf<kLie>(rows, 2)(pairs, K, a, {b.data, b.stride, b.pair, b.pair}, out.At(0, 0, 0, width), width);
  const int64_t left = vectors - 2 * pairs, columns = N - pairs * width;
  if (left == 0) return;
  const Right rest{b.data + pairs * b.pair, b.stride, b.pair, 0};
  const Output edge = out.At(0, pairs * width);
  if (left < 3 || rows <= 4) return TilesOf<kLie>(rows, left)(1, K, a, rest, edge, columns);
  TilesOf<kLie>(3, 3)(1, K, a, rest, edge, columns);
  TilesOf<kLie>(rows - 3, 3)(1, K, {a.data + (kLie == Lie::across ? 3 * a.stride : 3), a.stride, 0}, rest, edge.At(3, 0), columns);
}

// M rows as tiles: `full` tiles of 6 and the last ones. A sliver of 1 to 3 rows keeps the multipliers waiting, so it
// shares the rows of the tile before it, where tiles follow each other without a gap.
struct RowCut {
  int64_t full, first, second;
};

HWY_INLINE RowCut CutRows(int64_t M, bool gapless) {
  const int64_t full = M / kTileRows, rest = M % kTileRows;
  if (!gapless || full == 0 || rest == 0 || rest > 3) return {full, rest, 0};
  return {full - 1, (kTileRows + rest + 1) / 2, (kTileRows + rest) / 2};
}

// Rows outside, columns inside: C is written in order. Pays where op(B) stays in L1 and rows are not too short.
HWY_INLINE bool RowOrder(int64_t N, int64_t K) { return N > 64 && K * N <= kNearFloats; }

// M rows of op(A), tiles of 6 rows `a.step` apart, against N columns of op(B).
template <Lie kLie>
void Block(int64_t M, int64_t N, int64_t K, const Left& a, const Right& b, const Output& out) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(Floats())), vectors = (N + lanes - 1) / lanes;
  const int64_t row = kLie == Lie::across ? a.stride : 1;
  const RowCut cut = CutRows(M, a.step == kTileRows * row);
  const Left first{a.data + cut.full * a.step, a.stride, 0}, second{first.data + cut.first * row, a.stride, 0};
  const int64_t first_row = cut.full * kTileRows, second_row = first_row + cut.first;
  if (M > 1 && RowOrder(N, K)) {
    for (int64_t t = 0; t < cut.full; ++t)
      RowOfTiles<kLie>(kTileRows, N, K, {a.data + t * a.step, a.stride, 0}, b, out.At(t * kTileRows, 0));
    if (cut.first) RowOfTiles<kLie>(cut.first, N, K, first, b, out.At(first_row, 0));
    if (cut.second) RowOfTiles<kLie>(cut.second, N, K, second, b, out.At(second_row, 0));
    return;
  }
  for (int64_t v = 0, wide; v < vectors; v += wide) {
    wide = M == 1 && vectors - v >= 8 ? 8 : std::min<int64_t>(2, vectors - v);
    const Right panel{b.data + v / 2 * b.pair, b.stride, b.pair, 0};
    const auto to = [&](int64_t row) { return out.At(row, v * lanes, kTileRows); };
    if (cut.full) TilesOf<kLie>(kTileRows, wide)(cut.full, K, a, panel, to(0), N - v * lanes);
    if (cut.first) TilesOf<kLie>(cut.first, wide)(1, K, first, panel, to(first_row), N - v * lanes);
    if (cut.second) TilesOf<kLie>(cut.second, wide)(1, K, second, panel, to(second_row), N - v * lanes);
  }
}

// A block of rows whose steps [0, K) of op(A) start at A; copied first where it is read often enough.
template <Lie kLie>
void PackedBlock(bool pack, int64_t M, int64_t N, int64_t K, const float* A, int64_t lda, const Right& b,
                 const Output& out) {
  Left a{A, lda, kLie == Lie::across ? kTileRows * lda : kTileRows};
  if (pack) {
    float* packed = gemm_scratch().a;
    PackLeft(kLie, A, lda, M, K, packed);
    if (kLie == Lie::across)
      a = {packed, K + kRowGap, kTileRows * (K + kRowGap)};
    else
      a = {packed, kTileRows, kTileRows * K + kRowGap};
  }
  Block<kLie>(M, N, K, a, b, out);
}

// op(B), (K, N), as panels of two vectors of columns, each K rows long.
void PackRight(Transpose transpose_b, int64_t N, int64_t K, const float* B, int64_t ldb, float* packed) {
  const int64_t width = 2 * static_cast<int64_t>(hn::Lanes(Floats()));
  for (int64_t n = 0; n < N; n += width) {
    if (transpose_b == Transpose::yes)
      PackColumns(B + n * ldb, ldb, K, std::min(width, N - n), width, packed + n * K);
    else
      PackRows(B + n, ldb, K, std::min(width, N - n), width, packed + n * K);
  }
}

void TiledGemm(const GemmCall& c) {
  const bool across = c.transpose_a == Transpose::no, transpose_b = c.transpose_b == Transpose::yes;
#ifdef QKV_GEMM_TRANSPOSES
  if (transpose_b && c.M <= kFewRows && !c.panels) return FewRowsOfTransposed(c);
#endif
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(Floats())), width = 2 * lanes, depth = panel_depth(c.K);
  for (int64_t j = 0; j < c.N; j += kColumnBlock)
    for (int64_t p = 0; p < c.K; p += depth) {
      const int64_t N = std::min(kColumnBlock, c.N - j), K = std::min(depth, c.K - p);
      const float* B = transpose_b ? c.B + j * c.ldb + p : c.B + p * c.ldb + j;
      Right b{B, c.ldb, width, 0};
      if (c.panels) {
        b = {c.panels + j * c.K + p * width, width, c.K * width, 0};
      } else if (transpose_b || N % lanes != 0 || (c.M > kManyRows && K * c.ldb > kNearFloats)) {
        float* packed = gemm_scratch().b;
        PackRight(c.transpose_b, N, K, B, c.ldb, packed);
        b = {packed, width, K * width, 0};
      }
      const bool pack = N >= 64 && c.M > kTileRows && c.K > (across ? 192 : 96);
      const int64_t rows = pack ? kRowBlock : RowOrder(N, K) ? c.M : 2 * kRowBlock;
      for (int64_t i = 0; i < c.M; i += rows) {
        const int64_t M = std::min(rows, c.M - i);
        float* to = c.C + i * c.ldc + j;
        const Addend from = c.bias ? Addend{c.bias + j, 0, 0} : Addend{to, c.ldc, 0};
        const Output out{to, c.ldc, 0, c.alpha, p == 0 && !c.bias ? c.beta : 1.f, from};
        if (across)
          PackedBlock<Lie::across>(pack, M, N, K, c.A + i * c.lda + p, c.lda, b, out);
        else
          PackedBlock<Lie::down>(pack, M, N, K, c.A + p * c.lda + i, c.lda, b, out);
      }
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(TiledGemm);
HWY_EXPORT(PackRight);
void tiled_gemm(const GemmCall& call) { HWY_DYNAMIC_DISPATCH(TiledGemm)(call); }
void pack_right(Transpose transpose_b, int64_t N, int64_t K, const float* B, int64_t ldb, float* panels) {
  HWY_DYNAMIC_DISPATCH(PackRight)(transpose_b, N, K, B, ldb, panels);
}

}  // namespace qkv::kernels
#endif
