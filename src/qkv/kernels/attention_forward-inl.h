// Attention forward: a block of queries walks over the tiles of keys it may see with an online softmax
// (Milakov and Gimelshein, 2018; tiled as in FlashAttention, Dao et al., 2022).
#if defined(QKV_KERNELS_ATTENTION_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_ATTENTION_FORWARD_INL_H_
#undef QKV_KERNELS_ATTENTION_FORWARD_INL_H_
#else
#define QKV_KERNELS_ATTENTION_FORWARD_INL_H_
#endif

#include <atomic>
#include <vector>

#include "qkv/core/parallel.h"
#include "qkv/kernels/attention_dropout-inl.h"
#include "qkv/kernels/attention_score-inl.h"
#include "qkv/kernels/attention_softmax-inl.h"
#include "qkv/kernels/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace attn {

/// seen (count, stride of s) <- whether a lane is a row of the panel and its score is not -inf; call before the scores
/// become weights.
HWY_NOINLINE void NoteSeen(int64_t count, ConstRows s, const Panel& panel, uint8_t* seen) {
  for (int64_t j = 0; j < count; ++j) {
    for (int64_t r = 0; r < panel.vectors * kLanes; ++r)
      seen[j * s.stride + r] = r < panel.count && s.data[j * s.stride + r] != -kInfinity;
  }
}

/// c[.] += a b[.]
HWY_INLINE void AddRow(float a, const float* b, float* c, int64_t columns) {
  const Vec factor = hn::Set(Floats(), a);
  Map(c, b, c, columns, [factor](Floats, Vec sum, Vec x) HWY_ATTR { return hn::MulAdd(factor, x, sum); });
}

/// AddProduct without the pairs not seen, for operands with NaN or infinities: same order, same bits where all is
/// finite. c (rows, columns) <- (fresh ? 0 : c) + a (rows, depth) b (depth, columns)
template <Layout kLayout>
HWY_NOINLINE void AddSeenProduct(int64_t rows, int64_t columns, int64_t depth, ConstRows a, const uint8_t* seen,
                                 ConstRows b, Rows c, bool fresh) {
  for (int64_t r = 0; r < rows; ++r) {
    if (fresh) std::fill_n(c.data + r * c.stride, columns, 0.f);
    for (int64_t k = 0; k < depth; ++k) {
      const int64_t at = kLayout == Layout::row_major ? r * a.stride + k : k * a.stride + r;
      if (seen[at]) AddRow(a.data[at], b.data + k * b.stride, c.data + r * c.stride, columns);
    }
  }
}

constexpr int64_t kMostRows = 4 * kBlock;  // the most queries in a work item
constexpr int64_t kMostFloats =
    kMostRows * 2 * 64;  // of its queries and sums: 192 KiB, which stay in L2 beside the current tile

/// Queries in a work item. More queries mean that keys and values are read and copied less often, with the same bits;
/// but their sums should stay in cache, and there must be several items per worker to balance the load.
HWY_INLINE int64_t RowsOfItem(const AttentionSizes& z, int64_t workers) {
  const int64_t heads = z.batch * z.heads, items = heads % workers == 0 ? 4 * workers : 16 * workers;
  const auto fits = [&](int64_t rows) {
    return rows * (z.width + Padded(z.value_width)) <= kMostFloats && heads * ((z.queries + rows - 1) / rows) >= items;
  };
  int64_t rows = kMostRows;
  while (rows > kBlock && !fits(rows)) rows /= 2;
  return rows;
}

/// All of a block's working memory.
struct ForwardScratch {
  ForwardScratch(const AttentionSizes& z, int64_t rows)
      : memory(rows * (z.width + Padded(z.value_width)) + kTile * (kPanel + Padded(z.value_width)) + kTile * kPanel / 4,
               5),
        packed(memory.take(rows * z.width)),
        sums(memory.take(rows * Padded(z.value_width))),
        scores(memory.take(kTile * kPanel)),
        values(memory.take(kTile * Padded(z.value_width))),
        seen(reinterpret_cast<uint8_t*>(memory.take(kTile * kPanel / 4))) {}
  Scratch memory;
  float* packed;  // (panels, D, kPanel)
  float* sums;    // (rows, Dv padded): not yet divided
  float* scores;  // (kTile, kPanel)
  float* values;  // (kTile, Dv padded): a copy
  uint8_t* seen;  // (kTile, kPanel)
};

// Writes out = sums / total and lse = ln(total) + top for the rows of a panel; returns the number of rows that saw
// nothing.
HWY_INLINE int64_t FinishRows(const Head& head, const Panel& panel, const Running& row, const float* sums, Rows out,
                              float* lse) {
  const int64_t width = head.call.sizes.value_width, padded = Padded(width);
  const float factor = Dropper::Factor(head.call.dropout);
  int64_t empty = 0;
  for (int64_t r = 0; r < panel.count; ++r) {
    float* to = out.data + r * out.stride;
    if (row.total[r] == 0) {
      std::fill_n(to, width, 0.f);
      lse[r] = -kInfinity;
      ++empty;
      continue;
    }
    lse[r] = LogSum(row.top[r], row.total[r]);
    const Vec share = hn::Set(Floats(), factor / row.total[r]);
    Map(sums + r * padded, to, width, [share](Floats, Vec x) HWY_ATTR { return hn::Mul(x, share); });
  }
  return empty;
}

/// A tile of values: in place, and as a copy.
struct ValueTile {
  KeyRange keys;
  ConstRows rows;
  Right packed;
  int finite = -1;  // not checked yet

  bool Finite(int64_t width) {
    if (finite < 0) finite = AllFinite(rows, keys.count(), width);
    return finite;
  }
};

/// Rows [i0, i1) of one head, at most kMostRows, walking over the keys.
class ForwardItem {
 public:
  HWY_INLINE ForwardItem(const Head& head, ConstHeads q, ConstHeads k, ConstHeads v, int64_t i0, int64_t i1)
      : head_(head),
        z_(head.call.sizes),
        k_(k),
        v_(v),
        panels_((i1 - i0 + kPanel - 1) / kPanel),
        padded_(Padded(z_.value_width)),
        scratch_(z_, panels_ * kPanel),
        dropper_(head.call.dropout, z_, head.b, head.h),
        lo_(z_.keys) {
    for (int64_t p = 0; p < panels_; ++p) {
      const int64_t first = i0 + p * kPanel;
      panel_[p].Set(head, first, std::min(kPanel, i1 - first));
      PackPanel(head.QueryRows(q, first), panel_[p].count, z_.width, QueryFactor(head.call), Packed(p));
      row_[p].Clear();
      fresh_[p] = true;
      lo_ = std::min(lo_, panel_[p].lo);
      hi_ = std::max(hi_, panel_[p].hi);
    }
  }

  HWY_INLINE void Walk() {
    for (int64_t tile = lo_ / kTile * kTile; tile < hi_; tile += kTile) {
      const int64_t tile_end = std::min(tile + kTile, z_.keys);
      const KeyRange keys = WholeChunks(lo_, hi_, tile, tile_end);
      ValueTile values{keys, head_.KeyRows(v_, keys.begin), {}};
      values.packed = PackRight(values.rows, keys.count(), z_.value_width, panels_ > 1, scratch_.values);
      for (int64_t p = 0; p < panels_; ++p) {
        const KeyRange seen = WholeChunks(panel_[p].lo, panel_[p].hi, tile, tile_end);
        if (seen.count() > 0) Step(p, seen, values);
      }
    }
  }

  /// Returns the number of rows that saw nothing.
  HWY_INLINE int64_t Finish(Heads out, float* lse) const {
    int64_t empty = 0;
    for (int64_t p = 0; p < panels_; ++p) {
      const int64_t first = panel_[p].first;
      empty += FinishRows(head_, panel_[p], row_[p], Sums(p).data, head_.QueryRows(out, first), lse + first);
    }
    return empty;
  }

 private:
  float* Packed(int64_t p) const { return scratch_.packed + p * kPanel * z_.width; }
  Rows Sums(int64_t p) const { return {scratch_.sums + p * kPanel * padded_, padded_}; }

  // The first panels prefetch the keys of the next tile from the outer caches, each panel one line of every row.
  HWY_INLINE int64_t KeysAhead(int64_t p, int64_t j1) const {
    constexpr int64_t kLine = 64 / sizeof(float);
    return p * kLine < z_.width && j1 + kTile < hi_ ? kTile * k_.stride.row + p * kLine : 0;
  }

  // sums <- rescale * sums + P V for panel p and keys of a tile
  HWY_NOINLINE void Step(int64_t p, KeyRange keys, ValueTile& values) {
    float* s = scratch_.scores;
    const Panel& panel = panel_[p];
    Running& row = row_[p];
    const auto [j0, j1] = keys;
    PanelScores(head_, panel, Packed(p), k_, j0, j1, {s, kPanel}, nullptr, KeysAhead(p, j1));
    const bool guard = MayHide(head_.call, panel, j0, j1) && !values.Finite(z_.value_width);
    if (guard) NoteSeen(j1 - j0, {s, kPanel}, panel, scratch_.seen);
    Softmax softmax = SoftmaxStep(panel.vectors, j1 - j0, s, row);
    if (softmax == Softmax::look_again) {
      row.look = row.rises = true;
      PanelScores(head_, panel, Packed(p), k_, j0, j1, {s, kPanel});
      softmax = SoftmaxStep(panel.vectors, j1 - j0, s, row);
    }
    const Rows sums = Sums(p);
    if (softmax == Softmax::moved && !fresh_[p]) Rescale(panel.count, row, sums);
    if (dropper_.on()) {
      dropper_.ForEach(panel.first, panel.vectors, j0, j1, [s, j0 = j0](int64_t j, int64_t lane, auto kept) HWY_ATTR {
        float* at = s + (j - j0) * kPanel + lane;
        hn::Store(hn::IfThenElseZero(kept, hn::Load(Floats(), at)), Floats(), at);
      });
    }
    const int64_t skip = j0 - values.keys.begin;
    if (guard) {
      const ConstRows from{values.rows.data + skip * values.rows.stride, values.rows.stride};
      AddSeenProduct<Layout::column_major>(panel.count, z_.value_width, j1 - j0, {s, kPanel}, scratch_.seen, from, sums,
                                           fresh_[p]);
    } else {
      AddValues(panel, keys, values.packed.From(skip), sums, fresh_[p]);
    }
    fresh_[p] = false;
  }

  HWY_INLINE void Rescale(int64_t count, const Running& row, Rows sums) const {
    for (int64_t r = 0; r < count; ++r) {
      const Vec rescale = hn::Set(Floats(), row.rescale[r]);
      float* sum = sums.data + r * sums.stride;
      Map(sum, sum, padded_, [rescale](Floats, Vec x) HWY_ATTR { return hn::Mul(x, rescale); });
    }
  }

  // sums += P V. Where rows see different keys, they are taken a few at a time, skipping keys that none of those sees.
  HWY_INLINE void AddValues(const Panel& panel, KeyRange keys, Right values, Rows sums, bool fresh) const {
    const int64_t width = Whole(z_.value_width),
                  step = panel.Differ(keys.begin, keys.end) ? kRowsTogether : panel.count;
    for (int64_t r = 0; r < panel.count; r += step) {
      const int64_t rows = std::min(step, panel.count - r);
      const KeyRange seen = step == panel.count ? keys : panel.SeenBy(r, rows, keys);
      const ConstRows weights{scratch_.scores + (seen.begin - keys.begin) * kPanel + r, kPanel};
      const Rows to{sums.data + r * sums.stride, sums.stride};
      AddProduct<Layout::column_major>(rows, width, seen.count(), weights, values.From(seen.begin - keys.begin), to,
                                       fresh);
    }
  }

  const Head& head_;
  const AttentionSizes& z_;
  ConstHeads k_, v_;
  int64_t panels_, padded_;
  ForwardScratch scratch_;
  Dropper dropper_;
  int64_t lo_, hi_ = 0;
  Panel panel_[kMostRows / kPanel];
  Running row_[kMostRows / kPanel];
  bool fresh_[kMostRows / kPanel];
};

HWY_NOINLINE int64_t ForwardBlock(const Head& head, ConstHeads q, ConstHeads k, ConstHeads v, Heads out, float* lse,
                                  int64_t i0, int64_t i1) {
  ForwardItem item(head, q, k, v, i0, i1);
  item.Walk();
  return item.Finish(out, lse);
}

/// Rough nanoseconds for a number of (query, key) pairs, for parallel_for.
HWY_INLINE double PairCost(const AttentionSizes& z, double pairs) {
  return pairs * (1 + 0.03 * static_cast<double>(z.width + z.value_width));
}

/// Block number n of `count` if early and late blocks cost differently (causal masks): from both ends in turn, so that
/// both halves of the order cost the same.
HWY_INLINE int64_t FromBothEnds(int64_t n, int64_t count) { return n % 2 ? count - 1 - n / 2 : n / 2; }

int64_t Forward(const AttentionCall& call, ConstHeads q, ConstHeads k, ConstHeads v, Heads out, float* lse) {
  const AttentionSizes& z = call.sizes;
  const int64_t rows = RowsOfItem(z, threads()), blocks = (z.queries + rows - 1) / rows, heads = z.batch * z.heads;
  std::atomic<int64_t> empty{0};
  const double ns = PairCost(z, static_cast<double>(heads * z.queries) * static_cast<double>(z.keys));
  parallel_for(heads * blocks, ns, [&](int64_t item) {
    const int64_t bh = item / blocks, block = FromBothEnds(item % blocks, blocks);
    const Head head(call, bh / z.heads, bh % z.heads);
    const int64_t i0 = block * rows, i1 = std::min(i0 + rows, z.queries);
    empty += ForwardBlock(head, q, k, v, out, lse + bh * z.queries, i0, i1);
  });
  return empty;
}

void Weights(const AttentionCall& call, ConstHeads q, ConstHeads k, const float* lse, int64_t b, int64_t h, int64_t i,
             float* weights) {
  const AttentionSizes& z = call.sizes;
  const Head head(call, b, h);
  ForwardScratch scratch(z, kPanel);
  Panel panel;
  panel.Set(head, i, 1);
  std::fill_n(weights, z.keys, 0.f);
  const float row_lse = lse[(b * z.heads + h) * z.queries + i];
  if (row_lse == -kInfinity) return;
  PackPanel(head.QueryRows(q, i), 1, z.width, QueryFactor(call), scratch.packed);
  for (int64_t tile = panel.lo / kTile * kTile; tile < panel.hi; tile += kTile) {
    const int64_t j0 = std::max(panel.lo, tile), j1 = std::min(panel.hi, tile + kTile);
    PanelScores(head, panel, scratch.packed, k, j0, j1, {scratch.scores, kPanel});
    for (int64_t j = j0; j < j1; ++j) weights[j] = scratch.scores[(j - j0) * kPanel];
  }
  WeightsOfScores(weights + panel.lo, panel.hi - panel.lo, ToLog2(row_lse));
}

}  // namespace attn
}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
