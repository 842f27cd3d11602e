// Attention of a decoder, row by row. Keys go four at a time, so that their chains of additions hide each other's
// latency.
#include "qkv/kernels/decoder_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/decoder_attention.cpp"
#include <hwy/foreach_target.h>

#include "qkv/kernels/math-inl.h"
#include "qkv/kernels/row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace decoder_attention {

HWY_INLINE float Sum(Vec x) { return hn::GetLane(hn::SumOfLanes(Floats(), x)); }

// The scores of kCount keys starting at j, in units of log 2.
template <int kCount, bool kAdditive>
HWY_INLINE void Scores(const DecoderRow& row, int64_t j, float* scores) {
  const Floats d;
  const float* key = row.key + j * row.width;
  Vec sum[kCount];
  for (int k = 0; k < kCount; ++k) sum[k] = hn::Zero(d);
  ForVectors(row.width, [&](int64_t c, int64_t left) HWY_ATTR {
    const Vec q = LoadUpTo(d, row.query + c, left), w = kAdditive ? LoadUpTo(d, row.w + c, left) : q;
    for (int k = 0; k < kCount; ++k) {
      const Vec x = LoadUpTo(d, key + k * row.width + c, left);
      sum[k] = hn::MulAdd(w, kAdditive ? FastTanh(d, hn::Add(q, x)) : x, sum[k]);
    }
  });
  for (int k = 0; k < kCount; ++k) scores[j + k] = Sum(sum[k]) * (row.scale * kLog2E);
}
template <bool kAdditive>
HWY_INLINE void AllScores(const DecoderRow& row, float* scores) {
  int64_t j = 0;
  for (; j + 4 <= row.keys; j += 4) Scores<4, kAdditive>(row, j, scores);
  for (; j < row.keys; ++j) Scores<1, kAdditive>(row, j, scores);
}

// context = (weights * factors) value, keys in ascending order.
HWY_INLINE void Mix(const DecoderRow& row, const float* weights, float* context) {
  const Floats d;
  const auto share = [&](int64_t j)
                         HWY_ATTR { return hn::Set(d, row.factors ? weights[j] * row.factors[j] : weights[j]); };
  ForVectors(row.value_width, [&](int64_t c, int64_t left) HWY_ATTR {
    Vec sum = hn::Zero(d);
    for (int64_t j = 0; j < row.keys; ++j)
      sum = hn::MulAdd(share(j), LoadUpTo(d, row.value + j * row.value_width + c, left), sum);
    StoreUpTo(sum, d, context + c, left);
  });
}

void Forward(const DecoderRow& row, float* weights, float* context) {
  const Floats d;
  if (row.keys == 0) {
    std::fill_n(context, row.value_width, 0.f);
    return;
  }
  if (row.w)
    AllScores<true>(row, weights);
  else
    AllScores<false>(row, weights);
  const float most = MaxOf(weights, row.keys);
  const Vec base = hn::Set(d, most > -std::numeric_limits<float>::infinity() ? most : 0.f);
  Map(weights, weights, row.keys, [base](Floats dd, Vec s) HWY_ATTR { return PowerOfTwo(dd, hn::Sub(s, base)); });
  float sum = 0;
  for (int64_t k = 0; k < row.keys; ++k) sum += weights[k];
  const Vec share = hn::Set(d, 1 / sum);
  Map(weights, weights, row.keys, [share](Floats, Vec p) HWY_ATTR { return hn::Mul(p, share); });
  Mix(row, weights, context);
}

// With t = tanh(query + key): dw += dS t, dquery += dS w (1 - t^2), dkey += the same.
HWY_INLINE void BackAdditive(const DecoderRow& row, const float* dscores, const DecoderRowGradient& to) {
  const Floats d;
  ForVectors(row.width, [&](int64_t c, int64_t left) HWY_ATTR {
    const Vec q = LoadUpTo(d, row.query + c, left), w = LoadUpTo(d, row.w + c, left), one = hn::Set(d, 1.f);
    Vec dq = hn::Zero(d), dw = LoadUpTo(d, to.dw + c, left);
    for (int64_t j = 0; j < row.keys; ++j) {
      const Vec t = FastTanh(d, hn::Add(q, LoadUpTo(d, row.key + j * row.width + c, left))),
                ds = hn::Set(d, dscores[j]);
      dw = hn::MulAdd(ds, t, dw);
      const Vec flow = hn::Mul(hn::Mul(ds, w), hn::NegMulAdd(t, t, one));
      dq = hn::Add(dq, flow);
      float* dkey = to.dkey + j * row.width + c;
      StoreUpTo(hn::Add(LoadUpTo(d, dkey, left), flow), d, dkey, left);
    }
    StoreUpTo(dq, d, to.dquery + c, left);
    StoreUpTo(dw, d, to.dw + c, left);
  });
}

// dquery += dS key, dkey += dS query
HWY_INLINE void BackDot(const DecoderRow& row, const float* dscores, const DecoderRowGradient& to) {
  const Floats d;
  ForVectors(row.width, [&](int64_t c, int64_t left) HWY_ATTR {
    const Vec q = LoadUpTo(d, row.query + c, left);
    Vec dq = hn::Zero(d);
    for (int64_t j = 0; j < row.keys; ++j) {
      const Vec ds = hn::Set(d, dscores[j]);
      dq = hn::MulAdd(ds, LoadUpTo(d, row.key + j * row.width + c, left), dq);
      float* dkey = to.dkey + j * row.width + c;
      StoreUpTo(hn::MulAdd(ds, q, LoadUpTo(d, dkey, left)), d, dkey, left);
    }
    StoreUpTo(dq, d, to.dquery + c, left);
  });
}

// dP = factors * (dcontext . value), dS = P (dP - sum(P dP)) * scale, summed from these exact P and dP, so that dS sums
// to 0 and terms common to all keys cancel in dquery; dvalue += P factors dcontext
void Backward(const DecoderRow& row, const float* weights, const float* dcontext, const DecoderRowGradient& to,
              float* dscores) {
  const Floats d;
  const int64_t value_width = row.value_width;
  double delta = 0;
  for (int64_t j = 0; j < row.keys; ++j) {
    const float factor = row.factors ? row.factors[j] : 1.f;
    const Vec share = hn::Set(d, weights[j] * factor);
    const float* value = row.value + j * value_width;
    float* dvalue = to.dvalue + j * value_width;
    Vec dot = hn::Zero(d);
    ForVectors(value_width, [&](int64_t c, int64_t left) HWY_ATTR {
      const Vec g = LoadUpTo(d, dcontext + c, left);
      dot = hn::MulAdd(g, LoadUpTo(d, value + c, left), dot);
      StoreUpTo(hn::MulAdd(share, g, LoadUpTo(d, dvalue + c, left)), d, dvalue + c, left);
    });
    dscores[j] = Sum(dot) * factor;
    delta += static_cast<double>(weights[j]) * static_cast<double>(dscores[j]);
  }
  for (int64_t j = 0; j < row.keys; ++j)
    dscores[j] = static_cast<float>(static_cast<double>(weights[j]) * (static_cast<double>(dscores[j]) - delta) *
                                    static_cast<double>(row.scale));
  if (row.w)
    BackAdditive(row, dscores, to);
  else
    BackDot(row, dscores, to);
}

}  // namespace decoder_attention

void DecoderRowForward(const DecoderRow& row, float* weights, float* context) {
  decoder_attention::Forward(row, weights, context);
}
void DecoderRowBack(const DecoderRow& row, const float* weights, const float* dcontext, const DecoderRowGradient& to,
                    float* scratch) {
  decoder_attention::Backward(row, weights, dcontext, to, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(DecoderRowForward);
HWY_EXPORT(DecoderRowBack);

void decoder_row(const DecoderRow& row, float* weights, float* context) {
  HWY_DYNAMIC_DISPATCH(DecoderRowForward)(row, weights, context);
}
void decoder_row_back(const DecoderRow& row, const float* weights, const float* dcontext, const DecoderRowGradient& to,
                      float* scratch) {
  HWY_DYNAMIC_DISPATCH(DecoderRowBack)(row, weights, dcontext, to, scratch);
}

}  // namespace qkv::kernels
#endif
