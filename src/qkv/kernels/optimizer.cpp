// Optimizer kernels.
#include "qkv/kernels/optimizer.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/optimizer.cpp"
#include <hwy/foreach_target.h>

#include "qkv/kernels/row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

// Adam (Kingma and Ba, 2015): m <- b1 m + (1 - b1) g, v <- b2 v + (1 - b2) g^2, w <- w - rate m^ / (sqrt v^ + eps);
// AdamW (Loshchilov and Hutter, 2019): w <- w (1 - rate decay) before that.
void AdamKernel(float* w, const float* g, float* m, float* v, int64_t n, const AdamStep& s) {
  const Floats d;
  const Vec b1 = hn::Set(d, s.beta1), c1 = hn::Set(d, 1 - s.beta1), b2 = hn::Set(d, s.beta2),
            c2 = hn::Set(d, 1 - s.beta2);
  const Vec scale = hn::Set(d, s.gradient_scale), l2 = hn::Set(d, s.l2), shrink = hn::Set(d, 1 - s.rate * s.decay);
  const Vec rate = hn::Set(d, s.rate * s.correction1), correction2 = hn::Set(d, s.correction2),
            epsilon = hn::Set(d, s.epsilon);
  ForVectors(n, [&](int64_t i, int64_t count) HWY_ATTR {
    const Vec wi = LoadUpTo(d, w + i, count), gi = hn::MulAdd(l2, wi, hn::Mul(LoadUpTo(d, g + i, count), scale));
    const Vec mi = hn::MulAdd(b1, LoadUpTo(d, m + i, count), hn::Mul(c1, gi));
    const Vec vi = hn::MulAdd(b2, LoadUpTo(d, v + i, count), hn::Mul(c2, hn::Mul(gi, gi)));
    const Vec deviation = hn::Add(hn::Sqrt(hn::Mul(vi, correction2)), epsilon);
    StoreUpTo(hn::NegMulAdd(rate, hn::Div(mi, deviation), hn::Mul(wi, shrink)), d, w + i, count);
    StoreUpTo(mi, d, m + i, count);
    StoreUpTo(vi, d, v + i, count);
  });
}

// u <- momentum u + g, w <- w - rate u
void SgdKernel(float* w, const float* g, float* velocity, int64_t n, const SgdStep& s) {
  const Floats d;
  const Vec scale = hn::Set(d, s.gradient_scale), l2 = hn::Set(d, s.l2), momentum = hn::Set(d, s.momentum),
            rate = hn::Set(d, s.rate);
  if (!velocity) {
    Map(w, g, w, n, [&](Floats, Vec wi, Vec gi) HWY_ATTR {
      return hn::NegMulAdd(rate, hn::MulAdd(l2, wi, hn::Mul(gi, scale)), wi);
    });
    return;
  }
  ForVectors(n, [&](int64_t i, int64_t count) HWY_ATTR {
    const Vec wi = LoadUpTo(d, w + i, count), gi = LoadUpTo(d, g + i, count);
    const Vec ui = hn::MulAdd(momentum, LoadUpTo(d, velocity + i, count), hn::MulAdd(l2, wi, hn::Mul(gi, scale)));
    StoreUpTo(ui, d, velocity + i, count);
    StoreUpTo(hn::NegMulAdd(rate, ui, wi), d, w + i, count);
  });
}

void ApproachKernel(float* average, const float* w, float share, int64_t n) {
  Map(average, w, average, n,
      [=](Floats d, Vec a, Vec v) HWY_ATTR { return hn::Add(a, hn::Mul(hn::Set(d, share), hn::Sub(v, a))); });
}

// The last elements are added one by one: the order depends on n alone.
double SumOfSquaresKernel(const float* x, int64_t n) {
  const hn::Rebind<double, hn::Half<Floats>> dd;
  const hn::Half<Floats> dh;
  constexpr int64_t kHalf = kLanes / 2;
  auto low = hn::Zero(dd), high = hn::Zero(dd);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto a = hn::PromoteTo(dd, hn::LoadU(dh, x + i)), b = hn::PromoteTo(dd, hn::LoadU(dh, x + i + kHalf));
    low = hn::MulAdd(a, a, low);
    high = hn::MulAdd(b, b, high);
  }
  double sum = hn::GetLane(hn::SumOfLanes(dd, hn::Add(low, high)));
  for (; i < n; ++i) sum += double{x[i]} * x[i];
  return sum;
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(AdamKernel);
void adam(float* w, const float* g, float* m, float* v, int64_t n, const AdamStep& step) {
  HWY_DYNAMIC_DISPATCH(AdamKernel)(w, g, m, v, n, step);
}
HWY_EXPORT(SgdKernel);
void sgd(float* w, const float* g, float* velocity, int64_t n, const SgdStep& step) {
  HWY_DYNAMIC_DISPATCH(SgdKernel)(w, g, velocity, n, step);
}
HWY_EXPORT(ApproachKernel);
void approach(float* average, const float* w, float share, int64_t n) {
  HWY_DYNAMIC_DISPATCH(ApproachKernel)(average, w, share, n);
}
HWY_EXPORT(SumOfSquaresKernel);
double sum_of_squares(const float* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(SumOfSquaresKernel)(x, n); }

}  // namespace qkv::kernels
#endif
