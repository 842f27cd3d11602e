// Attention backward: blocks of queries against tiles of keys in one pass (five products per pair). A tile belongs to
// one of four groups, and dQ is the sum over groups in order, so one thread that takes all groups and four threads that
// share them give the same bits.
#if defined(QKV_KERNELS_ATTENTION_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_ATTENTION_BACKWARD_INL_H_
#undef QKV_KERNELS_ATTENTION_BACKWARD_INL_H_
#else
#define QKV_KERNELS_ATTENTION_BACKWARD_INL_H_
#endif

#include <memory>
#include <vector>

#include "qkv/kernels/attention_relative-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace attn {

/// One head's share of backward: the tiles of groups [first, last).
struct GroupRange {
  int64_t first, last;
};

/// What the groups of one head leave to be summed in order; null: not wanted.
struct HeadParts {
  float* dq;          // (kGroups, Lq, D padded); null: dq is written directly
  double* dscale;     // (blocks, kGroups)
  double* diagonals;  // (kGroups, Lq + Lk - 1)
};

// The keys of a tile that each panel works on, in whole chunks, and the range that covers all of them.
struct TilePlan {
  int64_t tile, begin, end;
  int64_t from[kBlock / kPanel], to[kBlock / kPanel];

  HWY_INLINE bool Set(const QueryBlock& block, int64_t keys, int64_t tile_begin) {
    tile = tile_begin;
    const int64_t tile_end = std::min(tile + kTile, keys);
    begin = tile_end;
    end = tile;
    for (int64_t p = 0; p < block.panels; ++p) {
      const KeyRange range = WholeChunks(block.panel[p].lo, block.panel[p].hi, tile, tile_end);
      from[p] = range.begin;
      to[p] = range.end;
      if (from[p] == to[p]) continue;
      begin = std::min(begin, from[p]);
      end = std::max(end, to[p]);
    }
    return begin < end;
  }
};

// Writes zeros where a panel skips keys of the tile that other panels use.
HWY_INLINE void ClearRest(const QueryBlock& block, const TilePlan& plan, const BackwardScratch& scratch) {
  for (int64_t p = 0; p < block.panels; ++p) {
    for (int64_t j = plan.begin; j < plan.end; ++j) {
      if (j >= plan.from[p] && j < plan.to[p]) continue;
      const int64_t at = (j - plan.tile) * kBlock + p * kPanel;
      std::fill_n(scratch.weights + at, kPanel, 0.f);
      std::fill_n(scratch.dscores + at, kPanel, 0.f);
      std::fill_n(scratch.seen + at, kPanel, uint8_t{0});
    }
  }
}

// c (rows of keys) += left (kTile, kBlock) times rows of the block, for runs of key chunks used by the same panels.
HWY_INLINE void AddToKeys(const QueryBlock& block, const TilePlan& plan, const float* left, const uint8_t* seen,
                          ConstRows rows, Right right, int64_t columns, Rows c) {
  const auto panels_of = [&](int64_t j) {
    std::pair<int64_t, int64_t> range{block.panels, 0};
    for (int64_t p = 0; p < block.panels; ++p) {
      if (j < plan.from[p] || j >= plan.to[p]) continue;
      range.first = std::min(range.first, p);
      range.second = p + 1;
    }
    return range;
  };
  for (int64_t j = plan.begin; j < plan.end;) {
    const auto [first, last] = panels_of(j);
    int64_t next = j + kChunk;
    while (next < plan.end && panels_of(next) == std::pair(first, last)) next += kChunk;
    next = std::min(next, plan.end);
    if (first < last) {
      const int64_t row = first * kPanel, depth = std::min(last * kPanel, block.count) - row,
                    at = (j - plan.tile) * kBlock + row;
      const ConstRows from{rows.data + row * rows.stride, rows.stride};
      const Rows to{c.data + (j - plan.tile) * c.stride, c.stride};
      if (seen)
        AddSeenProduct<Layout::row_major>(next - j, columns, depth, {left + at, kBlock}, seen + at, from, to, false);
      else
        AddProduct<Layout::row_major>(next - j, columns, depth, {left + at, kBlock}, right.From(row), to, false);
    }
    j = next;
  }
}

/// One block of queries against one tile of keys.
struct BackwardTile {
  const BackwardCall& x;
  const Head& head;
  const QueryBlock& block;
  const TilePlan& plan;
  const BackwardScratch& scratch;
  double* diagonals;              // of the tile's group, or null
  const uint8_t* seen = nullptr;  // set if NaN or infinities could leak through hidden pairs

  /// Adds to dV, dK, dkey_bias and the diagonals, and to dQ in scratch.group or scratch.columns. Returns its part of
  /// dscale (distance forms).
  HWY_NOINLINE double Run(const Dropper& dropper) {
    const AttentionSizes& z = head.call.sizes;
    if (MayHideSome() && !AllIsFinite()) seen = scratch.seen;
    for (int64_t p = 0; p < block.panels; ++p) {
      const int64_t j0 = plan.from[p], j1 = plan.to[p];
      if (j0 < j1) PanelGradients(x, head, block, p, j0, j1, j0 - plan.tile, dropper, seen != nullptr, scratch);
    }
    ClearRest(block, plan, scratch);
    // dV += P^T dO
    if (x.to.dv.data) {
      AddToKeys(block, plan, scratch.weights, seen, block.douts, block.right_douts, z.value_width,
                head.KeyRows(x.to.dv, plan.tile));
    }
    if (x.to.dkey_bias) AddToKeyBias();
    if (diagonals)
      AddToDiagonals(block, plan.begin, plan.end, scratch.dscores + (plan.begin - plan.tile) * kBlock, z.queries,
                     diagonals);
    if (head.call.form != ScoreForm::dot) return AddDistances();
    // dK += dS^T Q, scaled once at the end
    if (x.to.dk.data) {
      AddToKeys(block, plan, scratch.dscores, seen, block.queries, block.right_queries, z.width,
                head.KeyRows(x.to.dk, plan.tile));
    }
    if (x.to.dq.data || x.to.dscale) AddToQueries();
    return 0;
  }

 private:
  int64_t Keys(int64_t p) const { return plan.to[p] - plan.from[p]; }
  int64_t At(int64_t p) const { return (plan.from[p] - plan.tile) * kBlock + p * kPanel; }

  HWY_INLINE bool MayHideSome() const {
    for (int64_t p = 0; p < block.panels; ++p) {
      if (Keys(p) > 0 && MayHide(head.call, block.panel[p], plan.from[p], plan.to[p])) return true;
    }
    return false;
  }
  HWY_INLINE bool AllIsFinite() const {
    const AttentionSizes& z = head.call.sizes;
    const int64_t count = plan.end - plan.begin;
    return AllFinite(head.KeyRows(x.k, plan.begin), count, z.width) &&
           AllFinite(head.KeyRows(x.v, plan.begin), count, z.value_width) &&
           AllFinite(block.queries, block.count, z.width) && AllFinite(block.douts, block.count, z.value_width);
  }

  HWY_INLINE void AddToKeyBias() const {
    const Floats d;
    const AttentionSizes& z = head.call.sizes;
    float* to = x.to.dkey_bias + (head.b * z.key_heads + head.hk) * z.keys + plan.tile;
    for (int64_t j = plan.begin - plan.tile; j < plan.end - plan.tile; ++j) {
      Vec sum = hn::Zero(d);
      for (int64_t r = 0; r < block.count; r += kLanes)
        sum = hn::Add(sum, hn::Load(d, scratch.dscores + j * kBlock + r));
      to[j] += hn::GetLane(hn::SumOfLanes(d, sum));
    }
  }

  // dQ += dS K, scaled at the end
  HWY_INLINE void AddToQueries() const {
    const int64_t width = head.call.sizes.width;
    const ConstRows keys = head.KeyRows(x.k, plan.begin);
    const Right right = PackRight(keys, plan.end - plan.begin, width, block.panels > 1, scratch.keys);
    for (int64_t p = 0; p < block.panels; ++p) {
      if (Keys(p) == 0) continue;
      const ConstRows dscores{scratch.dscores + At(p), kBlock};
      const Rows to{scratch.group + p * kPanel * scratch.padded, scratch.padded};
      const int64_t rows = block.panel[p].count, skip = plan.from[p] - plan.begin;
      const ConstRows from{keys.data + skip * keys.stride, keys.stride};
      if (seen)
        AddSeenProduct<Layout::column_major>(rows, width, Keys(p), dscores, seen + At(p), from, to, false);
      else
        AddProduct<Layout::column_major>(rows, Whole(width), Keys(p), dscores, right.From(skip), to, false);
    }
  }

  HWY_INLINE double AddDistances() const {
    const int64_t width = head.call.sizes.width;
    double dscale = 0;
    for (int64_t p = 0; p < block.panels; ++p) {
      if (Keys(p) == 0) continue;
      const Panel& panel = block.panel[p];
      float* dscores = scratch.dscores + At(p);
      dscale += PullsOfScores(head, panel, Keys(p), scratch.squares + At(p), seen ? seen + At(p) : nullptr, dscores);
      const Rows dk = x.to.dk.data ? head.KeyRows(x.to.dk, plan.from[p]) : Rows{nullptr, 0};
      AddDifferences(panel, Keys(p), width, scratch.packed + p * kPanel * width, head.KeyRows(x.k, plan.from[p]),
                     dscores, seen ? seen + At(p) : nullptr, scratch.columns + p * kPanel * width, dk);
    }
    return dscale;
  }
};

// All tiles of one group for one block: scratch.group <- this group's dQ, not yet scaled. Returns its part of dscale
// (distance forms).
HWY_INLINE double BackwardGroup(const BackwardCall& x, const Head& head, const QueryBlock& block, int64_t group,
                                const Dropper& dropper, const BackwardScratch& scratch, double* diagonals) {
  const AttentionSizes& z = head.call.sizes;
  double dscale = 0;
  std::fill_n(scratch.group, block.count * scratch.padded, 0.f);
  if (scratch.columns) std::fill_n(scratch.columns, block.panels * kPanel * z.width, 0.f);
  const int64_t first = block.lo / kTile;
  for (int64_t t = first + (group - first % kGroups + kGroups) % kGroups; t * kTile < block.hi; t += kGroups) {
    TilePlan plan;
    if (plan.Set(block, z.keys, t * kTile))
      dscale += BackwardTile{x, head, block, plan, scratch, diagonals}.Run(dropper);
  }
  if (scratch.columns) {
    for (int64_t r = 0; r < block.count; ++r) {
      const float* column = scratch.columns + r / kPanel * kPanel * z.width + r % kPanel;
      for (int64_t c = 0; c < z.width; ++c) scratch.group[r * scratch.padded + c] = column[c * kPanel];
    }
  }
  return dscale;
}

// dq <- factor * dQ for `count` rows (stride padded); for dot scores dscale = sum of q . dQ.
HWY_INLINE double WriteQueries(const BackwardCall& x, const Head& head, int64_t first, int64_t count,
                               const float* total, int64_t padded) {
  const int64_t width = head.call.sizes.width;
  const bool dot = head.call.form == ScoreForm::dot;
  const Vec factor = hn::Set(Floats(), dot ? head.call.scale : 1.f);
  double dscale = 0;
  for (int64_t r = 0; r < count; ++r) {
    if (x.to.dq.data) {
      float* dq = head.QueryRows(x.to.dq, first + r).data;
      Map(total + r * padded, dq, width, [factor](Floats, Vec y) HWY_ATTR { return hn::Mul(y, factor); });
    }
    if (!x.to.dscale || !dot) continue;
    const float* q = head.QueryRows(x.q, first + r).data;
    for (int64_t c = 0; c < width; ++c) {
      const float part = total[r * padded + c];
      if (part != 0) dscale += static_cast<double>(q[c]) * static_cast<double>(part);
    }
  }
  return dscale;
}

// Zeroes (for the first query head of a key head) or scales (for the last one) the rows of dK, dV and dkey_bias in the
// tiles of the groups.
HWY_INLINE void OpenKeys(const BackwardCall& x, const Head& head, GroupRange groups) {
  const AttentionSizes& z = head.call.sizes;
  for (int64_t j = 0; j < z.keys; ++j) {
    const int64_t group = j / kTile % kGroups;
    if (group < groups.first || group >= groups.last) continue;
    if (x.to.dk.data) std::fill_n(head.KeyRows(x.to.dk, j).data, z.width, 0.f);
    if (x.to.dv.data) std::fill_n(head.KeyRows(x.to.dv, j).data, z.value_width, 0.f);
    if (x.to.dkey_bias) x.to.dkey_bias[(head.b * z.key_heads + head.hk) * z.keys + j] = 0;
  }
}
HWY_INLINE void CloseKeys(const BackwardCall& x, const Head& head, GroupRange groups) {
  const AttentionSizes& z = head.call.sizes;
  if (!x.to.dk.data || head.call.form != ScoreForm::dot) return;
  const Vec factor = hn::Set(Floats(), head.call.scale);
  for (int64_t j = 0; j < z.keys; ++j) {
    const int64_t group = j / kTile % kGroups;
    if (group < groups.first || group >= groups.last) continue;
    float* row = head.KeyRows(x.to.dk, j).data;
    Map(row, row, z.width, [factor](Floats, Vec y) HWY_ATTR { return hn::Mul(y, factor); });
  }
}

// The tiles of `groups` of one query head.
HWY_NOINLINE void BackwardHead(const BackwardCall& x, const Head& head, GroupRange groups, const HeadParts& parts) {
  const AttentionSizes& z = head.call.sizes;
  const int64_t repeat = z.heads / z.key_heads, diagonals = z.queries + z.keys - 1;
  if (parts.diagonals)
    std::fill(parts.diagonals + groups.first * diagonals, parts.diagonals + groups.last * diagonals, 0.0);
  BackwardScratch scratch(head.call);
  QueryBlock block;
  const Dropper dropper(head.call.dropout, z, head.b, head.h);
  if (head.h % repeat == 0) OpenKeys(x, head, groups);
  for (int64_t i0 = 0; i0 < z.queries; i0 += kBlock) {
    const int64_t i1 = std::min(i0 + kBlock, z.queries);
    block.Set(x, head, i0, i1, scratch);
    const int64_t size = block.count * scratch.padded;
    for (int64_t g = groups.first; g < groups.last; ++g) {
      const double part = BackwardGroup(x, head, block, g, dropper, scratch,
                                        parts.diagonals ? parts.diagonals + g * diagonals : nullptr);
      if (parts.dscale) parts.dscale[i0 / kBlock * kGroups + g] = part;
      float* sum = parts.dq ? parts.dq + (g * z.queries + i0) * scratch.padded : scratch.total;
      if (parts.dq || g == groups.first)
        std::copy_n(scratch.group, size, sum);
      else
        Map(sum, scratch.group, sum, size, [](Floats, Vec a, Vec b) HWY_ATTR { return hn::Add(a, b); });
    }
    if (parts.dq) continue;
    const double part = WriteQueries(x, head, i0, block.count, scratch.total, scratch.padded);
    if (parts.dscale) parts.dscale[i0 / kBlock * kGroups] += part;
  }
  if (head.h % repeat == repeat - 1) CloseKeys(x, head, groups);
}

// dQ of a block from the groups' partial sums, added to the first group's in order.
HWY_INLINE double MergeGroups(const BackwardCall& x, const Head& head, int64_t i0, int64_t i1, float* partial) {
  const AttentionSizes& z = head.call.sizes;
  const int64_t padded = Padded(z.width), size = (i1 - i0) * padded;
  float* sum = partial + i0 * padded;
  for (int64_t g = 1; g < kGroups; ++g) {
    Map(sum, sum + g * z.queries * padded, sum, size, [](Floats, Vec a, Vec b) HWY_ATTR { return hn::Add(a, b); });
  }
  return WriteQueries(x, head, i0, i1 - i0, sum, padded);
}

// dbias of one panel of rows: dS, summed over the batch rows and heads that share the bias, in order.
HWY_NOINLINE void BiasRows(const BackwardCall& x, int64_t slice_b, int64_t slice_h, int64_t i0, int64_t i1) {
  const AttentionSizes& z = x.call.sizes;
  const AttentionMask& mask = x.call.mask;
  const int64_t b0 = mask.bias_batch ? slice_b : 0, b1 = mask.bias_batch ? slice_b + 1 : z.batch;
  const int64_t h0 = mask.bias_head ? slice_h : 0, h1 = mask.bias_head ? slice_h + 1 : z.heads;
  float* to = x.to.dbias + slice_b * mask.bias_batch + slice_h * mask.bias_head;
  std::fill(to + i0 * z.keys, to + i1 * z.keys, 0.f);
  BackwardScratch scratch(x.call);
  QueryBlock block;
  for (int64_t b = b0; b < b1; ++b) {
    for (int64_t h = h0; h < h1; ++h) {
      const Head head(x.call, b, h);
      const Dropper dropper(x.call.dropout, z, b, h);
      block.Set(x, head, i0, i1, scratch);
      for (int64_t tile = block.lo / kTile * kTile; tile < block.hi; tile += kTile) {
        const int64_t j0 = std::max(block.lo, tile), j1 = std::min(block.hi, tile + kTile);
        PanelGradients(x, head, block, 0, j0, j1, 0, dropper, true, scratch);
        for (int64_t i = i0; i < i1; ++i) {
          for (int64_t j = j0; j < j1; ++j) to[i * z.keys + j] += scratch.dscores[(j - j0) * kBlock + i - i0];
        }
      }
    }
  }
}

void Backward(const BackwardCall& x) {
  const AttentionSizes& z = x.call.sizes;
  const AttentionMask& mask = x.call.mask;
  const int64_t blocks = (z.queries + kBlock - 1) / kBlock, items = z.batch * z.key_heads,
                repeat = z.heads / z.key_heads;
  const double head_ns = 3 * PairCost(z, static_cast<double>(z.queries) * static_cast<double>(z.keys));
  Borrowed<double> kept;
  if (x.to.dscale) kept->assign(static_cast<size_t>(z.batch * z.heads * blocks * kGroups), 0.0);
  double* const dscale = x.to.dscale ? kept->data() : nullptr;
  const auto dscale_of = [&](int64_t bh) { return dscale ? dscale + bh * blocks * kGroups : nullptr; };
  DiagonalSums diagonals(x);
  if (items < 2 * threads() && head_ns > 1e6) {  // few heads: the groups of one head run in parallel
    const int64_t padded = Padded(z.width);
    const std::unique_ptr<float[]> partial(new float[static_cast<size_t>(kGroups * z.queries * padded)]);
    Borrowed<double> groups;
    for (int64_t bh = 0; bh < z.batch * z.heads; ++bh) {
      const Head head(x.call, bh / z.heads, bh % z.heads);
      const HeadParts parts{partial.get(), dscale_of(bh), diagonals.OfGroups(*groups)};
      parallel_for(kGroups, head_ns, [&](int64_t g) { BackwardHead(x, head, {g, g + 1}, parts); });
      diagonals.Merge(bh, parts.diagonals);
      parallel_for(blocks, static_cast<double>(z.queries * padded), [&](int64_t block) {
        const double part =
            MergeGroups(x, head, block * kBlock, std::min((block + 1) * kBlock, z.queries), partial.get());
        if (parts.dscale) parts.dscale[block * kGroups] += part;
      });
    }
  } else {
    parallel_for(items, head_ns * static_cast<double>(z.batch * z.heads), [&](int64_t item) {
      Borrowed<double> groups;
      for (int64_t r = 0; r < repeat; ++r) {
        const int64_t h = item % z.key_heads * repeat + r, b = item / z.key_heads;
        const HeadParts parts{nullptr, dscale_of(b * z.heads + h), diagonals.OfGroups(*groups)};
        BackwardHead(x, Head(x.call, b, h), {0, kGroups}, parts);
        diagonals.Merge(b * z.heads + h, parts.diagonals);
      }
    });
  }
  if (x.to.dscale) {
    *x.to.dscale = 0;
    for (const double part : *kept) *x.to.dscale += part;
  }
  diagonals.Write();
  if (!x.to.dbias || !mask.bias) return;
  const int64_t panels = (z.queries + kPanel - 1) / kPanel, slice_heads = mask.bias_head ? z.heads : 1;
  const int64_t slices = (mask.bias_batch ? z.batch : 1) * slice_heads;
  parallel_for(slices * panels, head_ns * static_cast<double>(z.batch * z.heads), [&](int64_t item) {
    const int64_t slice = item / panels, i0 = FromBothEnds(item % panels, panels) * kPanel;
    BiasRows(x, slice / slice_heads, slice % slice_heads, i0, std::min(i0 + kPanel, z.queries));
  });
}

}  // namespace attn
}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
