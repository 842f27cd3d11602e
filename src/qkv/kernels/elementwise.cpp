// Element-wise kernels.
#include "qkv/kernels/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/elementwise.cpp"
#include <hwy/foreach_target.h>

#include "qkv/kernels/map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

void Add(const float* a, const float* b, float* y, int64_t n) {
  Map(a, b, y, n, [](Floats, Vec u, Vec v) HWY_ATTR { return hn::Add(u, v); });
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(Add);
void add(const float* a, const float* b, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(Add)(a, b, y, n); }

}  // namespace qkv::kernels
#endif
