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
#include "qkv/kernels/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace attn {

// A row's weights so far are 2^(score - top), their sum `total`; top follows the maximum only when it is passed by more than this.
constexpr float kSlack = 8;

struct Running {
  HWY_ALIGN float top[kPanel], total[kPanel], rescale[kPanel];
};

// s (count, kPanel) <- weights relative to the running maximum of each lane. Returns whether some row's earlier sums must be rescaled.
template <int kVectors>
HWY_INLINE bool SoftmaxStep(int64_t count, float* s, Running& row) {
  const Floats d;
  Vec top[kVectors], base[kVectors], sum[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) top[v] = hn::Set(d, -kInfinity);
  for (int64_t j = 0; j < count; ++j) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) top[v] = hn::Max(hn::Load(d, s + j * kPanel + v * kLanes), top[v]);  // a NaN score leaves it
  }
  bool moved = false;
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const Vec before = hn::Load(d, row.top + v * kLanes);
    const auto passed = hn::Gt(top[v], hn::Add(before, hn::Set(d, kSlack)));
    const Vec now = hn::IfThenElse(passed, top[v], before);
    const Vec rescale = hn::IfThenElse(passed, PowerOfTwo(d, hn::Sub(before, now)), hn::Set(d, 1.f));
    moved |= !hn::AllFalse(d, passed);
    hn::Store(now, d, row.top + v * kLanes);
    hn::Store(rescale, d, row.rescale + v * kLanes);
    base[v] = hn::IfThenZeroElse(hn::Eq(now, hn::Set(d, -kInfinity)), now);  // nothing seen yet: every weight is 2^-inf
    sum[v] = hn::Zero(d);
  }
  for (int64_t j = 0; j < count; ++j) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      float* at = s + j * kPanel + v * kLanes;
      const Vec weight = PowerOfTwo(d, hn::Sub(hn::Load(d, at), base[v]));
      sum[v] = hn::Add(sum[v], weight);
      hn::Store(weight, d, at);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const Vec total = hn::Load(d, row.total + v * kLanes), rescale = hn::Load(d, row.rescale + v * kLanes);
    hn::Store(hn::MulAdd(total, rescale, sum[v]), d, row.total + v * kLanes);
  }
  return moved;
}

HWY_NOINLINE bool SoftmaxStep(int64_t vectors, int64_t count, float* s, Running& row) {
  if (vectors == 3) return SoftmaxStep<3>(count, s, row);
  return vectors == 2 ? SoftmaxStep<2>(count, s, row) : SoftmaxStep<1>(count, s, row);
}

/// seen (count, stride of s) <- whether a lane is a row of the panel and its score is not -inf, asked before the scores become weights.
HWY_NOINLINE void NoteSeen(int64_t count, ConstRows s, const Panel& panel, uint8_t* seen) {
  for (int64_t j = 0; j < count; ++j) {
    for (int64_t r = 0; r < panel.vectors * kLanes; ++r) seen[j * s.stride + r] = r < panel.count && s.data[j * s.stride + r] != -kInfinity;
  }
}

/// c[.] += a b[.]
HWY_INLINE void AddRow(float a, const float* b, float* c, int64_t columns) {
  const Vec factor = hn::Set(Floats(), a);
  Map(c, b, c, columns, [factor](Floats, Vec sum, Vec x) HWY_ATTR { return hn::MulAdd(factor, x, sum); });
}

/// AddProduct that leaves out the pairs not seen, for operands that hold NaN or infinities: same order, same bits where all is finite.
/// c (rows, columns) <- (fresh ? 0 : c) + a (rows, depth) b (depth, columns)
template <Lie kLie>
HWY_NOINLINE void AddSeenProduct(int64_t rows, int64_t columns, int64_t depth, ConstRows a, const uint8_t* seen, ConstRows b, Rows c,
                                 bool fresh) {
  for (int64_t r = 0; r < rows; ++r) {
    if (fresh) std::fill_n(c.data + r * c.stride, columns, 0.f);
    for (int64_t k = 0; k < depth; ++k) {
      const int64_t at = kLie == Lie::across ? r * a.stride + k : k * a.stride + r;
      if (seen[at]) AddRow(a.data[at], b.data + k * b.stride, c.data + r * c.stride, columns);
    }
  }
}

// Long sequences go two blocks at a time: half the traffic of keys and values through the outer caches, and the same bits.
constexpr int64_t kLongBlock = 2 * kBlock, kLongQueries = 2048;

/// All of a block's working memory.
struct ForwardScratch {
  explicit ForwardScratch(const AttentionSizes& z)
      : memory(kLongBlock * (z.width + Padded(z.value_width)) + kTile * (kPanel + Padded(z.value_width)) + kTile * kPanel / 4, 5),
        packed(memory.take(kLongBlock * z.width)), sums(memory.take(kLongBlock * Padded(z.value_width))), scores(memory.take(kTile * kPanel)),
        values(memory.take(kTile * Padded(z.value_width))), seen(reinterpret_cast<uint8_t*>(memory.take(kTile * kPanel / 4))) {}
  Scratch memory;
  float* packed;   // (panels, D, kPanel)
  float* sums;     // (kLongBlock, Dv padded): not yet divided
  float* scores;   // (kTile, kPanel)
  float* values;   // (kTile, Dv padded): a copy
  uint8_t* seen;   // (kTile, kPanel)
};

// Writes out = sums / total, lse = ln(total) + top for the rows of a panel; returns the number of rows that saw nothing.
HWY_INLINE int64_t FinishRows(const Head& head, const Panel& panel, const Running& row, const float* sums, Rows out, float* lse) {
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

// Rows [i0, i1) of one head, at most kLongBlock.
HWY_NOINLINE int64_t ForwardBlock(const Head& head, ConstHeads q, ConstHeads k, ConstHeads v, Heads out, float* lse, int64_t i0,
                                  int64_t i1) {
  const AttentionSizes& z = head.call.sizes;
  const int64_t padded = Padded(z.value_width), panels = (i1 - i0 + kPanel - 1) / kPanel;
  ForwardScratch scratch(z);
  const Dropper dropper(head.call.dropout, z, head.b, head.h);
  Panel panel[kLongBlock / kPanel];
  Running row[kLongBlock / kPanel];
  bool fresh[kLongBlock / kPanel];
  int64_t lo = z.keys, hi = 0;
  for (int64_t p = 0; p < panels; ++p) {
    const int64_t first = i0 + p * kPanel;
    panel[p].Set(head, first, std::min(kPanel, i1 - first));
    PackPanel(head.QueryRows(q, first), panel[p].count, z.width, QueryFactor(head.call), scratch.packed + p * kPanel * z.width);
    std::fill_n(row[p].top, kPanel, -kInfinity);
    std::fill_n(row[p].total, kPanel, 0.f);
    fresh[p] = true;
    lo = std::min(lo, panel[p].lo);
    hi = std::max(hi, panel[p].hi);
  }
  for (int64_t tile = lo / kTile * kTile; tile < hi; tile += kTile) {
    const int64_t first_key = std::max(lo, tile), last_key = std::min(hi, tile + kTile);
    const ConstRows values = head.KeyRows(v, first_key);
    const Right packed_values = PackRight(values, last_key - first_key, z.value_width, panels > 1, scratch.values);
    int finite = -1;  // not looked at yet
    for (int64_t p = 0; p < panels; ++p) {
      const int64_t j0 = std::max(panel[p].lo, tile), j1 = std::min(panel[p].hi, tile + kTile), count = panel[p].count;
      if (j0 >= j1) continue;
      float* s = scratch.scores;
      PanelScores(head, panel[p], scratch.packed + p * kPanel * z.width, k, j0, j1, {s, kPanel});
      if (MayHide(head.call, panel[p], j0, j1) && finite < 0) finite = AllFinite(values, last_key - first_key, z.value_width);
      if (finite == 0) NoteSeen(j1 - j0, {s, kPanel}, panel[p], scratch.seen);
      const Rows sums{scratch.sums + p * kPanel * padded, padded};
      if (SoftmaxStep(panel[p].vectors, j1 - j0, s, row[p]) && !fresh[p]) {
        for (int64_t r = 0; r < count; ++r) {
          const Vec rescale = hn::Set(Floats(), row[p].rescale[r]);
          float* sum = sums.data + r * padded;
          Map(sum, sum, padded, [rescale](Floats, Vec x) HWY_ATTR { return hn::Mul(x, rescale); });
        }
      }
      if (dropper.on()) {
        dropper.ForEach(panel[p].first, panel[p].vectors, j0, j1, [s, j0](int64_t j, int64_t lane, auto kept) HWY_ATTR {
          float* at = s + (j - j0) * kPanel + lane;
          hn::Store(hn::IfThenElseZero(kept, hn::Load(Floats(), at)), Floats(), at);
        });
      }
      if (finite == 0) {
        const ConstRows from{values.data + (j0 - first_key) * values.stride, values.stride};
        AddSeenProduct<Lie::down>(count, z.value_width, j1 - j0, {s, kPanel}, scratch.seen, from, sums, fresh[p]);
      } else {
        AddProduct<Lie::down>(count, Whole(z.value_width), j1 - j0, {s, kPanel}, packed_values.From(j0 - first_key), sums, fresh[p]);
      }
      fresh[p] = false;
    }
  }
  int64_t empty = 0;
  for (int64_t p = 0; p < panels; ++p) {
    const int64_t first = panel[p].first;
    empty += FinishRows(head, panel[p], row[p], scratch.sums + p * kPanel * padded, head.QueryRows(out, first), lse + first);
  }
  return empty;
}

/// Nanoseconds that a number of (query, key) pairs will take, roughly: for parallel_for.
HWY_INLINE double PairCost(const AttentionSizes& z, double pairs) {
  return pairs * (1 + 0.03 * static_cast<double>(z.width + z.value_width));
}

/// Block number n of `count` when early and late ones cost differently (causal masks): from both ends in turn, so that the halves of the
/// order weigh the same.
HWY_INLINE int64_t FromBothEnds(int64_t n, int64_t count) { return n % 2 ? count - 1 - n / 2 : n / 2; }

/// Items [0, count) cut into one run a worker, so that a head stays in one core's cache. A worker done with its own run takes what is
/// left of the others', so that one that wakes late or is held up keeps nobody waiting. Whose an item is must not show in the results.
class Shares {
 public:
  static constexpr int64_t kMostWorkers = 64;

  Shares(int64_t count, int64_t workers) : workers_(workers) {
    for (int64_t w = 0; w < workers; ++w) {
      runs_[w].next = count * w / workers;
      runs_[w].end = count * (w + 1) / workers;
    }
  }
  template <class Body>
  void Run(int64_t worker, const Body& body) {
    for (int64_t i = 0; i < workers_; ++i) {
      auto& [next, end] = runs_[(worker + i) % workers_];
      for (int64_t item = next++; item < end; item = next++) body(item);
    }
  }

 private:
  struct alignas(64) OneRun {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };
  int64_t workers_;
  OneRun runs_[kMostWorkers];
};

int64_t Forward(const AttentionCall& call, ConstHeads q, ConstHeads k, ConstHeads v, Heads out, float* lse) {
  const AttentionSizes& z = call.sizes;
  const int64_t rows = z.queries >= kLongQueries ? kLongBlock : kBlock;
  const int64_t blocks = (z.queries + rows - 1) / rows, heads = z.batch * z.heads;
  std::atomic<int64_t> empty{0};
  const double ns = PairCost(z, static_cast<double>(heads * z.queries) * static_cast<double>(z.keys));
  const int64_t workers = std::min({int64_t{threads()}, heads * blocks, Shares::kMostWorkers});
  Shares shares(heads * blocks, workers);
  parallel_for(workers, ns, [&](int64_t worker) {
    shares.Run(worker, [&](int64_t item) {
      const int64_t bh = item / blocks, block = FromBothEnds(item % blocks, blocks);
      const Head head(call, bh / z.heads, bh % z.heads);
      const int64_t i0 = block * rows, i1 = std::min(i0 + rows, z.queries);
      empty += ForwardBlock(head, q, k, v, out, lse + bh * z.queries, i0, i1);
    });
  });
  return empty;
}

void Weights(const AttentionCall& call, ConstHeads q, ConstHeads k, const float* lse, int64_t b, int64_t h, int64_t i, float* weights) {
  const AttentionSizes& z = call.sizes;
  const Head head(call, b, h);
  ForwardScratch scratch(z);
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
