// Loss kernels.
#include "qkv/kernels/loss.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/loss.cpp"
#include <hwy/foreach_target.h>

#include "qkv/kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

void CrossEntropyKernel(const CrossEntropy& c, float* loss, float* lse, int64_t begin, int64_t end) {
  const Floats d;
  const int64_t n = c.width;
  for (int64_t r = begin; r < end; ++r) {
    if (c.targets[r] < 0) {
      loss[r] = lse[r] = 0;
      continue;
    }
    const float* x = c.x + r * n;
    const float most = MaxOf(x, n);
    const double log_sum = std::log(static_cast<double>(SumOfExp(x, most, n)));
    double wanted = x[c.targets[r]];  // sum_j w_j x_j
    if (c.smoothing != 0) {
      // Each logit is divided before it is added: the sum may overflow a float, the mean does not.
      const Vec part = hn::Set(d, 1 / static_cast<float>(n));
      const double mean =
          SumOver(n, [&](int64_t i, int64_t left) HWY_ATTR { return hn::Mul(LoadUpTo(d, x + i, left), part); });
      wanted = (1 - static_cast<double>(c.smoothing)) * wanted + c.smoothing * mean;
    }
    loss[r] = static_cast<float>(most - wanted + log_sum);
    lse[r] = static_cast<float>(most + log_sum);
  }
}

void CrossEntropyBackKernel(const CrossEntropy& c, const float* lse, const float* dloss, int64_t dloss_step,
                            float factor, float* dx, int64_t begin, int64_t end) {
  const Floats d;
  const int64_t n = c.width;
  for (int64_t r = begin; r < end; ++r) {
    const float* x = c.x + r * n;
    float* out = dx + r * n;
    if (c.targets[r] < 0) {
      std::fill_n(out, n, 0.f);
      continue;
    }
    const float g = factor * dloss[r * dloss_step];
    const Vec weight = hn::Set(d, g), shift = hn::Set(d, lse[r]),
              even = hn::Set(d, c.smoothing / static_cast<float>(n));
    ForVectors(n, [&](int64_t i, int64_t left) HWY_ATTR {
      StoreUpTo(hn::Mul(weight, hn::Sub(ExpLess(d, LoadUpTo(d, x + i, left), shift), even)), d, out + i, left);
    });
    out[c.targets[r]] -= g * (1 - c.smoothing);
  }
}

float SquaredDistanceKernel(const float* a, const float* b, int64_t n) {
  const Floats d;
  return SumOver(n, [&](int64_t i, int64_t left) HWY_ATTR {
    const Vec u = hn::Sub(LoadUpTo(d, a + i, left), LoadUpTo(d, b + i, left));
    return hn::Mul(u, u);
  });
}

void SquaredErrorKernel(const float* a, const float* b, float* y, int64_t n) {
  Map(a, b, y, n, [](Floats, Vec u, Vec v) HWY_ATTR {
    const Vec w = hn::Sub(u, v);
    return hn::Mul(w, w);
  });
}

void SquaredErrorBackKernel(const float* a, const float* b, const float* dy, int64_t dy_step, float factor, float* da,
                            int64_t n) {
  const Floats d;
  const Vec twice = hn::Set(d, 2 * factor), common = hn::Set(d, n > 0 ? dy[0] : 0);
  ForVectors(n, [&](int64_t i, int64_t left) HWY_ATTR {
    const Vec u = hn::Sub(LoadUpTo(d, a + i, left), LoadUpTo(d, b + i, left));
    const Vec g = dy_step == 0 ? common : LoadUpTo(d, dy + i, left);
    StoreUpTo(hn::Mul(hn::Mul(twice, g), u), d, da + i, left);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(CrossEntropyKernel);
HWY_EXPORT(CrossEntropyBackKernel);
HWY_EXPORT(SquaredDistanceKernel);
HWY_EXPORT(SquaredErrorKernel);
HWY_EXPORT(SquaredErrorBackKernel);

void cross_entropy(const CrossEntropy& c, float* loss, float* lse, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(CrossEntropyKernel)(c, loss, lse, begin, end);
}
void cross_entropy_back(const CrossEntropy& c, const float* lse, const float* dloss, int64_t dloss_step, float factor,
                        float* dx, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(CrossEntropyBackKernel)(c, lse, dloss, dloss_step, factor, dx, begin, end);
}
float squared_distance(const float* a, const float* b, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(SquaredDistanceKernel)(a, b, n);
}
void squared_error(const float* a, const float* b, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(SquaredErrorKernel)(a, b, y, n);
}
void squared_error_back(const float* a, const float* b, const float* dy, int64_t dy_step, float factor, float* da,
                        int64_t n) {
  HWY_DYNAMIC_DISPATCH(SquaredErrorBackKernel)(a, b, dy, dy_step, factor, da, n);
}

}  // namespace qkv::kernels
#endif
