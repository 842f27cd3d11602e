// Softmax kernels, a row at a time.
#include "qkv/kernels/softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/softmax.cpp"
#include <hwy/foreach_target.h>

#include "qkv/kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

void SoftmaxKernel(const float* x, float* y, int64_t rows, int64_t width) {
  const Floats d;
  for (int64_t r = 0; r < rows; ++r, x += width, y += width) {
    const Vec most = hn::Set(d, MaxOf(x, width));
    const float sum = SumOver(width, [&](int64_t i, int64_t left) HWY_ATTR {
      const Vec e = ExpLess(d, LoadUpTo(d, x + i, left), most);
      StoreUpTo(e, d, y + i, left);
      return e;
    });
    const Vec inverse = hn::Set(d, 1 / sum);
    ForVectors(width, [&](int64_t i, int64_t left)
                          HWY_ATTR { StoreUpTo(hn::Mul(LoadUpTo(d, y + i, left), inverse), d, y + i, left); });
  }
}

void SoftmaxBackKernel(const float* y, const float* dy, float* dx, int64_t rows, int64_t width) {
  const Floats d;
  for (int64_t r = 0; r < rows; ++r, y += width, dy += width, dx += width) {
    const Vec dot = hn::Set(d, SumOver(width, [&](int64_t i, int64_t left) HWY_ATTR {
                              return hn::Mul(LoadUpTo(d, y + i, left), LoadUpTo(d, dy + i, left));
                            }));
    ForVectors(width, [&](int64_t i, int64_t left) HWY_ATTR {
      StoreUpTo(hn::Mul(LoadUpTo(d, y + i, left), hn::Sub(LoadUpTo(d, dy + i, left), dot)), d, dx + i, left);
    });
  }
}

void LogSoftmaxKernel(const float* x, float* y, int64_t rows, int64_t width) {
  const Floats d;
  for (int64_t r = 0; r < rows; ++r, x += width, y += width) {
    const float most = MaxOf(x, width);
    const Vec shift = hn::Set(d, most), log_sum = hn::Set(d, std::log(SumOfExp(x, most, width)));
    ForVectors(width, [&](int64_t i, int64_t left) HWY_ATTR {
      StoreUpTo(hn::Sub(hn::Sub(LoadUpTo(d, x + i, left), shift), log_sum), d, y + i, left);
    });
  }
}

void LogSoftmaxBackKernel(const float* y, const float* dy, float* dx, int64_t rows, int64_t width) {
  const Floats d;
  for (int64_t r = 0; r < rows; ++r, y += width, dy += width, dx += width) {
    const Vec sum =
        hn::Set(d, SumOver(width, [&](int64_t i, int64_t left) HWY_ATTR { return LoadUpTo(d, dy + i, left); }));
    ForVectors(width, [&](int64_t i, int64_t left) HWY_ATTR {
      const Vec p = ExpLess(d, LoadUpTo(d, y + i, left), hn::Zero(d));
      StoreUpTo(hn::NegMulAdd(p, sum, LoadUpTo(d, dy + i, left)), d, dx + i, left);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(SoftmaxKernel);
HWY_EXPORT(SoftmaxBackKernel);
HWY_EXPORT(LogSoftmaxKernel);
HWY_EXPORT(LogSoftmaxBackKernel);

void softmax(const float* x, float* y, int64_t rows, int64_t width) {
  HWY_DYNAMIC_DISPATCH(SoftmaxKernel)(x, y, rows, width);
}
void softmax_back(const float* y, const float* dy, float* dx, int64_t rows, int64_t width) {
  HWY_DYNAMIC_DISPATCH(SoftmaxBackKernel)(y, dy, dx, rows, width);
}
void log_softmax(const float* x, float* y, int64_t rows, int64_t width) {
  HWY_DYNAMIC_DISPATCH(LogSoftmaxKernel)(x, y, rows, width);
}
void log_softmax_back(const float* y, const float* dy, float* dx, int64_t rows, int64_t width) {
  HWY_DYNAMIC_DISPATCH(LogSoftmaxBackKernel)(y, dy, dx, rows, width);
}

}  // namespace qkv::kernels
#endif
