// Convolution by shifted rows; with a stride the rows are processed element by element.
#include "qkv/kernels/conv.h"

#include <algorithm>

#include "qkv/core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/conv.cpp"
#include <hwy/foreach_target.h>

#include "qkv/kernels/map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

// y += factor * x
void AxpyKernel(float factor, const float* x, float* y, int64_t n) {
  const Vec by = hn::Set(Floats(), factor);
  Map(x, y, y, n, [=](Floats, Vec v, Vec sum) HWY_ATTR { return hn::MulAdd(by, v, sum); });
}

// The last elements are added one by one: the order depends on n alone.
float DotKernel(const float* x, const float* y, int64_t n) {
  const Floats d;
  Vec even = hn::Zero(d), odd = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    even = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, y + i), even);
    odd = hn::MulAdd(hn::LoadU(d, x + i + kLanes), hn::LoadU(d, y + i + kLanes), odd);
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even, odd)));
  for (; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(AxpyKernel);
HWY_EXPORT(DotKernel);

namespace {

// Each call dispatches: a pointer taken before the very first call would look up the CPU again on every use.
void axpy(float factor, const float* x, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(AxpyKernel)(factor, x, y, n); }
float dot(const float* x, const float* y, int64_t n) { return HWY_DYNAMIC_DISPATCH(DotKernel)(x, y, n); }

// Where tap k meets the input: outputs first .. last - 1 read x[start], x[start + stride], ...
struct Tap {
  int64_t first, last, start;
  Tap(const Conv1d& c, int64_t k) {
    const int64_t shift = k * c.dilation - c.padding;
    first = shift >= 0 ? 0 : (-shift + c.stride - 1) / c.stride;
    last = c.length > shift ? std::min(c.out_length, (c.length - shift + c.stride - 1) / c.stride) : 0;
    start = first * c.stride + shift;
  }
  int64_t count() const { return std::max<int64_t>(0, last - first); }
};

double work_ns(const Conv1d& c) { return 0.2 * static_cast<double>(c.batch * c.in * c.out * c.taps * c.out_length); }

}  // namespace

void conv1d(const Conv1d& c, const float* x, const float* weight, const float* bias, float* y) {
  parallel_for(c.batch * c.out, work_ns(c), [&](int64_t row) {
    const int64_t b = row / c.out, o = row % c.out;
    float* to = y + row * c.out_length;
    std::fill_n(to, c.out_length, bias ? bias[o] : 0.f);
    for (int64_t i = 0; i < c.in; ++i)
      for (int64_t k = 0; k < c.taps; ++k) {
        const Tap tap(c, k);
        const int64_t n = tap.count();
        if (n == 0) continue;
        const float w = weight[(o * c.in + i) * c.taps + k];
        const float* from = x + (b * c.in + i) * c.length + tap.start;
        if (c.stride == 1)
          axpy(w, from, to + tap.first, n);
        else
          for (int64_t l = 0; l < n; ++l) to[tap.first + l] += w * from[l * c.stride];
      }
  });
}

void conv1d_back_x(const Conv1d& c, const float* weight, const float* dy, float* dx, bool add) {
  parallel_for(c.batch * c.in, work_ns(c), [&](int64_t row) {
    const int64_t b = row / c.in, i = row % c.in;
    float* to = dx + row * c.length;
    if (!add) std::fill_n(to, c.length, 0.f);
    for (int64_t o = 0; o < c.out; ++o)
      for (int64_t k = 0; k < c.taps; ++k) {
        const Tap tap(c, k);
        const int64_t n = tap.count();
        if (n == 0) continue;
        const float w = weight[(o * c.in + i) * c.taps + k];
        const float* from = dy + (b * c.out + o) * c.out_length + tap.first;
        if (c.stride == 1)
          axpy(w, from, to + tap.start, n);
        else
          for (int64_t l = 0; l < n; ++l) to[tap.start + l * c.stride] += w * from[l];
      }
  });
}

void conv1d_back_weight(const Conv1d& c, const float* x, const float* dy, float* dweight, bool add) {
  parallel_for(c.out * c.in, work_ns(c), [&](int64_t pair) {
    const int64_t o = pair / c.in, i = pair % c.in;
    for (int64_t k = 0; k < c.taps; ++k) {
      const Tap tap(c, k);
      const int64_t n = tap.count();
      double sum = 0;
      for (int64_t b = 0; b < c.batch && n > 0; ++b) {
        const float* from = x + (b * c.in + i) * c.length + tap.start;
        const float* g = dy + (b * c.out + o) * c.out_length + tap.first;
        if (c.stride == 1)
          sum += dot(from, g, n);
        else
          for (int64_t l = 0; l < n; ++l) sum += double{from[l * c.stride]} * g[l];
      }
      float& to = dweight[pair * c.taps + k];
      to = add ? to + static_cast<float>(sum) : static_cast<float>(sum);
    }
  });
}

}  // namespace qkv::kernels
#endif
