// Scores of a panel of queries against a run of keys, in units of log 2: the form, the biases, the mask.
#if defined(QKV_KERNELS_ATTENTION_SCORE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_ATTENTION_SCORE_INL_H_
#undef QKV_KERNELS_ATTENTION_SCORE_INL_H_
#else
#define QKV_KERNELS_ATTENTION_SCORE_INL_H_
#endif

#include "qkv/kernels/attention.h"
#include "qkv/kernels/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace attn {

/// The heads of one (batch row, query head), and where its masks start.
struct Head {
  const AttentionCall& call;
  int64_t b, h, hk;

  Head(const AttentionCall& c, int64_t batch, int64_t head)
      : call(c), b(batch), h(head), hk(head / (c.sizes.heads / c.sizes.key_heads)) {}
  ConstRows QueryRows(const ConstHeads& x, int64_t i) const {
    return {x.data + b * x.stride.batch + h * x.stride.head + i * x.stride.row, x.stride.row};
  }
  Rows QueryRows(const Heads& x, int64_t i) const {
    return {x.data + b * x.stride.batch + h * x.stride.head + i * x.stride.row, x.stride.row};
  }
  ConstRows KeyRows(const ConstHeads& x, int64_t j) const {
    return {x.data + b * x.stride.batch + hk * x.stride.head + j * x.stride.row, x.stride.row};
  }
  Rows KeyRows(const Heads& x, int64_t j) const {
    return {x.data + b * x.stride.batch + hk * x.stride.head + j * x.stride.row, x.stride.row};
  }
};

/// Keys [begin, end).
struct KeyRange {
  int64_t begin, end;

  int64_t count() const { return end - begin; }
};

/// [lo, hi) clipped to the tile [tile, tile_end), in whole chunks: a sum does not depend on other rows.
HWY_INLINE KeyRange WholeChunks(int64_t lo, int64_t hi, int64_t tile, int64_t tile_end) {
  const int64_t from = std::max(lo, tile), to = std::min(hi, tile_end);
  if (from >= to) return {tile, tile};
  return {tile + (from - tile) / kChunk * kChunk, std::min(tile + RoundUp(to - tile, kChunk), tile_end)};
}

/// Up to kPanel query rows and the keys they may see: row `lane` sees [begin, end), all rows see [all_begin, all_end),
/// some row sees [lo, hi).
struct Panel {
  int64_t first, count, vectors;
  int64_t lo, hi, all_begin, all_end;
  HWY_ALIGN int32_t begin[kPanel], end[kPanel];

  HWY_INLINE void Set(const Head& head, int64_t first_row, int64_t rows) {
    const AttentionMask& mask = head.call.mask;
    const auto keys = static_cast<int32_t>(head.call.sizes.keys);
    first = first_row;
    count = rows;
    vectors = (rows + kLanes - 1) / kLanes;
    if (!mask.begin && !mask.end) {
      lo = all_begin = 0;
      hi = all_end = keys;
      return;
    }
    lo = all_end = keys;
    hi = all_begin = 0;
    const int64_t offset = head.b * mask.interval_batch + first_row;
    for (int64_t r = 0; r < vectors * kLanes; ++r) {
      begin[r] = r < rows && mask.begin ? std::max(mask.begin[offset + r], 0) : 0;
      end[r] = r >= rows ? 0 : mask.end ? std::min(mask.end[offset + r], keys) : keys;
      if (r >= rows) continue;
      if (begin[r] < end[r]) {
        lo = std::min<int64_t>(lo, begin[r]);
        hi = std::max<int64_t>(hi, end[r]);
      }
      all_begin = std::max<int64_t>(all_begin, begin[r]);
      all_end = std::min<int64_t>(all_end, end[r]);
    }
  }

  /// Where the last of the rows of one vector ends.
  HWY_INLINE int64_t EndOf(int64_t vector) const {
    return *std::max_element(end + vector * kLanes, end + (vector + 1) * kLanes);
  }

  /// The keys of a range that any of the rows [row, row + rows) may see.
  HWY_INLINE KeyRange SeenBy(int64_t row, int64_t rows, KeyRange keys) const {
    const int64_t from = std::clamp<int64_t>(*std::min_element(begin + row, begin + row + rows), keys.begin, keys.end);
    return {from, std::clamp<int64_t>(*std::max_element(end + row, end + row + rows), from, keys.end)};
  }

  /// Whether the intervals of the rows may differ in [j0, j1).
  bool Differ(int64_t j0, int64_t j1) const { return j0 < all_begin || j1 > all_end; }
};

/// Whether any key of [j0, j1) may be hidden from any row of the panel.
HWY_INLINE bool MayHide(const AttentionCall& call, const Panel& panel, int64_t j0, int64_t j1) {
  return panel.Differ(j0, j1) || call.mask.keep || call.mask.bias || call.mask.key_bias || call.mask.relative ||
         (call.form != ScoreForm::dot && call.form != ScoreForm::gaussian);
}

/// A vector of scores of a distance form from r2 = |q - k|^2, through 1 - u or 1 - u^2 for the compact kernels.
HWY_INLINE Vec DistanceScore(Floats d, ScoreForm form, float scale, Vec r2) {
  if (form == ScoreForm::gaussian) {  // a key equal to the query has score 0 even with a width near 0
    const float steepness = std::min(0.5f * scale * scale * kLog2E, std::numeric_limits<float>::max());
    return hn::Mul(r2, hn::Set(d, -steepness));
  }
  const Vec u = hn::Mul(hn::Set(d, scale), hn::Sqrt(r2)), one = hn::Set(d, 1.f), zero = hn::Zero(d);
  if (form == ScoreForm::boxcar) return hn::IfThenElse(hn::Gt(u, one), hn::Set(d, -kInfinity), hn::Mul(u, zero));
  const Vec rest = form == ScoreForm::triangular ? hn::Sub(one, u) : hn::NegMulAdd(u, u, one);
  return hn::Mul(Log(d, AtLeast(zero, rest)), hn::Set(d, kLog2E));
}

/// score + bias in one lane: a bias of -inf masks, even if the score is NaN.
HWY_INLINE void AddBias(float bias, float& score) { score = bias == -kInfinity ? -kInfinity : score + bias * kLog2E; }

// score += relative bias. A panel's rows cross the diagonals backwards: those of [j0, j1) are reversed once, and then
// the lanes of key j are the vectors at turned + j1 - 1 - j.
HWY_NOINLINE void AddRelative(const Head& head, const Panel& panel, int64_t j0, int64_t j1, Rows s) {
  const Floats d;
  const AttentionMask& mask = head.call.mask;
  const float* last = mask.relative + head.b * mask.relative_batch + head.h * mask.relative_head +
                      head.call.sizes.queries - 1 + j1 - 1 - panel.first;
  HWY_ALIGN float turned[kTile + kPanel];
  const int64_t lanes = panel.vectors * kLanes, count = j1 - j0 - 1 + panel.count;
  for (int64_t t = 0; t < count; ++t) turned[t] = last[-t] * kLog2E;
  std::fill(turned + count, turned + j1 - j0 - 1 + lanes, 0.f);  // lanes without a row
  const Vec hidden = hn::Set(d, -kInfinity);
  for (int64_t j = j0; j < j1; ++j) {
    for (int64_t r = 0; r < lanes; r += kLanes) {
      float* at = s.data + (j - j0) * s.stride + r;
      const Vec add = hn::LoadU(d, turned + j1 - 1 - j + r);
      hn::Store(hn::IfThenElse(hn::Eq(add, hidden), hidden, hn::Add(hn::Load(d, at), add)), d, at);
    }
  }
}

// Applies the masks of one call to scores s (j1 - j0, stride), row by row: masks are contiguous along the keys, scores
// along the queries.
HWY_NOINLINE void ApplyMask(const Head& head, const Panel& panel, int64_t j0, int64_t j1, Rows s) {
  const Floats d;
  const hn::RebindToSigned<Floats> di;
  const AttentionMask& mask = head.call.mask;
  const int64_t keys = head.call.sizes.keys;
  if (mask.key_bias) {
    const float* bias = mask.key_bias + (head.b * head.call.sizes.key_heads + head.hk) * keys;
    for (int64_t j = j0; j < j1; ++j) {
      const Vec add = hn::Set(d, bias[j] * kLog2E);
      for (float *at = s.data + (j - j0) * s.stride, *end = at + panel.vectors * kLanes; at != end; at += kLanes) {
        hn::Store(bias[j] == -kInfinity ? add : hn::Add(hn::Load(d, at), add), d, at);
      }
    }
  }
  if (mask.bias) {
    const float* bias = mask.bias + head.b * mask.bias_batch + head.h * mask.bias_head + panel.first * keys;
    for (int64_t r = 0; r < panel.count; ++r, bias += keys) {
      for (int64_t j = j0; j < j1; ++j) AddBias(bias[j], s.data[(j - j0) * s.stride + r]);
    }
  }
  if (mask.relative) AddRelative(head, panel, j0, j1, s);
  if (mask.keep) {
    const uint8_t* keep = mask.keep + head.b * mask.keep_batch + head.h * mask.keep_head + panel.first * keys;
    for (int64_t r = 0; r < panel.count; ++r, keep += keys) {
      for (int64_t j = j0; j < j1; ++j) {
        if (!keep[j]) s.data[(j - j0) * s.stride + r] = -kInfinity;
      }
    }
  }
  // Keys that every row sees need no check.
  const Vec hidden = hn::Set(d, -kInfinity);
  const auto hide = [&](int64_t from, int64_t to) HWY_ATTR {
    for (int64_t j = from; j < to; ++j) {
      const auto key = hn::Set(di, static_cast<int32_t>(j));
      for (int64_t r = 0; r < panel.vectors * kLanes; r += kLanes) {
        float* at = s.data + (j - j0) * s.stride + r;
        const auto seen =
            hn::AndNot(hn::Gt(hn::Load(di, panel.begin + r), key), hn::Gt(hn::Load(di, panel.end + r), key));
        hn::Store(hn::IfThenElse(hn::RebindMask(d, seen), hn::Load(d, at), hidden), d, at);
      }
    }
  };
  const int64_t shown = std::clamp(panel.all_begin, j0, j1);
  hide(j0, shown);
  hide(std::clamp(panel.all_end, shown, j1), j1);
}

// q . k of a packed panel and keys [j0, j1). After the keys that all rows see, as under a causal mask, the first
// vectors of rows may have ended: their scores are not computed, since the mask hides them.
HWY_INLINE void DotScores(const Head& head, const Panel& panel, const float* packed, const ConstHeads& k, int64_t j0,
                          int64_t j1, Rows s, int64_t ahead) {
  const int64_t width = head.call.sizes.width;
  int64_t j = j0, first = 0;
  while (j < j1) {
    int64_t to = j1;
    if (j1 > panel.all_end && first + 1 < panel.vectors) to = std::clamp<int64_t>(panel.EndOf(first), j, j1);
    const Rows part{s.data + (j - j0) * s.stride + first * kLanes, s.stride};
    Scores<Pairing::product>(to - j, head.KeyRows(k, j), packed + first * kLanes, panel.vectors - first, width, part,
                             ahead);
    j = to;
    ++first;
  }
}

/// s (j1 - j0, stride) <- the scores of a packed panel against keys [j0, j1), times log2(e); -inf where hidden.
/// squares, unless null: |q - k|^2 of a distance form. ahead: see Scores.
HWY_INLINE void PanelScores(const Head& head, const Panel& panel, const float* packed, const ConstHeads& k, int64_t j0,
                            int64_t j1, Rows s, float* squares = nullptr, int64_t ahead = 0) {
  const AttentionCall& call = head.call;
  if (call.form == ScoreForm::dot) {
    DotScores(head, panel, packed, k, j0, j1, s, ahead);
  } else {
    const Floats d;
    Scores<Pairing::difference>(j1 - j0, head.KeyRows(k, j0), packed, panel.vectors, call.sizes.width, s);
    for (int64_t j = 0; j < j1 - j0; ++j) {
      for (int64_t r = 0; r < panel.vectors * kLanes; r += kLanes) {
        const Vec r2 = hn::Load(d, s.data + j * s.stride + r);
        if (squares) hn::Store(r2, d, squares + j * s.stride + r);
        hn::Store(DistanceScore(d, call.form, call.scale, r2), d, s.data + j * s.stride + r);
      }
    }
  }
  if (MayHide(call, panel, j0, j1)) ApplyMask(head, panel, j0, j1, s);
}

/// The factor that a query is multiplied by when it is packed.
HWY_INLINE float QueryFactor(const AttentionCall& call) {
  return call.form == ScoreForm::dot ? call.scale * kLog2E : 1.f;
}

/// Whether rows (count, width) hold no NaN and no infinity: x - x is 0 then.
HWY_INLINE bool AllFinite(ConstRows rows, int64_t count, int64_t width) {
  const Floats d;
  constexpr int kSums = 4;  // additions depend on each other, so four sums run at a time
  Vec sum[kSums] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  for (int64_t i = 0; i < count; ++i) {
    const float* row = rows.data + i * rows.stride;
    int64_t c = 0;
    for (; c + kSums * kLanes <= width; c += kSums * kLanes) {
#pragma GCC unroll 4
      for (int v = 0; v < kSums; ++v) {
        const Vec x = hn::LoadU(d, row + c + v * kLanes);
        sum[v] = hn::Add(sum[v], hn::Sub(x, x));
      }
    }
    for (; c + kLanes <= width; c += kLanes) {
      const Vec x = hn::LoadU(d, row + c);
      sum[0] = hn::Add(sum[0], hn::Sub(x, x));
    }
    for (; c < width; ++c) sum[0] = hn::Add(sum[0], hn::Set(d, row[c] - row[c]));
  }
  const Vec all = hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3]));
  return hn::AllTrue(d, hn::Eq(all, hn::Zero(d)));
}

}  // namespace attn
}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
