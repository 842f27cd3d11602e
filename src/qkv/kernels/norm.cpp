// Layer norm kernels: a row stays in the first-level cache through all its passes.
#include "qkv/kernels/norm.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/norm.cpp"
#include <hwy/foreach_target.h>

#include "qkv/kernels/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

// The plain formula in double, for rows whose squares overflow a float and rows with NaN or infinity.
HWY_NOINLINE void NormalizeInDouble(const NormForward& norm, const float* s, int64_t row) {
  const int64_t n = norm.width;
  float* y = norm.y + row * n;
  double mean = 0, variance = 0;
  for (int64_t i = 0; i < n; ++i) mean += s[i];
  mean /= static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) variance += (s[i] - mean) * (s[i] - mean);
  const double inverse = 1 / std::sqrt(variance / static_cast<double>(n) + norm.eps);
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>((s[i] - mean) * inverse * norm.gamma[i] + norm.beta[i]);
  norm.mean[row] = static_cast<float>(mean);
  norm.inverse[row] = static_cast<float>(inverse);
}

HWY_INLINE void Normalize(const NormForward& norm, const float* s, int64_t row) {
  const Floats d;
  const int64_t n = norm.width;
  const float count = static_cast<float>(n);
  float* y = norm.y + row * n;
  const float mean = SumOver(n, [&](int64_t i, int64_t left) HWY_ATTR { return LoadUpTo(d, s + i, left); }) / count;
  const Vec center = hn::Set(d, mean);
  const float variance = SumOver(n,
                                 [&](int64_t i, int64_t left) HWY_ATTR {
                                   const Vec u = hn::Sub(LoadUpTo(d, s + i, left), center);
                                   return hn::Mul(u, u);
                                 }) /
                         count;
  if (!std::isfinite(variance)) return NormalizeInDouble(norm, s, row);
  const float inverse = 1 / std::sqrt(variance + norm.eps);
  const Vec factor = hn::Set(d, inverse);
  ForVectors(n, [&](int64_t i, int64_t left) HWY_ATTR {
    const Vec h = hn::Mul(hn::Sub(LoadUpTo(d, s + i, left), center), factor);
    StoreUpTo(hn::MulAdd(h, LoadUpTo(d, norm.gamma + i, left), LoadUpTo(d, norm.beta + i, left)), d, y + i, left);
  });
  norm.mean[row] = mean;
  norm.inverse[row] = inverse;
}

void LayerNormKernel(const NormForward& norm, const float* x, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) Normalize(norm, x + r * norm.width, r);
}

void ResidualLayerNormKernel(const NormForward& norm, const float* x, const float* y, const Drop* drop, float* s,
                             uint8_t* bits, int64_t begin, int64_t end) {
  const Floats d;
  const int64_t n = norm.width, row_bytes = KeepRowBytes(n);
  if (!drop) {
    for (int64_t r = begin; r < end; ++r) {
      Map(x + r * n, y + r * n, s + r * n, n, [](Floats, Vec u, Vec v) HWY_ATTR { return hn::Add(u, v); });
      Normalize(norm, s + r * n, r);
    }
    return;
  }
  KeepBits keep_bits(*drop, static_cast<uint64_t>(begin * n), (end - begin) * n);
  const Vec scale = hn::Set(d, drop->scale());
  for (int64_t r = begin; r < end; ++r) {
    const float *xr = x + r * n, *yr = y + r * n;
    float* sr = s + r * n;
    uint8_t* row_bits = bits ? bits + r * row_bytes : nullptr;
    keep_bits.ForKept(n, row_bits, [&](int64_t i, int64_t left, auto kept) HWY_ATTR {
      const Vec branch = hn::IfThenElseZero(kept, hn::Mul(LoadUpTo(d, yr + i, left), scale));
      StoreUpTo(hn::Add(LoadUpTo(d, xr + i, left), branch), d, sr + i, left);
    });
    Normalize(norm, sr, r);
  }
}

// One row of the derivative; after(i, left, ds vector) is called with every vector stored.
template <class After>
HWY_INLINE void BackRow(const NormBackward& norm, int64_t row, After&& after) {
  const Floats d;
  const int64_t n = norm.width;
  const float *s = norm.s + row * n, *dy = norm.dy + row * n;
  float* ds = norm.ds + row * n;
  const Vec center = hn::Set(d, norm.mean[row]), factor = hn::Set(d, norm.inverse[row]);
  const auto normal = [&](int64_t i, int64_t left)
                          HWY_ATTR { return hn::Mul(hn::Sub(LoadUpTo(d, s + i, left), center), factor); };
  const float count = static_cast<float>(n);
  // g = dy gamma is kept in ds between the passes
  const float mean_g = SumOver(n,
                               [&](int64_t i, int64_t left) HWY_ATTR {
                                 const Vec g = hn::Mul(LoadUpTo(d, dy + i, left), LoadUpTo(d, norm.gamma + i, left));
                                 StoreUpTo(g, d, ds + i, left);
                                 return g;
                               }) /
                       count;
  const float mean_gh = SumOver(n, [&](int64_t i, int64_t left)
                                       HWY_ATTR { return hn::Mul(LoadUpTo(d, ds + i, left), normal(i, left)); }) /
                        count;
  const Vec a = hn::Set(d, mean_g), b = hn::Set(d, mean_gh);
  ForVectors(n, [&](int64_t i, int64_t left) HWY_ATTR {
    const Vec h = normal(i, left), g = LoadUpTo(d, ds + i, left);
    const Vec out = hn::Mul(factor, hn::NegMulAdd(h, b, hn::Sub(g, a)));
    StoreUpTo(out, d, ds + i, left);
    after(i, left, out);
    if (norm.dgamma) {
      const Vec v = LoadUpTo(d, dy + i, left);
      StoreUpTo(hn::MulAdd(v, h, LoadUpTo(d, norm.dgamma + i, left)), d, norm.dgamma + i, left);
      StoreUpTo(hn::Add(v, LoadUpTo(d, norm.dbeta + i, left)), d, norm.dbeta + i, left);
    }
  });
}

HWY_INLINE void ClearSums(const NormBackward& norm) {
  if (!norm.dgamma) return;
  std::fill_n(norm.dgamma, norm.width, 0.f);
  std::fill_n(norm.dbeta, norm.width, 0.f);
}

void LayerNormBackKernel(const NormBackward& norm, int64_t begin, int64_t end) {
  ClearSums(norm);
  for (int64_t r = begin; r < end; ++r) BackRow(norm, r, [](int64_t, int64_t, Vec) HWY_ATTR {});
}

void ResidualLayerNormBackKernel(const NormBackward& norm, float scale, const uint8_t* bits, float* dy_branch,
                                 int64_t begin, int64_t end) {
  const Floats d;
  const int64_t n = norm.width, row_bytes = KeepRowBytes(n);
  ClearSums(norm);
  for (int64_t r = begin; r < end; ++r)
    BackRow(norm, r, [&](int64_t i, int64_t left, Vec ds) HWY_ATTR {
      const auto kept = KeptAt(d, bits + r * row_bytes, i);
      StoreUpTo(hn::IfThenElseZero(kept, hn::Mul(ds, hn::Set(d, scale))), d, dy_branch + r * n + i, left);
    });
}

// As NormalizeInDouble.
HWY_NOINLINE void RmsInDouble(const RmsForward& norm, int64_t row) {
  const int64_t n = norm.width;
  const float* x = norm.x + row * n;
  double mean = 0;
  for (int64_t i = 0; i < n; ++i) mean += static_cast<double>(x[i]) * x[i] / static_cast<double>(n);
  const double inverse = 1 / std::sqrt(mean + norm.eps);
  for (int64_t i = 0; i < n; ++i) norm.y[row * n + i] = static_cast<float>(x[i] * inverse * norm.gamma[i]);
  norm.inverse[row] = static_cast<float>(inverse);
}

void RmsNormKernel(const RmsForward& norm, int64_t begin, int64_t end) {
  const Floats d;
  const int64_t n = norm.width;
  for (int64_t r = begin; r < end; ++r) {
    const float* x = norm.x + r * n;
    const float squares = SumOver(n, [&](int64_t i, int64_t left) HWY_ATTR {
      const Vec u = LoadUpTo(d, x + i, left);
      return hn::Mul(u, u);
    });
    if (!std::isfinite(squares)) {
      RmsInDouble(norm, r);
      continue;
    }
    const float inverse = 1 / std::sqrt(squares / static_cast<float>(n) + norm.eps);
    const Vec factor = hn::Set(d, inverse);
    ForVectors(n, [&](int64_t i, int64_t left) HWY_ATTR {
      const Vec h = hn::Mul(LoadUpTo(d, x + i, left), factor);
      StoreUpTo(hn::Mul(h, LoadUpTo(d, norm.gamma + i, left)), d, norm.y + r * n + i, left);
    });
    norm.inverse[r] = inverse;
  }
}

void RmsNormBackKernel(const RmsBackward& norm, int64_t begin, int64_t end) {
  const Floats d;
  const int64_t n = norm.width;
  if (norm.dgamma) std::fill_n(norm.dgamma, n, 0.f);
  for (int64_t r = begin; r < end; ++r) {
    const float *x = norm.x + r * n, *dy = norm.dy + r * n;
    const Vec factor = hn::Set(d, norm.inverse[r]);
    const float mean_gh = SumOver(n,
                                  [&](int64_t i, int64_t left) HWY_ATTR {
                                    const Vec g = hn::Mul(LoadUpTo(d, dy + i, left), LoadUpTo(d, norm.gamma + i, left));
                                    return hn::Mul(g, hn::Mul(LoadUpTo(d, x + i, left), factor));
                                  }) /
                          static_cast<float>(n);
    const Vec b = hn::Set(d, mean_gh);
    ForVectors(n, [&](int64_t i, int64_t left) HWY_ATTR {
      const Vec v = LoadUpTo(d, dy + i, left), h = hn::Mul(LoadUpTo(d, x + i, left), factor);
      const Vec g = hn::Mul(v, LoadUpTo(d, norm.gamma + i, left));
      StoreUpTo(hn::Mul(factor, hn::NegMulAdd(h, b, g)), d, norm.dx + r * n + i, left);
      if (norm.dgamma) StoreUpTo(hn::MulAdd(v, h, LoadUpTo(d, norm.dgamma + i, left)), d, norm.dgamma + i, left);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(LayerNormKernel);
HWY_EXPORT(ResidualLayerNormKernel);
HWY_EXPORT(LayerNormBackKernel);
HWY_EXPORT(ResidualLayerNormBackKernel);

void layer_norm(const NormForward& norm, const float* x, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(LayerNormKernel)(norm, x, begin, end);
}
void residual_layer_norm(const NormForward& norm, const float* x, const float* y, const Drop* drop, float* s,
                         uint8_t* bits, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(ResidualLayerNormKernel)(norm, x, y, drop, s, bits, begin, end);
}
void layer_norm_back(const NormBackward& norm, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(LayerNormBackKernel)(norm, begin, end);
}
void residual_layer_norm_back(const NormBackward& norm, float scale, const uint8_t* bits, float* dy_branch,
                              int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(ResidualLayerNormBackKernel)(norm, scale, bits, dy_branch, begin, end);
}

HWY_EXPORT(RmsNormKernel);
void rms_norm(const RmsForward& norm, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(RmsNormKernel)(norm, begin, end);
}
HWY_EXPORT(RmsNormBackKernel);
void rms_norm_back(const RmsBackward& norm, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(RmsNormBackKernel)(norm, begin, end);
}

}  // namespace qkv::kernels
#endif
