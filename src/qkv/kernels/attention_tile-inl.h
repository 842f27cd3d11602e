// Register tiles of attention. Queries lie in lanes: a panel of queries is packed once, keys and values are read where they are.
// Every element of a product is one chain of multiply-adds in ascending order, so its bits depend on its own row and column alone.
#if defined(QKV_KERNELS_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_ATTENTION_TILE_INL_H_
#undef QKV_KERNELS_ATTENTION_TILE_INL_H_
#else
#define QKV_KERNELS_ATTENTION_TILE_INL_H_
#endif

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "qkv/kernels/attention_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace attn {

constexpr int64_t kPanel = 3 * kLanes;                            // queries of a panel
constexpr int64_t kBlock = 96;                                    // queries of a work item: whole panels
constexpr int64_t kTile = 144;                                    // keys of a tile: a panel of scores and a slab of values fit in L1
constexpr int64_t kChunk = 12;                                    // keys of a tile come in whole chunks where they are clipped
static_assert(kBlock % kPanel == 0 && kTile % kChunk == 0);

constexpr int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
constexpr int64_t Whole(int64_t width) { return RoundUp(width, kLanes); }       // in whole vectors
constexpr int64_t Padded(int64_t width) { return RoundUp(width, 2 * kLanes); }  // in pairs of vectors: the room a row gets

/// Rows of floats: row i is at data + i * stride.
struct ConstRows {
  const float* data;
  int64_t stride;
};
struct Rows {
  float* data;
  int64_t stride;
};

constexpr int kSteps = 16;  // of a sum between jumps: loops of a few rounds end as the processor foresees

/// What is summed over the width for a key and a query: k q, or (k - q)^2.
enum class Pairing { product, difference };

// out[r][lane] = sum over c of rows[r][c] with panel[c][lane], for `groups` times kRows rows. Asks for a line `ahead`
// of each row on the way: many at once would wait for each other.
template <Pairing kPairing, int kRows, int kVectors>
HWY_NOINLINE void ScoreRows(int64_t groups, ConstRows rows, const float* panel, int64_t width, Rows out, int64_t ahead) {
  const Floats d;
  for (; groups > 0; --groups) {
    Vec sum[kRows][kVectors];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
    }
    const float* HWY_RESTRICT key = rows.data;
    const float* HWY_RESTRICT query = panel;
    const auto step = [&]() HWY_ATTR {
      Vec q[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) q[v] = hn::Load(d, query + v * kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const Vec k = hn::Set(d, key[r * rows.stride]);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          if constexpr (kPairing == Pairing::product) {
            sum[r][v] = hn::MulAdd(k, q[v], sum[r][v]);
          } else {
            const Vec e = hn::Sub(q[v], k);
            sum[r][v] = hn::MulAdd(e, e, sum[r][v]);
          }
        }
      }
      ++key;
      query += kPanel;
    };
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) hwy::Prefetch(key + r * rows.stride + ahead);
    int64_t c = width;
    for (; c >= kSteps; c -= kSteps) {
#pragma GCC unroll 16
      for (int i = 0; i < kSteps; ++i) step();
    }
    for (; c > 0; --c) step();
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) hn::Store(sum[r][v], d, out.data + r * out.stride + v * kLanes);
    }
    rows.data += kRows * rows.stride;
    out.data += kRows * out.stride;
  }
}

// The full group of kRows, then what is left, fewer rows at a time.
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

/// out (count, kPanel) <- rows (count, width) paired with panel (width, kPanel), of which `vectors` vectors are used. ahead: how many
/// floats behind each row something lies that will be read soon.
template <Pairing kPairing>
HWY_INLINE void Scores(int64_t count, ConstRows rows, const float* panel, int64_t vectors, int64_t width, Rows out, int64_t ahead = 0) {
  if (vectors == 3) ScoreGroups<kPairing, 4, 3>(count, rows, panel, width, out, ahead, std::make_integer_sequence<int, 4>());
  else if (vectors == 2) ScoreGroups<kPairing, 6, 2>(count, rows, panel, width, out, ahead, std::make_integer_sequence<int, 6>());
  else ScoreGroups<kPairing, 8, 1>(count, rows, panel, width, out, ahead, std::make_integer_sequence<int, 8>());
}

/// Right operand of a product: vectors 2p and 2p + 1 of row k are at data + p * pair + k * stride.
struct Right {
  const float* data;
  int64_t stride, pair;

  Right From(int64_t row) const { return {data + row * stride, stride, pair}; }
};

/// How the left operand of AddProduct lies: element (r, k) at [r * stride + k] or at [k * stride + r].
enum class Lie { across, down };

// c[r][.] <- (fresh ? 0 : c[r][.]) + sum over k of a(r, k) b[k][.], for one tile of kRows rows and kVectors vectors.
template <Lie kLie, int kRows, int kVectors>
HWY_INLINE void AddTile(int64_t depth, ConstRows left, Right right, Rows c, bool fresh) {
  const Floats d;
  Vec sum[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sum[r][v] = fresh ? hn::Zero(d) : hn::LoadU(d, c.data + r * c.stride + v * kLanes);
  }
  const float* HWY_RESTRICT a = left.data;
  const float* HWY_RESTRICT b = right.data;
#pragma GCC unroll 4
  for (int64_t k = 0; k < depth; ++k) {
    Vec bv[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) bv[v] = hn::LoadU(d, b + v / 2 * right.pair + v % 2 * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Vec av = hn::Set(d, kLie == Lie::across ? a[r * left.stride] : a[r]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(av, bv[v], sum[r][v]);
    }
    a += kLie == Lie::across ? 1 : left.stride;
    b += right.stride;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[r][v], d, c.data + r * c.stride + v * kLanes);
  }
}

constexpr int64_t kRowsTogether = 6;  // rows of the widest tile of a product

// One or two vectors of columns, all rows.
template <Lie kLie, int kVectors>
HWY_NOINLINE void AddColumns(int64_t rows, int64_t depth, ConstRows a, Right b, Rows c, bool fresh) {
  const int64_t step = kLie == Lie::across ? a.stride : 1;
  int64_t r = 0;
  for (; r + kRowsTogether <= rows; r += kRowsTogether) {
    AddTile<kLie, kRowsTogether, kVectors>(depth, a, b, c, fresh);
    a.data += kRowsTogether * step;
    c.data += kRowsTogether * c.stride;
  }
  switch (rows - r) {
    case 1: return AddTile<kLie, 1, kVectors>(depth, a, b, c, fresh);
    case 2: return AddTile<kLie, 2, kVectors>(depth, a, b, c, fresh);
    case 3: return AddTile<kLie, 3, kVectors>(depth, a, b, c, fresh);
    case 4: return AddTile<kLie, 4, kVectors>(depth, a, b, c, fresh);
    case 5: return AddTile<kLie, 5, kVectors>(depth, a, b, c, fresh);
    default: return;
  }
}

/// c (rows, columns) <- (fresh ? 0 : c) + a (rows, depth) b (depth, columns). b is padded to whole vectors; c need not be.
template <Lie kLie>
HWY_INLINE void AddProduct(int64_t rows, int64_t columns, int64_t depth, ConstRows a, Right b, Rows c, bool fresh) {
  int64_t j = 0;
  const auto right = [&] { return Right{b.data + j / (2 * kLanes) * b.pair + j % (2 * kLanes), b.stride, b.pair}; };
  const auto sum = [&] { return Rows{c.data + j, c.stride}; };
  if (rows == 1) {
    for (; j + 8 * kLanes <= columns; j += 8 * kLanes) AddTile<kLie, 1, 8>(depth, a, right(), sum(), fresh);
  }
  for (; j + 2 * kLanes <= columns; j += 2 * kLanes) AddColumns<kLie, 2>(rows, depth, a, right(), sum(), fresh);
  for (; j + kLanes <= columns; j += kLanes) AddColumns<kLie, 1>(rows, depth, a, right(), sum(), fresh);
  if (j == columns) return;
  const int64_t tail = columns - j, step = kLie == Lie::across ? a.stride : 1;
  for (int64_t r = 0; r < rows; r += kRowsTogether) {
    const int64_t count = std::min(kRowsTogether, rows - r);
    HWY_ALIGN float part[kRowsTogether * kLanes] = {};
    for (int64_t i = 0; i < count && !fresh; ++i) std::copy_n(c.data + (r + i) * c.stride + j, tail, part + i * kLanes);
    AddColumns<kLie, 1>(count, depth, {a.data + r * step, a.stride}, right(), {part, kLanes}, fresh);
    for (int64_t i = 0; i < count; ++i) std::copy_n(part + i * kLanes, tail, c.data + (r + i) * c.stride + j);
  }
}

/// rows (count, width) as a right operand: where they are, if that is whole vectors and they will be read but a few times, else copied
/// to `copy` two vectors of columns at a time. Rows of 64 floats apart share a few cache sets: a column of them does not stay in L1.
HWY_INLINE Right PackRight(ConstRows rows, int64_t count, int64_t width, bool reused, float* copy) {
  const Floats d;
  if (!reused && width % kLanes == 0) return {rows.data, rows.stride, 2 * kLanes};
  const int64_t pair = count * 2 * kLanes;
  for (int64_t k = 0; k < count; ++k) {
    const float* from = rows.data + k * rows.stride;
    float* to = copy + k * 2 * kLanes;
    int64_t c = 0;
    for (; c + 2 * kLanes <= width; c += 2 * kLanes, to += pair) {
      hn::Store(hn::LoadU(d, from + c), d, to);
      hn::Store(hn::LoadU(d, from + c + kLanes), d, to + kLanes);
    }
    for (; c < width; c += kLanes, to += kLanes) {
      hn::Store(c + kLanes <= width ? hn::LoadU(d, from + c) : LoadPart(d, from + c, width - c), d, to);
    }
  }
  return {copy, 2 * kLanes, pair};
}

#if HWY_TARGET != HWY_SCALAR
// x[i][j] <-> x[j][i] for kLanes vectors of 4 or 8 lanes: 4 x 4 inside 128-bit blocks, then the blocks.
HWY_INLINE void TransposeBlocks(Vec& a, Vec& b, Vec& c, Vec& e) {
  const Floats d;
  const hn::Repartition<double, Floats> pairs;
  const auto low_ab = hn::BitCast(pairs, hn::InterleaveLower(d, a, b)), high_ab = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
  const auto low_ce = hn::BitCast(pairs, hn::InterleaveLower(d, c, e)), high_ce = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
  a = hn::BitCast(d, hn::InterleaveLower(pairs, low_ab, low_ce));
  b = hn::BitCast(d, hn::InterleaveUpper(pairs, low_ab, low_ce));
  c = hn::BitCast(d, hn::InterleaveLower(pairs, high_ab, high_ce));
  e = hn::BitCast(d, hn::InterleaveUpper(pairs, high_ab, high_ce));
}
#endif

HWY_INLINE void Transpose(Vec (&x)[kLanes]) {
#if HWY_TARGET != HWY_SCALAR
  static_assert(kLanes == 4 || kLanes == 8);
  TransposeBlocks(x[0], x[1], x[2], x[3]);
  if constexpr (kLanes == 8) {
    const Floats d;
    TransposeBlocks(x[4], x[5], x[6], x[7]);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const Vec low = x[i], high = x[i + 4];
      x[i] = hn::ConcatLowerLower(d, high, low);
      x[i + 4] = hn::ConcatUpperUpper(d, high, low);
    }
  }
#else
  (void)x;
#endif
}

// to (some vectors of columns, kPanel) <- scale * a square of up to kLanes rows and columns, transposed.
template <bool kWhole>
HWY_INLINE void PackSquare(const float* from, int64_t stride, int64_t rows, int64_t columns, Vec scale, float* to) {
  const Floats d;
  Vec x[kLanes];
#pragma GCC unroll 8
  for (int64_t i = 0; i < kLanes; ++i) {
    if constexpr (kWhole) x[i] = hn::LoadU(d, from + i * stride);
    else x[i] = i < rows ? LoadPart(d, from + i * stride, columns) : hn::Zero(d);
  }
  Transpose(x);
#pragma GCC unroll 8
  for (int64_t i = 0; i < kLanes; ++i) {
    if (kWhole || i < columns) hn::Store(hn::Mul(x[i], scale), d, to + i * kPanel);
  }
}

/// panel (width, kPanel) <- factor * rows^T for count <= kPanel rows; the lanes behind them, up to a whole vector, are 0.
HWY_INLINE void PackPanel(ConstRows rows, int64_t count, int64_t width, float factor, float* panel) {
  const Vec scale = hn::Set(Floats(), factor);
  for (int64_t first = 0; first < count; first += kLanes) {
    const int64_t some = std::min(kLanes, count - first);
    const float* from = rows.data + first * rows.stride;
    for (int64_t c = 0; c < width; c += kLanes) {
      const int64_t columns = std::min(kLanes, width - c);
      float* to = panel + c * kPanel + first;
      if (some == kLanes && columns == kLanes) PackSquare<true>(from + c, rows.stride, some, columns, scale, to);
      else PackSquare<false>(from + c, rows.stride, some, columns, scale, to);
    }
  }
}

}  // namespace attn
}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
