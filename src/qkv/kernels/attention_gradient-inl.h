// Gradients of a panel of queries against a run of keys: recomputes the weights from the log-sum-exp, then the gradient
// of the scores.
#if defined(QKV_KERNELS_ATTENTION_GRADIENT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_ATTENTION_GRADIENT_INL_H_
#undef QKV_KERNELS_ATTENTION_GRADIENT_INL_H_
#else
#define QKV_KERNELS_ATTENTION_GRADIENT_INL_H_
#endif

#include "qkv/kernels/attention_forward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace attn {

/// What backward reads and writes.
struct BackwardCall {
  const AttentionCall& call;
  ConstHeads q, k, v, out;
  const float* lse;
  ConstHeads dout;
  const AttentionGradients& to;
};

/// Working memory of a block of queries in backward. Scores of a tile are (kTile, kBlock): a key's row spans all
/// panels.
struct BackwardScratch {
  explicit BackwardScratch(const AttentionCall& call)
      : memory(Size(call), 12),
        padded(Padded(call.sizes.width)),
        padded_value(Padded(call.sizes.value_width)),
        packed(memory.take(kBlock * call.sizes.width)),
        packed_dout(memory.take(kBlock * call.sizes.value_width)),
        queries(memory.take(kBlock * padded)),
        douts(memory.take(kBlock * padded_value)),
        keys(memory.take(kTile * padded)),
        weights(memory.take(kTile * kBlock)),
        dscores(memory.take(kTile * kBlock)),
        group(memory.take(kBlock * padded)),
        total(memory.take(kBlock * padded)),
        seen(reinterpret_cast<uint8_t*>(memory.take(kTile * kBlock / 4))) {
    if (call.form == ScoreForm::dot) return;
    squares = memory.take(kTile * kBlock);
    columns = memory.take(kBlock * call.sizes.width);
  }
  static int64_t Size(const AttentionCall& call) {
    const int64_t width = Padded(call.sizes.width), value = Padded(call.sizes.value_width);
    return kBlock * (5 * width + 2 * value) + kTile * width + kTile * kBlock * 4;
  }
  Scratch memory;
  int64_t padded, padded_value;
  float *packed, *packed_dout;  // (panels, D, kPanel), (panels, Dv, kPanel)
  float *queries, *douts;       // (kBlock, D padded), (kBlock, Dv padded): right operands
  float* keys;                  // (kTile, D padded): likewise
  float *weights, *dscores;     // (kTile, kBlock)
  float *group, *total;         // (kBlock, D padded): dQ of one group of tiles, and the sum of groups
  uint8_t* seen;                // (kTile, kBlock)
  float* squares = nullptr;     // (kTile, kBlock): |q - k|^2 of distance forms
  float* columns = nullptr;     // (panels, D, kPanel): dQ of distance forms
};

/// Up to kBlock query rows of one head, ready for backward.
struct QueryBlock {
  int64_t first, count, panels, lo, hi;
  Panel panel[kBlock / kPanel];
  HWY_ALIGN float lse[kBlock], delta[kBlock];  // lse in units of log 2
  ConstRows queries, douts;
  Right right_queries, right_douts;

  HWY_NOINLINE void Set(const BackwardCall& x, const Head& head, int64_t i0, int64_t i1,
                        const BackwardScratch& scratch) {
    const AttentionSizes& z = head.call.sizes;
    first = i0;
    count = i1 - i0;
    panels = (count + kPanel - 1) / kPanel;
    lo = z.keys;
    hi = 0;
    for (int64_t p = 0; p < panels; ++p) {
      const int64_t row = i0 + p * kPanel, rows = std::min(kPanel, i1 - row);
      panel[p].Set(head, row, rows);
      lo = std::min(lo, panel[p].lo);
      hi = std::max(hi, panel[p].hi);
      PackPanel(head.QueryRows(x.q, row), rows, z.width, QueryFactor(head.call), scratch.packed + p * kPanel * z.width);
      PackPanel(head.QueryRows(x.dout, row), rows, z.value_width, 1, scratch.packed_dout + p * kPanel * z.value_width);
    }
    queries = head.QueryRows(x.q, i0);
    douts = head.QueryRows(x.dout, i0);
    right_queries = PackRight(queries, count, z.width, panels > 1, scratch.queries);
    right_douts = PackRight(douts, count, z.value_width, panels > 1, scratch.douts);
    SetRows(x, head);
  }

 private:
  // delta = rowsum(dO * O): what the softmax subtracts from every dP of the row. A row that saw nothing, and a lane
  // without a row, gets the weights 2^(score - inf) = 0.
  HWY_INLINE void SetRows(const BackwardCall& x, const Head& head) {
    const Floats d;
    const AttentionSizes& z = head.call.sizes;
    const ConstRows out = head.QueryRows(x.out, first), dout = head.QueryRows(x.dout, first);
    const float* row_lse = x.lse + (head.b * z.heads + head.h) * z.queries + first;
    std::fill_n(lse, kBlock, kInfinity);
    std::fill_n(delta, kBlock, 0.f);
    for (int64_t r = 0; r < count; ++r) {
      if (row_lse[r] == -kInfinity) continue;
      lse[r] = ToLog2(row_lse[r]);
      const float *o = out.data + r * out.stride, *g = dout.data + r * dout.stride;
      Vec sum = hn::Zero(d);
      int64_t c = 0;
      for (; c + kLanes <= z.value_width; c += kLanes) sum = hn::MulAdd(hn::LoadU(d, o + c), hn::LoadU(d, g + c), sum);
      const int64_t tail = z.value_width - c;
      if (tail > 0) sum = hn::MulAdd(LoadPart(d, o + c, tail), LoadPart(d, g + c, tail), sum);
      delta[r] = hn::GetLane(hn::SumOfLanes(d, sum));
    }
  }
};

// Nothing flows through hidden pairs: their weights and dscores become 0 even if they are NaN.
HWY_NOINLINE void ClearHidden(int64_t count, int64_t lanes, int64_t stride, const uint8_t* seen, float* weights,
                              float* dscores) {
  for (int64_t j = 0; j < count; ++j) {
    for (int64_t at = j * stride; at < j * stride + lanes; ++at) {
      if (!seen[at]) weights[at] = dscores[at] = 0;
    }
  }
}

// weights <- 2^(S - lse), dscores <- weights * (dscores - delta) for `count` vectors kBlock apart.
HWY_NOINLINE void WeightsAndGradients(int64_t count, Vec lse, Vec delta, float* weights, float* dscores) {
  const Floats d;
  const auto step = [&]<int kKeys>(std::integral_constant<int, kKeys>) HWY_ATTR {
    Vec weight[kKeys];
#pragma GCC unroll 8
    for (int i = 0; i < kKeys; ++i) weight[i] = hn::Sub(hn::Load(d, weights + i * kBlock), lse);
    PowersOfTwo(d, weight);
#pragma GCC unroll 8
    for (int i = 0; i < kKeys; ++i) {
      hn::Store(weight[i], d, weights + i * kBlock);
      hn::Store(hn::Mul(weight[i], hn::Sub(hn::Load(d, dscores + i * kBlock), delta)), d, dscores + i * kBlock);
    }
    weights += kKeys * kBlock;
    dscores += kKeys * kBlock;
  };
  for (; count >= kTogether; count -= kTogether) step(std::integral_constant<int, kTogether>());
  for (; count > 0; --count) step(std::integral_constant<int, 1>());
}

/// For panel p and keys [j0, j1), the first of which is row `row` of the tile:  P <- 2^(S - lse),  dP <- dO V^T with
/// dropout, dscores <- P * (dP - delta),  weights <- P with dropout.
HWY_NOINLINE void PanelGradients(const BackwardCall& x, const Head& head, const QueryBlock& block, int64_t p,
                                 int64_t j0, int64_t j1, int64_t row, const Dropper& dropper, bool guard,
                                 const BackwardScratch& scratch) {
  const Floats d;
  const AttentionSizes& z = head.call.sizes;
  const Panel& panel = block.panel[p];
  const int64_t offset = row * kBlock + p * kPanel;
  float *weights = scratch.weights + offset, *dscores = scratch.dscores + offset;
  PanelScores(head, panel, scratch.packed + p * kPanel * z.width, x.k, j0, j1, {weights, kBlock},
              scratch.squares ? scratch.squares + offset : nullptr);
  if (guard) NoteSeen(j1 - j0, {weights, kBlock}, panel, scratch.seen + offset);
  Scores<Pairing::product>(j1 - j0, head.KeyRows(x.v, j0), scratch.packed_dout + p * kPanel * z.value_width,
                           panel.vectors, z.value_width, {dscores, kBlock});
  const float *lse = block.lse + p * kPanel, *delta = block.delta + p * kPanel;
  if (dropper.on()) {
    const Vec factor = hn::Set(d, Dropper::Factor(head.call.dropout));
    dropper.ForEach(panel.first, panel.vectors, j0, j1, [=](int64_t j, int64_t lane, auto kept) HWY_ATTR {
      const int64_t at = (j - j0) * kBlock + lane;
      const Vec weight = PowerOfTwo(d, hn::Sub(hn::Load(d, weights + at), hn::Load(d, lse + lane)));
      const Vec dweight = hn::IfThenElseZero(kept, hn::Mul(hn::Load(d, dscores + at), factor));
      hn::Store(hn::IfThenElseZero(kept, hn::Mul(weight, factor)), d, weights + at);
      hn::Store(hn::Mul(weight, hn::Sub(dweight, hn::Load(d, delta + lane))), d, dscores + at);
    });
  } else {
    for (int64_t lane = 0; lane < panel.vectors * kLanes; lane += kLanes) {
      WeightsAndGradients(j1 - j0, hn::Load(d, lse + lane), hn::Load(d, delta + lane), weights + lane, dscores + lane);
    }
  }
  if (guard) ClearHidden(j1 - j0, panel.vectors * kLanes, kBlock, scratch.seen + offset, weights, dscores);
}

/// d score / dq = slope (q - k), and d score / dscale, of a distance form; 0 where the kernel is 0 and where the slope
/// is undefined.
struct DistanceSlopes {
  Vec pull, scale;
};
HWY_INLINE DistanceSlopes SlopesOf(Floats d, ScoreForm form, float scale, Vec r2) {
  const Vec zero = hn::Zero(d), one = hn::Set(d, 1.f), s = hn::Set(d, scale);
  if (form == ScoreForm::gaussian)
    return {hn::Neg(hn::Mul(s, s)), hn::Neg(hn::Mul(s, r2))};  // score = -scale^2 r^2 / 2
  if (form == ScoreForm::boxcar) return {zero, zero};
  const Vec r = hn::Sqrt(r2), u = hn::Mul(s, r);
  if (form == ScoreForm::triangular) {  // score = ln(1 - scale r)
    const Vec rest = hn::Sub(one, u);
    const auto outside = hn::Le(rest, zero);
    const Vec by_scale = hn::IfThenZeroElse(outside, hn::Neg(hn::Div(r, rest)));
    const Vec pull = hn::IfThenZeroElse(hn::Or(outside, hn::Eq(r, zero)), hn::Neg(hn::Div(s, hn::Mul(rest, r))));
    return {pull, by_scale};
  }
  const Vec rest = hn::NegMulAdd(u, u, one);  // score = ln(1 - scale^2 r^2)
  const auto outside = hn::Le(rest, zero);
  const Vec share = hn::IfThenZeroElse(outside, hn::Div(hn::Mul(hn::Set(d, -2.f), s), rest));
  return {hn::Mul(share, s), hn::Mul(share, r2)};
}

/// x where a pair is seen, else 0 even if x is NaN. If `seen` is null, all are.
HWY_INLINE Vec WhereSeen(Floats d, Vec x, const uint8_t* seen, int64_t at) {
  if (!seen) return x;
  HWY_ALIGN float part[kLanes];
  hn::Store(x, d, part);
  for (int64_t r = 0; r < kLanes; ++r) part[r] = seen[at + r] ? part[r] : 0;
  return hn::Load(d, part);
}

/// dscores of a distance form become the pulls dS * slope: dQ and dK are sums of pull (q - k). Returns its part of
/// dscale.
HWY_NOINLINE double PullsOfScores(const Head& head, const Panel& panel, int64_t count, const float* squares,
                                  const uint8_t* seen, float* dscores) {
  const Floats d;
  double sum = 0;
  for (int64_t j = 0; j < count; ++j) {
    for (int64_t at = j * kBlock; at < j * kBlock + panel.vectors * kLanes; at += kLanes) {
      const DistanceSlopes slopes = SlopesOf(d, head.call.form, head.call.scale, hn::Load(d, squares + at));
      const Vec dscore = hn::Load(d, dscores + at), by_scale = WhereSeen(d, hn::Mul(dscore, slopes.scale), seen, at);
      sum += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, by_scale)));
      hn::Store(WhereSeen(d, hn::Mul(dscore, slopes.pull), seen, at), d, dscores + at);
    }
  }
  return sum;
}

/// columns (D, kPanel), dQ transposed, += sum over keys of pull (q - k);  dk row j -= sum over the panel's rows of the
/// same.
HWY_NOINLINE void AddDifferences(const Panel& panel, int64_t count, int64_t width, const float* packed, ConstRows keys,
                                 const float* pulls, const uint8_t* seen, float* columns, Rows dk) {
  const Floats d;
  for (int64_t j = 0; j < count; ++j) {
    for (int64_t c = 0; c < width; ++c) {
      const Vec key = hn::Set(d, keys.data[j * keys.stride + c]);
      Vec sum = hn::Zero(d);
      for (int64_t lane = 0; lane < panel.vectors * kLanes; lane += kLanes) {
        const int64_t at = j * kBlock + lane;
        const Vec pull = hn::Load(d, pulls + at), difference = hn::Sub(hn::Load(d, packed + c * kPanel + lane), key);
        const Vec e = WhereSeen(d, hn::Mul(pull, difference), seen, at);
        sum = hn::Add(sum, e);
        float* column = columns + c * kPanel + lane;
        hn::Store(hn::Add(hn::Load(d, column), e), d, column);
      }
      if (dk.data) dk.data[j * dk.stride + c] -= hn::GetLane(hn::SumOfLanes(d, sum));
    }
  }
}

}  // namespace attn
}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
