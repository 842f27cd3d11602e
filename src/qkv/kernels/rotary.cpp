// Rotation of pairs: the partner of an element is the lane beside it, or an element of the other half.
#include "qkv/kernels/rotary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/rotary.cpp"
#include <hwy/foreach_target.h>

#include "qkv/kernels/row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

void RotatePairs(const float* x, const float* cosines, const float* sines, float* y, int64_t n, bool back) {
  const Floats d;
  const Vec sign = hn::Set(d, back ? -1.f : 1.f);
  ForVectors(n, [&](int64_t i, int64_t count) HWY_ATTR {
    const Vec a = LoadUpTo(d, x + i, count), partner = hn::Shuffle2301(a);
    const Vec turned = hn::Mul(partner, hn::Mul(sign, LoadUpTo(d, sines + i, count)));
    StoreUpTo(hn::MulAdd(a, LoadUpTo(d, cosines + i, count), turned), d, y + i, count);
  });
}

void RotateHalves(const float* x, const float* cosines, const float* sines, float* y, int64_t n, bool back) {
  const Floats d;
  const Vec sign = hn::Set(d, back ? -1.f : 1.f);
  const int64_t half = n / 2;
  ForVectors(half, [&](int64_t i, int64_t count) HWY_ATTR {
    const Vec a = LoadUpTo(d, x + i, count), b = LoadUpTo(d, x + half + i, count);
    const auto turned = [&](Vec own, Vec partner, int64_t at) HWY_ATTR {
      const Vec moved = hn::Mul(partner, hn::Mul(sign, LoadUpTo(d, sines + at, count)));
      StoreUpTo(hn::MulAdd(own, LoadUpTo(d, cosines + at, count), moved), d, y + at, count);
    };
    turned(a, b, i);
    turned(b, a, half + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(RotatePairs);

void rotate_pairs(const float* x, const float* cosines, const float* sines, float* y, int64_t n, bool back) {
  HWY_DYNAMIC_DISPATCH(RotatePairs)(x, cosines, sines, y, n, back);
}

HWY_EXPORT(RotateHalves);

void rotate_halves(const float* x, const float* cosines, const float* sines, float* y, int64_t n, bool back) {
  HWY_DYNAMIC_DISPATCH(RotateHalves)(x, cosines, sines, y, n, back);
}

}  // namespace qkv::kernels
#endif
