// A row-stable matrix product on Highway. Tiles of up to 6 rows by 2 vectors (4 by 3 at an odd edge, 1 by 8 for a
// single row) stay in registers; panels of op(B) are packed so that a tile reads them in order. How the work is cut
// never changes an element's bits.
#include "qkv/kernels/gemm_kernel.h"

#include <algorithm>

// AVX-512 too: here an element is the same chain of fused multiply-adds as with AVX2 (docs/decisions/0002).
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SSE4)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/gemm_kernel.cpp"
#include <hwy/foreach_target.h>

#include "qkv/kernels/gemm_pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

// A row or column of tiles: `count` tiles of the same size, `step` apart in their operand.
struct Left {
  const float* data;
  int64_t stride, step;
};

struct RightTiles {
  Right first;
  int64_t step;
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

  // Moved by `rows` and `columns`, with tiles `more_rows` and `more_columns` apart.
  Output At(int64_t rows, int64_t columns, int64_t more_rows = 0, int64_t more_columns = 0) const {
    const auto go = [&](int64_t of_row) { return rows * of_row + columns; };
    const auto step_of = [&](int64_t of_row) { return more_rows * of_row + more_columns; };
    return {data + go(stride),
            stride,
            step_of(stride),
            alpha,
            beta,
            {from.data + go(from.stride), from.stride, step_of(from.stride)}};
  }
};

// C <- alpha * sum + beta * from for one tile, of which `columns` are stored; without kAdd, `from` is not read.
template <bool kAdd, int kRows, int kVectors>
HWY_INLINE void StoreTile(Tile<kRows, kVectors>& tile, float* c, int64_t stride, const Addend& from, Vec alpha,
                          Vec beta, int64_t columns) {
  const Floats d;
  if (columns >= kVectors * kLanes) [[likely]] {
    tile.Each([&](int r, int v, Vec sum) HWY_ATTR {
      const Vec y = hn::Mul(sum, alpha);
      hn::StoreU(kAdd ? hn::MulAdd(beta, hn::LoadU(d, from.data + r * from.stride + v * kLanes), y) : y, d,
                 c + r * stride + v * kLanes);
    });
    return;
  }
  const int64_t tail = columns - (kVectors - 1) * kLanes;
  tile.Each([&](int r, int v, Vec sum) HWY_ATTR {
    float* to = c + r * stride + v * kLanes;
    const float* more = from.data + r * from.stride + v * kLanes;
    const Vec y = hn::Mul(sum, alpha);
    if (v + 1 < kVectors)
      hn::StoreU(kAdd ? hn::MulAdd(beta, hn::LoadU(d, more), y) : y, d, to);
    else
      StorePart(kAdd ? hn::MulAdd(beta, LoadPart(d, more, tail), y) : y, d, to, tail);
  });
}

// `count` tiles of kRows rows of op(A) times kVectors vectors of op(B) over K steps.
template <Layout kLayout, int kRows, int kVectors>
HWY_NOINLINE void Tiles(int64_t count, int64_t K, const Left& left, const RightTiles& right, const Output& out,
                        int64_t columns) {
  const Vec alpha = hn::Set(Floats(), out.alpha), beta = hn::Set(Floats(), out.beta);
  const bool add = out.beta != 0;
  const int64_t a_stride = left.stride, c_stride = out.stride;
  const float* a = left.data;
  Right b = right.first;
  float* c = out.data;
  Addend from = out.from;
  for (; count > 0; --count) {
    Tile<kRows, kVectors> tile;
    tile.Clear();
    if (K >= kPrefetchDepth) {  // C may be far away: prefetch it before the loop, not after
      PrefetchRows<kRows>(c, c_stride);
      PrefetchRows<kRows>(c + kVectors * kLanes - 1, c_stride);
    }
    tile.template AddProduct<kLayout>(K, a, a_stride, b);
    if (add)
      StoreTile<true>(tile, c, c_stride, from, alpha, beta, columns);
    else
      StoreTile<false>(tile, c, c_stride, from, alpha, beta, columns);
    a += left.step;
    b.data += right.step;
    c += out.step;
    from.data += from.step;
  }
}

using TilesFunction = void (*)(int64_t, int64_t, const Left&, const RightTiles&, const Output&, int64_t);

template <Layout kLayout>
HWY_INLINE TilesFunction TilesOf(int64_t rows, int64_t vectors) {
  static constexpr TilesFunction table[6][3] = {{Tiles<kLayout, 1, 1>, Tiles<kLayout, 1, 2>, Tiles<kLayout, 1, 3>},
                                                {Tiles<kLayout, 2, 1>, Tiles<kLayout, 2, 2>, Tiles<kLayout, 2, 3>},
                                                {Tiles<kLayout, 3, 1>, Tiles<kLayout, 3, 2>, Tiles<kLayout, 3, 3>},
                                                {Tiles<kLayout, 4, 1>, Tiles<kLayout, 4, 2>, Tiles<kLayout, 4, 3>},
                                                {Tiles<kLayout, 5, 1>, Tiles<kLayout, 5, 2>, nullptr},
                                                {Tiles<kLayout, 6, 1>, Tiles<kLayout, 6, 2>, nullptr}};
  return vectors == 8 ? Tiles<kLayout, 1, 8> : table[rows - 1][vectors - 1];
}

// Prefetches `kBytes` bytes into L2: they are read much later. Not a lambda, see PrefetchRows.
template <int kBytes>
HWY_INLINE void PrefetchBytes(const float* first) {
#pragma GCC unroll 8
  for (int i = 0; i < kBytes; i += 64) __builtin_prefetch(first + i / sizeof(float), 0, 2);
}

// kRows rows of op(A) against B^T without packing: with few rows a packed panel is not read often enough to pay off.
// kGroups groups of columns run side by side, so that one row's chains of additions hide each other's latency.
template <Layout kLayout, int kRows, int kGroups>
HWY_INLINE void FewRowsGroup(const GemmCall& c, int64_t j, int64_t depth) {
  const Floats d;
  const int64_t row_stride = kLayout == Layout::row_major ? c.lda : 1,
                k_stride = kLayout == Layout::row_major ? 1 : c.lda;
  const float* column[kGroups][kLanes];
  for (int g = 0; g < kGroups; ++g) ColumnPointers(c.B, c.ldb, j + g * kLanes, c.N, column[g]);
  // A group reads many columns side by side, more than the processor follows on its own. So it fetches the columns of
  // the next group meanwhile, in the order of memory.
  constexpr int kStepFloats = kGroups * kLanes * 4;
  const bool far = c.ldb == c.K && c.N * c.K > kFarFloats;
  const float* soon = c.B + (j + kGroups * kLanes) * c.ldb;
  for (int64_t p = 0; p < c.K; p += depth) {
    const int64_t end = std::min(p + depth, c.K);
    Tile<kRows, kGroups> tile;
    tile.Clear();
    int64_t k = p;
    for (; k + 4 <= end; k += 4) {
      if (far) PrefetchBytes<kStepFloats * sizeof(float)>(soon);
      soon += kStepFloats;
      Vec b[kGroups][4];
      Unrolled<kGroups>([&](int g) HWY_ATTR { LoadTransposed(d, column[g], k, b[g]); });
      Unrolled<4>([&](int i) HWY_ATTR {
        tile.Step([&](int r) { return c.A[r * row_stride + (k + i) * k_stride]; },
                  [&](int g) HWY_ATTR { return b[g][i]; });
      });
    }
    for (; k < end; ++k) {
      tile.Step([&](int r) { return c.A[r * row_stride + k * k_stride]; },
                [&](int g) HWY_ATTR {
                  HWY_ALIGN float lanes[kLanes];
                  for (int64_t i = 0; i < kLanes; ++i) lanes[i] = column[g][i][k];
                  return hn::Load(d, lanes);
                });
    }
    const float beta = p == 0 && !c.bias ? c.beta : 1.f;
    const Vec alpha = hn::Set(d, c.alpha);
    const Addend from = c.bias ? Addend{c.bias + j, 0, 0} : Addend{c.C + j, c.ldc, 0};
    if (beta != 0)
      StoreTile<true>(tile, c.C + j, c.ldc, from, alpha, hn::Set(d, beta), c.N - j);
    else
      StoreTile<false>(tile, c.C + j, c.ldc, from, alpha, alpha, c.N - j);
  }
}

template <Layout kLayout, int kRows>
void FewRows(const GemmCall& c) {
  const int64_t depth = panel_depth(c.K);
  int64_t j = 0;
  for (; c.N - j > kLanes; j += 2 * kLanes) FewRowsGroup<kLayout, kRows, 2>(c, j, depth);
  if (j < c.N) FewRowsGroup<kLayout, kRows, 1>(c, j, depth);
}

template <Layout kLayout>
void FewRowsOfTransposed(const GemmCall& c) {
  static constexpr void (*table[])(const GemmCall&) = {FewRows<kLayout, 1>, FewRows<kLayout, 2>, FewRows<kLayout, 3>,
                                                       FewRows<kLayout, 4>};
  table[c.M - 1](c);
}

// A row of tiles: `rows` rows against all N columns, left to right.
template <Layout kLayout>
void RowOfTiles(int64_t rows, int64_t N, int64_t K, const Left& a, const Right& b, const Output& out) {
  constexpr int64_t width = 2 * kLanes;
  const int64_t vectors = (N + kLanes - 1) / kLanes;
  int64_t pairs = N / width;                           // full pairs of vectors
  if (vectors - 2 * pairs == 1 && pairs > 0) --pairs;  // a single vector at the edge joins the last pair
  if (pairs) TilesOf<kLayout>(rows, 2)(pairs, K, a, {b, b.pair}, out.At(0, 0, 0, width), width);
  const int64_t left = vectors - 2 * pairs, columns = N - pairs * width;
  if (left == 0) return;
  const RightTiles rest{{b.data + pairs * b.pair, b.stride, b.pair}, 0};
  const Output edge = out.At(0, pairs * width);
  if (left < 3 || rows <= 4) return TilesOf<kLayout>(rows, left)(1, K, a, rest, edge, columns);
  TilesOf<kLayout>(3, 3)(1, K, a, rest, edge, columns);
  TilesOf<kLayout>(rows - 3, 3)(1, K, {a.data + (kLayout == Layout::row_major ? 3 * a.stride : 3), a.stride, 0}, rest,
                                edge.At(3, 0), columns);
}

// M rows as tiles: `full` tiles of 6 and the last ones. A tile of only 1 to 3 rows leaves multipliers idle, so it
// shares the rows of the tile before it, if tiles are contiguous.
struct RowCut {
  int64_t full, first, second;
};

HWY_INLINE RowCut CutRows(int64_t M, bool gapless) {
  const int64_t full = M / kTileRows, rest = M % kTileRows;
  if (!gapless || full == 0 || rest == 0 || rest > 3) return {full, rest, 0};
  return {full - 1, (kTileRows + rest + 1) / 2, (kTileRows + rest) / 2};
}

// Rows outside, columns inside: C is written in order. Pays off if op(B) stays in L1 and rows are not too short.
HWY_INLINE bool RowOrder(int64_t N, int64_t K) { return N > 64 && K * N <= kNearFloats; }

// M rows of op(A), tiles of 6 rows `a.step` apart, against N columns of op(B).
template <Layout kLayout>
void Block(int64_t M, int64_t N, int64_t K, const Left& a, const Right& b, const Output& out) {
  const int64_t vectors = (N + kLanes - 1) / kLanes;
  const int64_t row = kLayout == Layout::row_major ? a.stride : 1;
  const RowCut cut = CutRows(M, a.step == kTileRows * row);
  const Left first{a.data + cut.full * a.step, a.stride, 0}, second{first.data + cut.first * row, a.stride, 0};
  const int64_t first_row = cut.full * kTileRows, second_row = first_row + cut.first;
  if (M > 1 && RowOrder(N, K)) {
    for (int64_t t = 0; t < cut.full; ++t)
      RowOfTiles<kLayout>(kTileRows, N, K, {a.data + t * a.step, a.stride, 0}, b, out.At(t * kTileRows, 0));
    if (cut.first) RowOfTiles<kLayout>(cut.first, N, K, first, b, out.At(first_row, 0));
    if (cut.second) RowOfTiles<kLayout>(cut.second, N, K, second, b, out.At(second_row, 0));
    return;
  }
  for (int64_t v = 0, wide; v < vectors; v += wide) {
    wide = M == 1 && vectors - v >= 8 ? 8 : std::min<int64_t>(2, vectors - v);
    const RightTiles panel{{b.data + v / 2 * b.pair, b.stride, b.pair}, 0};
    const auto to = [&](int64_t row) { return out.At(row, v * kLanes, kTileRows); };
    if (cut.full) TilesOf<kLayout>(kTileRows, wide)(cut.full, K, a, panel, to(0), N - v * kLanes);
    if (cut.first) TilesOf<kLayout>(cut.first, wide)(1, K, first, panel, to(first_row), N - v * kLanes);
    if (cut.second) TilesOf<kLayout>(cut.second, wide)(1, K, second, panel, to(second_row), N - v * kLanes);
  }
}

// A block of rows whose steps [0, K) of op(A) start at A; copied first if it is read often enough.
template <Layout kLayout>
void PackedBlock(bool pack, int64_t M, int64_t N, int64_t K, const float* A, int64_t lda, const Right& b,
                 const Output& out) {
  Left a{A, lda, kLayout == Layout::row_major ? kTileRows * lda : kTileRows};
  if (pack) {
    float* packed = gemm_scratch().a;
    PackLeft(kLayout, A, lda, M, K, packed);
    if (kLayout == Layout::row_major)
      a = {packed, K + kRowGap, kTileRows * (K + kRowGap)};
    else
      a = {packed, kTileRows, kTileRows * K + kRowGap};
  }
  Block<kLayout>(M, N, K, a, b, out);
}

// op(B), (K, N), as panels of two vectors of columns, each K rows long.
void PackRight(Transpose transpose_b, int64_t N, int64_t K, const float* B, int64_t ldb, float* packed) {
  if (transpose_b == Transpose::no) {
    PackRows(B, ldb, K, N, packed);
    return;
  }
  constexpr int64_t width = 2 * kLanes;
  for (int64_t n = 0; n < N; n += width)
    PackColumns(B + n * ldb, ldb, K, std::min(width, N - n), width, packed + n * K);
}

void TiledGemm(const GemmCall& c) {
  const bool by_rows = c.transpose_a == Transpose::no, transpose_b = c.transpose_b == Transpose::yes;
  if (transpose_b && c.M <= kFewRows && !c.panels) {
    return by_rows ? FewRowsOfTransposed<Layout::row_major>(c) : FewRowsOfTransposed<Layout::column_major>(c);
  }
  constexpr int64_t width = 2 * kLanes;
  const int64_t depth = panel_depth(c.K);
  for (int64_t j = 0; j < c.N; j += kColumnBlock)
    for (int64_t p = 0; p < c.K; p += depth) {
      const int64_t N = std::min(kColumnBlock, c.N - j), K = std::min(depth, c.K - p);
      const float* B = transpose_b ? c.B + j * c.ldb + p : c.B + p * c.ldb + j;
      Right b{B, c.ldb, width};
      if (c.panels) {
        b = {c.panels + j * c.K + p * width, width, c.K * width};
      } else if (transpose_b || N % kLanes != 0 || (c.M > kManyRows && K * c.ldb > kNearFloats)) {
        float* packed = gemm_scratch().b;
        PackRight(c.transpose_b, N, K, B, c.ldb, packed);
        b = {packed, width, K * width};
      }
      const bool pack = N >= 64 && c.M > kTileRows && c.K > (by_rows ? 192 : 96);
      const int64_t rows = pack ? kRowBlock : RowOrder(N, K) ? c.M : 2 * kRowBlock;
      for (int64_t i = 0; i < c.M; i += rows) {
        const int64_t M = std::min(rows, c.M - i);
        float* to = c.C + i * c.ldc + j;
        const Addend from = c.bias ? Addend{c.bias + j, 0, 0} : Addend{to, c.ldc, 0};
        const Output out{to, c.ldc, 0, c.alpha, p == 0 && !c.bias ? c.beta : 1.f, from};
        if (by_rows)
          PackedBlock<Layout::row_major>(pack, M, N, K, c.A + i * c.lda + p, c.lda, b, out);
        else
          PackedBlock<Layout::column_major>(pack, M, N, K, c.A + p * c.lda + i, c.lda, b, out);
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
