// The products of attention on register tiles. Queries are in lanes: a panel of queries is packed once, keys and values
// are read in place. Every element of a product is one chain of multiply-adds in ascending order, so its bits depend on
// its own row and column alone.
#if defined(QKV_KERNELS_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_ATTENTION_TILE_INL_H_
#undef QKV_KERNELS_ATTENTION_TILE_INL_H_
#else
#define QKV_KERNELS_ATTENTION_TILE_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <utility>

#include "qkv/kernels/attention_math-inl.h"
#include "qkv/kernels/register_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace attn {

constexpr int64_t kPanel = 3 * kLanes;  // queries per panel
constexpr int64_t kBlock = 96;          // queries per work item: whole panels
constexpr int64_t kTile = 144;          // keys per tile: a panel of scores and a slab of values fit in L1
constexpr int64_t kChunk = 12;          // where a tile's keys are clipped, they are clipped to whole chunks
static_assert(kBlock % kPanel == 0 && kTile % kChunk == 0);

constexpr int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
constexpr int64_t Whole(int64_t width) { return RoundUp(width, kLanes); }  // rounded up to whole vectors
constexpr int64_t Padded(int64_t width) {
  return RoundUp(width, 2 * kLanes);
}  // rounded up to pairs of vectors: the space a row gets

/// Rows of floats: row i is at data + i * stride.
struct ConstRows {
  const float* data;
  int64_t stride;
};
struct Rows {
  float* data;
  int64_t stride;
};

constexpr int kSteps = 16;  // of a sum between jumps: the end of short loops is predicted well

// out[r][lane] = sum over c of rows[r][c] with panel[c][lane], for `groups` times kRows rows. Prefetches a line `ahead`
// of each row on the way: many prefetches at once would stall.
template <Pairing kPairing, int kRows, int kVectors>
HWY_NOINLINE void ScoreRows(int64_t groups, ConstRows rows, const float* panel, int64_t width, Rows out,
                            int64_t ahead) {
  const Floats d;
  for (; groups > 0; --groups) {
    Tile<kRows, kVectors> tile;
    tile.Clear();
    const float* HWY_RESTRICT key = rows.data;
    const float* HWY_RESTRICT query = panel;
    const auto step = [&](int = 0) HWY_ATTR {
      tile.template Step<kPairing>([&](int r) { return key[r * rows.stride]; },
                                   [&](int v) HWY_ATTR { return hn::Load(d, query + v * kLanes); });
      ++key;
      query += kPanel;
    };
    PrefetchRows<kRows>(key + ahead, rows.stride);
    int64_t c = width;
    for (; c >= kSteps; c -= kSteps) Unrolled<kSteps>(step);
    for (; c > 0; --c) step();
    tile.Each([&](int r, int v, Vec sum) HWY_ATTR { hn::Store(sum, d, out.data + r * out.stride + v * kLanes); });
    rows.data += kRows * rows.stride;
    out.data += kRows * out.stride;
  }
}

// The full groups of kRows, then the remaining rows, fewer at a time.
template <Pairing kPairing, int kRows, int kVectors, int... kLess>
HWY_INLINE void ScoreGroups(int64_t count, ConstRows rows, const float* panel, int64_t width, Rows out, int64_t ahead,
                            std::integer_sequence<int, kLess...>) {
  using Function = void (*)(int64_t, ConstRows, const float*, int64_t, Rows, int64_t);
  static constexpr Function tail[] = {ScoreRows<kPairing, kLess + 1, kVectors>...};
  const int64_t groups = count / kRows, rest = count % kRows;
  if (groups > 0) tail[kRows - 1](groups, rows, panel, width, out, ahead);
  if (rest > 0) {
    rows.data += groups * kRows * rows.stride;
    out.data += groups * kRows * out.stride;
    tail[rest - 1](1, rows, panel, width, out, ahead);
  }
}

/// out (count, kPanel) <- rows (count, width) paired with panel (width, kPanel), of which `vectors` vectors are used.
/// ahead: distance in floats from each row to data that will be read soon.
template <Pairing kPairing>
HWY_INLINE void Scores(int64_t count, ConstRows rows, const float* panel, int64_t vectors, int64_t width, Rows out,
                       int64_t ahead = 0) {
  if (vectors == 3)
    ScoreGroups<kPairing, 4, 3>(count, rows, panel, width, out, ahead, std::make_integer_sequence<int, 4>());
  else if (vectors == 2)
    ScoreGroups<kPairing, 6, 2>(count, rows, panel, width, out, ahead, std::make_integer_sequence<int, 6>());
  else
    ScoreGroups<kPairing, 8, 1>(count, rows, panel, width, out, ahead, std::make_integer_sequence<int, 8>());
}

// c[r][.] <- (fresh ? 0 : c[r][.]) + sum over k of a(r, k) b[k][.], for one tile of kRows rows and kVectors vectors.
template <Layout kLayout, int kRows, int kVectors>
HWY_INLINE void AddTile(int64_t depth, ConstRows left, Right right, Rows c, bool fresh) {
  const Floats d;
  Tile<kRows, kVectors> tile;
  if (fresh)
    tile.Clear();
  else
    tile.Each([&](int r, int v, Vec& sum) HWY_ATTR { sum = hn::LoadU(d, c.data + r * c.stride + v * kLanes); });
  tile.template AddProduct<kLayout>(depth, left.data, left.stride, right);
  tile.Each([&](int r, int v, Vec sum) HWY_ATTR { hn::StoreU(sum, d, c.data + r * c.stride + v * kLanes); });
}

constexpr int64_t kRowsTogether = 6;  // rows in the widest tile of a product

// One or two vectors of columns, all rows.
template <Layout kLayout, int kVectors>
HWY_NOINLINE void AddColumns(int64_t rows, int64_t depth, ConstRows a, Right b, Rows c, bool fresh) {
  const int64_t step = kLayout == Layout::row_major ? a.stride : 1;
  int64_t r = 0;
  for (; r + kRowsTogether <= rows; r += kRowsTogether) {
    AddTile<kLayout, kRowsTogether, kVectors>(depth, a, b, c, fresh);
    a.data += kRowsTogether * step;
    c.data += kRowsTogether * c.stride;
  }
  switch (rows - r) {
    case 1:
      return AddTile<kLayout, 1, kVectors>(depth, a, b, c, fresh);
    case 2:
      return AddTile<kLayout, 2, kVectors>(depth, a, b, c, fresh);
    case 3:
      return AddTile<kLayout, 3, kVectors>(depth, a, b, c, fresh);
    case 4:
      return AddTile<kLayout, 4, kVectors>(depth, a, b, c, fresh);
    case 5:
      return AddTile<kLayout, 5, kVectors>(depth, a, b, c, fresh);
    default:
      return;
  }
}

/// c (rows, columns) <- (fresh ? 0 : c) + a (rows, depth) b (depth, columns). b must be padded to whole vectors.
template <Layout kLayout>
HWY_INLINE void AddProduct(int64_t rows, int64_t columns, int64_t depth, ConstRows a, Right b, Rows c, bool fresh) {
  int64_t j = 0;
  const auto right = [&] { return Right{b.data + j / (2 * kLanes) * b.pair + j % (2 * kLanes), b.stride, b.pair}; };
  const auto sum = [&] { return Rows{c.data + j, c.stride}; };
  if (rows == 1) {
    for (; j + 8 * kLanes <= columns; j += 8 * kLanes) AddTile<kLayout, 1, 8>(depth, a, right(), sum(), fresh);
  }
  for (; j + 2 * kLanes <= columns; j += 2 * kLanes) AddColumns<kLayout, 2>(rows, depth, a, right(), sum(), fresh);
  for (; j + kLanes <= columns; j += kLanes) AddColumns<kLayout, 1>(rows, depth, a, right(), sum(), fresh);
  if (j == columns) return;
  const int64_t tail = columns - j, step = kLayout == Layout::row_major ? a.stride : 1;
  for (int64_t r = 0; r < rows; r += kRowsTogether) {
    const int64_t count = std::min(kRowsTogether, rows - r);
    HWY_ALIGN float part[kRowsTogether * kLanes] = {};
    for (int64_t i = 0; i < count && !fresh; ++i) std::copy_n(c.data + (r + i) * c.stride + j, tail, part + i * kLanes);
    AddColumns<kLayout, 1>(count, depth, {a.data + r * step, a.stride}, right(), {part, kLanes}, fresh);
    for (int64_t i = 0; i < count; ++i) std::copy_n(part + i * kLanes, tail, c.data + (r + i) * c.stride + j);
  }
}

/// rows (count, width) as a right operand: in place if they are whole vectors and are read only a few times, else
/// copied to `copy` two vectors of columns at a time. Rows that are 64 floats apart share a few cache sets, so a column
/// of them does not stay in L1.
HWY_INLINE Right PackRight(ConstRows rows, int64_t count, int64_t width, bool reused, float* copy) {
  if (!reused && width % kLanes == 0) return {rows.data, rows.stride, 2 * kLanes};
  return PackRows(rows.data, rows.stride, count, width, copy);
}

// x[i][j] <-> x[j][i] for kLanes vectors: inside the blocks of four lanes, then the blocks.
HWY_INLINE void Transpose(Vec (&x)[kLanes]) {
  static_assert(kLanes == 4 || kLanes == 8);
  TransposeBlocks(x[0], x[1], x[2], x[3]);
  if constexpr (kLanes == 8) {
    const Floats d;
    TransposeBlocks(x[4], x[5], x[6], x[7]);
    Unrolled<4>([&](int i) HWY_ATTR {
      const Vec low = x[i], high = x[i + 4];
      x[i] = hn::ConcatLowerLower(d, high, low);
      x[i + 4] = hn::ConcatUpperUpper(d, high, low);
    });
  }
}

// to (some vectors of columns, kPanel) <- scale * a square of up to kLanes rows and columns, transposed.
template <bool kWhole>
HWY_INLINE void PackSquare(const float* from, int64_t stride, int64_t rows, int64_t columns, Vec scale, float* to) {
  const Floats d;
  Vec x[kLanes];
  Unrolled<kLanes>([&](int i) HWY_ATTR {
    if constexpr (kWhole)
      x[i] = hn::LoadU(d, from + i * stride);
    else
      x[i] = i < rows ? LoadPart(d, from + i * stride, columns) : hn::Zero(d);
  });
  Transpose(x);
  Unrolled<kLanes>([&](int i) HWY_ATTR {
    if (kWhole || i < columns) hn::Store(hn::Mul(x[i], scale), d, to + i * kPanel);
  });
}

/// panel (width, kPanel) <- factor * rows^T for count <= kPanel rows; the lanes after them, up to a whole vector, are
/// 0.
HWY_INLINE void PackPanel(ConstRows rows, int64_t count, int64_t width, float factor, float* panel) {
  const Vec scale = hn::Set(Floats(), factor);
  for (int64_t first = 0; first < count; first += kLanes) {
    const int64_t some = std::min(kLanes, count - first);
    const float* from = rows.data + first * rows.stride;
    for (int64_t c = 0; c < width; c += kLanes) {
      const int64_t columns = std::min(kLanes, width - c);
      float* to = panel + c * kPanel + first;
      if (some == kLanes && columns == kLanes)
        PackSquare<true>(from + c, rows.stride, some, columns, scale, to);
      else
        PackSquare<false>(from + c, rows.stride, some, columns, scale, to);
    }
  }
}

}  // namespace attn
}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
