// Bias, activation and column sums; tails give the same bits as full vectors.
#include "qkv/kernels/linear.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/linear.cpp"
#include <hwy/foreach_target.h>

#include "qkv/kernels/math-inl.h"
#include "qkv/kernels/row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

template <class F>
HWY_INLINE void RowsWith(float* z, float* y, const float* bias, const Window& w, F&& f) {
  const Floats d;
  const bool keep = z != y;
  for (int64_t i = 0; i < w.rows; ++i, z += w.stride, y += w.stride) {
    ForVectors(w.columns, [&](int64_t j, int64_t count) HWY_ATTR {
      Vec v = LoadUpTo(d, z + j, count);
      if (bias) v = hn::Add(v, LoadUpTo(d, bias + j, count));
      if (keep) StoreUpTo(v, d, z + j, count);
      StoreUpTo(f(d, v), d, y + j, count);
    });
  }
}

void BiasActivation(Activation activation, float* z, float* y, const float* bias, const Window& w) {
  switch (activation) {
    case Activation::none:
      return RowsWith(z, y, bias, w, [](Floats, Vec v) HWY_ATTR { return v; });
    case Activation::relu:  // NaN stays NaN
      return RowsWith(z, y, bias, w,
                      [](Floats d, Vec v) HWY_ATTR { return hn::IfThenElse(hn::Lt(v, hn::Zero(d)), hn::Zero(d), v); });
    case Activation::gelu:
      return RowsWith(z, y, bias, w, [](Floats d, Vec v) HWY_ATTR { return Gelu(d, v); });
    case Activation::gelu_tanh:
      return RowsWith(z, y, bias, w, [](Floats d, Vec v) HWY_ATTR { return GeluTanh(d, v); });
    case Activation::tanh:
      return RowsWith(z, y, bias, w, [](Floats d, Vec v) HWY_ATTR { return Tanh(d, v); });
    case Activation::sigmoid:
      return RowsWith(z, y, bias, w, [](Floats d, Vec v) HWY_ATTR { return Sigmoid(d, v); });
    case Activation::silu:
      return RowsWith(z, y, bias, w, [](Floats d, Vec v) HWY_ATTR { return Silu(d, v); });
  }
}

constexpr int64_t kSumRows = 64;  // rows per partial sum: the error of a long sum stays small

// The sums of kVectors vectors of columns.
template <int kVectors>
HWY_INLINE void SumColumns(const float* x, const Window& w, Vec (&sum)[kVectors]) {
  const Floats d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int v = 0; v < kVectors; ++v) sum[v] = hn::Zero(d);
  for (int64_t begin = 0; begin < w.rows; begin += kSumRows) {
    const int64_t end = begin + kSumRows < w.rows ? begin + kSumRows : w.rows;
    Vec part[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) part[v] = hn::Zero(d);
    for (int64_t i = begin; i < end; ++i, x += w.stride) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) part[v] = hn::Add(part[v], hn::LoadU(d, x + v * lanes));
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[v] = hn::Add(sum[v], part[v]);
  }
}

void ColumnSum(const float* x, const Window& w, float* y, bool add) {
  const Floats d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t j = 0;
  for (; j + 4 * lanes <= w.columns; j += 4 * lanes) {
    Vec sum[4];
    SumColumns(x + j, w, sum);
    for (int v = 0; v < 4; ++v) {
      float* to = y + j + v * lanes;
      hn::StoreU(add ? hn::Add(sum[v], hn::LoadU(d, to)) : sum[v], d, to);
    }
  }
  for (; j + lanes <= w.columns; j += lanes) {
    Vec sum[1];
    SumColumns(x + j, w, sum);
    hn::StoreU(add ? hn::Add(sum[0], hn::LoadU(d, y + j)) : sum[0], d, y + j);
  }
  for (; j < w.columns; ++j) {
    float sum = 0;
    for (int64_t begin = 0; begin < w.rows; begin += kSumRows) {
      const int64_t end = begin + kSumRows < w.rows ? begin + kSumRows : w.rows;
      float part = 0;
      for (int64_t i = begin; i < end; ++i) part += x[i * w.stride + j];
      sum += part;
    }
    y[j] = add ? sum + y[j] : sum;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(BiasActivation);
HWY_EXPORT(ColumnSum);
void bias_activation(Activation activation, float* z, float* y, const float* bias, Window window) {
  HWY_DYNAMIC_DISPATCH(BiasActivation)(activation, z, y, bias, window);
}
void column_sum(const float* x, Window window, float* y, bool add) {
  HWY_DYNAMIC_DISPATCH(ColumnSum)(x, window, y, add);
}

}  // namespace qkv::kernels
#endif
