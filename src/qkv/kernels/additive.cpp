// Additive attention (Bahdanau et al., 2015): scores w . tanh(pq + pk), softmax and context row by row, the width in
// lanes.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <vector>

#include "qkv/core/parallel.h"
#include "qkv/kernels/attention.h"
#include "qkv/kernels/borrowed.h"
#include "qkv/kernels/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/additive.cpp"
#include <hwy/foreach_target.h>

#include "qkv/kernels/attention_math-inl.h"
#include "qkv/kernels/row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace additive {

using attn::kInfinity;

HWY_INLINE float Sum(Vec x) { return hn::GetLane(hn::SumOfLanes(Floats(), x)); }

/// The inputs of the kernels: row i or j of batch row b.
struct Inputs {
  const AttentionCall& call;
  ConstHeads pq, pk;
  const float* w;
  ConstHeads v;

  const float* Query(int64_t b, int64_t i) const { return pq.data + b * pq.stride.batch + i * pq.stride.row; }
  const float* Key(int64_t b, int64_t j) const { return pk.data + b * pk.stride.batch + j * pk.stride.row; }
  const float* Value(int64_t b, int64_t j) const { return v.data + b * v.stride.batch + j * v.stride.row; }
};

/// The keys that row i of batch row b may see, before keep and bias.
struct Interval {
  int64_t begin, end;
  Interval(const AttentionCall& call, int64_t b, int64_t i) : begin(0), end(call.sizes.keys) {
    const int64_t at = b * call.mask.interval_batch + i;
    if (call.mask.begin) begin = std::max<int64_t>(begin, call.mask.begin[at]);
    if (call.mask.end) end = std::min<int64_t>(end, call.mask.end[at]);
  }
};

// Adds biases to scores in natural units, -inf where hidden.
HWY_INLINE float MaskedScore(const AttentionCall& call, int64_t b, int64_t i, int64_t j, float score) {
  const AttentionMask& m = call.mask;
  const int64_t keys = call.sizes.keys;
  if (m.keep && !m.keep[b * m.keep_batch + i * keys + j]) return -kInfinity;
  const float bias = m.bias ? m.bias[b * m.bias_batch + i * keys + j] : 0.f;
  const float key_bias = m.key_bias ? m.key_bias[b * keys + j] : 0.f;
  const float relative = m.relative ? m.relative[b * m.relative_batch + j - i + call.sizes.queries - 1] : 0.f;
  if (bias == -kInfinity || key_bias == -kInfinity || relative == -kInfinity) return -kInfinity;
  return score + bias + key_bias + relative;
}

// scores[j - begin] of row i, in units of log 2; -inf where hidden.
HWY_INLINE void RowScores(const Inputs& x, int64_t b, int64_t i, Interval seen, float* scores) {
  const Floats d;
  const int64_t width = x.call.sizes.width;
  const float* query = x.Query(b, i);
  for (int64_t j = seen.begin; j < seen.end; ++j) {
    const float* key = x.Key(b, j);
    Vec sum = hn::Zero(d);
    ForVectors(width, [&](int64_t c, int64_t count) HWY_ATTR {
      sum = hn::MulAdd(LoadUpTo(d, x.w + c, count),
                       FastTanh(d, hn::Add(LoadUpTo(d, query + c, count), LoadUpTo(d, key + c, count))), sum);
    });
    scores[j - seen.begin] = MaskedScore(x.call, b, i, j, Sum(sum)) * kLog2E;
  }
}

// Whether dropout keeps the weight of key j; draws the words for four keys at a time.
class RowDropout {
 public:
  RowDropout(const AttentionDropout& dropout, int64_t b, int64_t i)
      : dropout_(dropout),
        row_(dropout.first_row + static_cast<uint32_t>(b)),
        query_(static_cast<uint32_t>(i)),
        threshold_(static_cast<double>(dropout.rate) * 0x1p32),
        factor_(dropout.rate <= 0   ? 1.f
                : dropout.rate >= 1 ? 0.f
                                    : 1.f / (1.f - dropout.rate)) {}
  /// 0 or 1 / (1 - rate).
  float Factor(int64_t j) {
    if (dropout_.rate <= 0) return 1;
    if (j / 4 != group_) {
      group_ = j / 4;
      words_ = philox({dropout_.step, row_, query_, static_cast<uint32_t>(group_)}, dropout_.key);
    }
    return static_cast<double>(words_[static_cast<size_t>(j % 4)]) >= threshold_ ? factor_ : 0.f;
  }

 private:
  const AttentionDropout& dropout_;
  uint32_t row_, query_;
  double threshold_;
  float factor_;
  int64_t group_ = -1;
  std::array<uint32_t, 4> words_{};
};

// One row: out and lse. Returns whether the row saw a key.
HWY_INLINE bool ForwardRow(const Inputs& x, int64_t b, int64_t i, float* out, float* lse, float* scores) {
  const Floats d;
  const int64_t value_width = x.call.sizes.value_width;
  const Interval seen(x.call, b, i);
  const int64_t count = std::max<int64_t>(0, seen.end - seen.begin);
  std::fill_n(out, value_width, 0.f);
  RowScores(x, b, i, seen, scores);
  float top = -kInfinity;
  bool any = false;
  for (int64_t j = 0; j < count; ++j) {
    top = scores[j] > top ? scores[j] : top;
    any |= scores[j] != -kInfinity;
  }
  *lse = -kInfinity;
  if (!any) return false;
  const float base = top == -kInfinity ? 0.f : top;  // only NaN scores seen
  float sum = 0;
  RowDropout dropout(x.call.dropout, b, i);
  for (int64_t first = 0; first < count; first += kLanes) {
    const int64_t some = std::min(kLanes, count - first);
    HWY_ALIGN float weights[kLanes];
    hn::Store(PowerOfTwo(d, hn::Sub(LoadUpTo(d, scores + first, some), hn::Set(d, base))), d, weights);
    for (int64_t r = 0; r < some; ++r) {
      if (scores[first + r] == -kInfinity) continue;  // hidden: its value is not even read
      sum += weights[r];
      const Vec weight = hn::Set(d, weights[r] * dropout.Factor(seen.begin + first + r));
      const float* value = x.Value(b, seen.begin + first + r);
      ForVectors(value_width, [&](int64_t c, int64_t n) HWY_ATTR {
        StoreUpTo(hn::MulAdd(weight, LoadUpTo(d, value + c, n), LoadUpTo(d, out + c, n)), d, out + c, n);
      });
    }
  }
  const Vec share = hn::Set(d, 1 / sum);
  Map(out, out, value_width, [share](Floats, Vec y) HWY_ATTR { return hn::Mul(y, share); });
  *lse = attn::LogSum(base, sum);
  return true;
}

/// Rough nanoseconds for all pairs: a tanh takes half a nanosecond.
HWY_INLINE double Cost(const AttentionSizes& z) {
  return static_cast<double>(z.batch * z.queries) * static_cast<double>(z.keys) *
         (4 + 0.6 * static_cast<double>(z.width));
}

int64_t Forward(const Inputs& x, Heads out, float* lse) {
  const AttentionSizes& z = x.call.sizes;
  constexpr int64_t kRows = 8;
  std::atomic<int64_t> empty{0};
  parallel_ranges(z.batch * z.queries, kRows, Cost(z), [&](int64_t first, int64_t last) {
    Scratch memory(z.keys, 1);
    float* scores = memory.take(z.keys);
    int64_t found = 0;
    for (int64_t row = first; row < last; ++row) {
      const int64_t b = row / z.queries, i = row % z.queries;
      found += !ForwardRow(x, b, i, out.data + b * out.stride.batch + i * out.stride.row, lse + row, scores);
    }
    if (found > 0) empty.fetch_add(found, std::memory_order_relaxed);
  });
  return empty;
}

HWY_INLINE Vec Weight(Vec score, float lse) {
  return PowerOfTwo(Floats(), hn::Sub(score, hn::Set(Floats(), attn::ToLog2(lse))));
}

void Weights(const Inputs& x, const float* lse, int64_t b, int64_t i, float* weights) {
  const AttentionSizes& z = x.call.sizes;
  std::fill_n(weights, z.keys, 0.f);
  const float row_lse = lse[b * z.queries + i];
  const Interval seen(x.call, b, i);
  if (row_lse == -kInfinity || seen.begin >= seen.end) return;
  float* at = weights + seen.begin;
  RowScores(x, b, i, seen, at);
  attn::WeightsOfScores(at, seen.end - seen.begin, attn::ToLog2(row_lse));
}

/// What backward reads in addition, and where it writes.
struct Outputs {
  ConstHeads out;
  const float* lse;
  ConstHeads dout;
  const AdditiveGradients& to;
};

/// Sums over the rows of one batch row: (D), and (Lq + Lk - 1) or null.
struct RowSums {
  float* dw;
  double* diagonals;
};

// Adds the contribution of row i to dpk, dv, dw and the diagonals; writes dpq and dbias. dS = P * (dP - delta), and
// with t = tanh(pq + pk): dw += dS t, dpq += dS w (1 - t^2), dpk_j += the same.
HWY_INLINE void BackwardRow(const Inputs& x, const Outputs& y, int64_t b, int64_t i, float* scores, RowSums sums,
                            float* dquery) {
  const Floats d;
  const AttentionSizes& z = x.call.sizes;
  const Interval seen(x.call, b, i);
  const float row_lse = y.lse[b * z.queries + i];
  float* dbias = y.to.dbias ? y.to.dbias + b * x.call.mask.bias_batch + i * z.keys : nullptr;
  std::fill_n(dquery, z.width, 0.f);
  if (row_lse == -kInfinity || seen.begin >= seen.end) return;
  const float *query = x.Query(b, i), *out = y.out.data + b * y.out.stride.batch + i * y.out.stride.row;
  const float* dout = y.dout.data + b * y.dout.stride.batch + i * y.dout.stride.row;
  RowScores(x, b, i, seen, scores);
  Vec dot = hn::Zero(d);
  ForVectors(z.value_width, [&](int64_t c, int64_t n)
                                HWY_ATTR { dot = hn::MulAdd(LoadUpTo(d, out + c, n), LoadUpTo(d, dout + c, n), dot); });
  const float delta = Sum(dot);
  RowDropout dropout(x.call.dropout, b, i);
  for (int64_t j = seen.begin; j < seen.end; ++j) {
    const float score = scores[j - seen.begin];
    if (score == -kInfinity) continue;
    const float weight = hn::GetLane(Weight(hn::Set(d, score), row_lse)), factor = dropout.Factor(j);
    const float *value = x.Value(b, j), *key = x.Key(b, j);
    float* dvalue = y.to.dv.data ? y.to.dv.data + b * y.to.dv.stride.batch + j * y.to.dv.stride.row : nullptr;
    float* dkey = y.to.dpk.data ? y.to.dpk.data + b * y.to.dpk.stride.batch + j * y.to.dpk.stride.row : nullptr;
    const Vec dropped = hn::Set(d, weight * factor);
    Vec dweight = hn::Zero(d);
    ForVectors(z.value_width, [&](int64_t c, int64_t n) HWY_ATTR {
      const Vec g = LoadUpTo(d, dout + c, n);
      dweight = hn::MulAdd(g, LoadUpTo(d, value + c, n), dweight);
      if (dvalue) StoreUpTo(hn::MulAdd(dropped, g, LoadUpTo(d, dvalue + c, n)), d, dvalue + c, n);
    });
    const float dscore = weight * (Sum(dweight) * factor - delta);
    if (dbias) dbias[j] += dscore;
    if (sums.diagonals) sums.diagonals[j - i + z.queries - 1] += static_cast<double>(dscore);
    const Vec ds = hn::Set(d, dscore), one = hn::Set(d, 1.f);
    ForVectors(z.width, [&](int64_t c, int64_t n) HWY_ATTR {
      const Vec t = FastTanh(d, hn::Add(LoadUpTo(d, query + c, n), LoadUpTo(d, key + c, n)));
      StoreUpTo(hn::MulAdd(ds, t, LoadUpTo(d, sums.dw + c, n)), d, sums.dw + c, n);
      const Vec flow = hn::Mul(hn::Mul(ds, LoadUpTo(d, x.w + c, n)), hn::NegMulAdd(t, t, one));
      StoreUpTo(hn::Add(LoadUpTo(d, dquery + c, n), flow), d, dquery + c, n);
      if (dkey) StoreUpTo(hn::Add(LoadUpTo(d, dkey + c, n), flow), d, dkey + c, n);
    });
  }
}

// drelative from the sums of the batch rows (B, Lq + Lk - 1), in order.
HWY_INLINE void WriteRelative(const AttentionSizes& z, int64_t relative_batch, const double* sums, float* drelative) {
  const int64_t count = z.queries + z.keys - 1, slices = relative_batch ? z.batch : 1;
  for (int64_t at = 0; at < slices * count; ++at) {
    double sum = 0;
    for (int64_t b = at / count; b < (relative_batch ? at / count + 1 : z.batch); ++b)
      sum += sums[b * count + at % count];
    drelative[at] = static_cast<float>(sum);
  }
}

// Batch rows in parallel: each owns its dpq, dpk, dv and a row of dw_parts (B, D) and of diagonal_parts (B, Lq + Lk -
// 1). A dense bias shared by the batch is summed serially.
void Backward(const Inputs& x, const Outputs& y) {
  const AttentionSizes& z = x.call.sizes;
  Borrowed<float> kept;
  kept->assign(static_cast<size_t>(z.batch * z.width), 0.f);
  float* const dw_parts = kept->data();
  const int64_t diagonals = y.to.drelative ? z.queries + z.keys - 1 : 0;
  Borrowed<double> kept_diagonals;
  if (diagonals) kept_diagonals->assign(static_cast<size_t>(z.batch * diagonals), 0.0);
  double* const diagonal_parts = diagonals ? kept_diagonals->data() : nullptr;
  const bool shared_bias = y.to.dbias && x.call.mask.bias_batch == 0 && z.batch > 1;
  const auto zero = [](const Heads& to, int64_t b, int64_t rows, int64_t width) {
    for (int64_t j = 0; to.data && j < rows; ++j)
      std::fill_n(to.data + b * to.stride.batch + j * to.stride.row, width, 0.f);
  };
  if (y.to.dbias) {
    for (int64_t b = 0; b < (x.call.mask.bias_batch ? z.batch : 1); ++b) {
      std::fill_n(y.to.dbias + b * x.call.mask.bias_batch, z.queries * z.keys, 0.f);
    }
  }
  parallel_for(z.batch, shared_bias ? 0 : 3 * Cost(z), [&](int64_t b) {
    Scratch memory(z.keys + z.width, 2);
    float *scores = memory.take(z.keys), *unwanted = memory.take(z.width);
    zero(y.to.dpk, b, z.keys, z.width);
    zero(y.to.dv, b, z.keys, z.value_width);
    for (int64_t i = 0; i < z.queries; ++i) {
      float* dquery = y.to.dpq.data ? y.to.dpq.data + b * y.to.dpq.stride.batch + i * y.to.dpq.stride.row : unwanted;
      BackwardRow(x, y, b, i, scores, {dw_parts + b * z.width, diagonals ? diagonal_parts + b * diagonals : nullptr},
                  dquery);
    }
  });
  if (diagonals) WriteRelative(z, x.call.mask.relative_batch, diagonal_parts, y.to.drelative);
  if (!y.to.dw) return;
  std::fill_n(y.to.dw, z.width, 0.f);
  for (int64_t b = 0; b < z.batch; ++b) {
    for (int64_t c = 0; c < z.width; ++c) y.to.dw[c] += dw_parts[b * z.width + c];
  }
}

}  // namespace additive

int64_t AdditiveForward(const AttentionCall& call, ConstHeads pq, ConstHeads pk, const float* w, ConstHeads v,
                        Heads out, float* lse) {
  return additive::Forward({call, pq, pk, w, v}, out, lse);
}
void AdditiveBackward(const AttentionCall& call, ConstHeads pq, ConstHeads pk, const float* w, ConstHeads v,
                      ConstHeads out, const float* lse, ConstHeads dout, const AdditiveGradients& gradients) {
  additive::Backward({call, pq, pk, w, v}, {out, lse, dout, gradients});
}
void AdditiveWeights(const AttentionCall& call, ConstHeads pq, ConstHeads pk, const float* w, const float* lse,
                     int64_t b, int64_t i, float* weights) {
  additive::Weights({call, pq, pk, w, {}}, lse, b, i, weights);
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(AdditiveForward);
HWY_EXPORT(AdditiveBackward);
HWY_EXPORT(AdditiveWeights);

int64_t additive_forward(const AttentionCall& call, ConstHeads pq, ConstHeads pk, const float* w, ConstHeads v,
                         Heads out, float* lse) {
  return HWY_DYNAMIC_DISPATCH(AdditiveForward)(call, pq, pk, w, v, out, lse);
}

void additive_backward(const AttentionCall& call, ConstHeads pq, ConstHeads pk, const float* w, ConstHeads v,
                       ConstHeads out, const float* lse, ConstHeads dout, const AdditiveGradients& gradients) {
  HWY_DYNAMIC_DISPATCH(AdditiveBackward)(call, pq, pk, w, v, out, lse, dout, gradients);
}

void additive_weights(const AttentionCall& call, ConstHeads pq, ConstHeads pk, const float* w, const float* lse,
                      int64_t b, int64_t i, float* weights) {
  HWY_DYNAMIC_DISPATCH(AdditiveWeights)(call, pq, pk, w, lse, b, i, weights);
}

}  // namespace qkv::kernels
#endif
