// Weights of a kernel smoother: keys in the lanes.
#include "qkv/kernels/smoothing.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/smoothing.cpp"
#include <hwy/foreach_target.h>

#include "qkv/kernels/exp64-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

constexpr size_t kMaxLanes = HWY_MAX_BYTES / sizeof(double);

/// Calls f(load, i, count) for every vector of n elements; load(x) reads x[i...], zero beyond the end.
template <class F>
HWY_INLINE void ForEachVector(int64_t n, F&& f) {
  const Doubles d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f([&](const double* x) HWY_ATTR { return hn::LoadU(d, x + i); }, i, lanes);
  if (i < n) {
    const auto load = [&](const double* x) HWY_ATTR {
      HWY_ALIGN double part[kMaxLanes] = {};
      for (int64_t j = i; j < n; ++j) part[j - i] = x[j];
      return hn::Load(d, part);
    };
    f(load, i, n - i);
  }
}

HWY_INLINE void StoreVector(Doubles d, VecD v, double* y, int64_t count) {
  if (count == static_cast<int64_t>(hn::Lanes(d))) return hn::StoreU(v, d, y);
  HWY_ALIGN double part[kMaxLanes];
  hn::Store(v, d, part);
  for (int64_t j = 0; j < count; ++j) y[j] = part[j];
}

/// sum_a ((x_a - q_a) / h_a)^2
template <class Load>
HWY_INLINE VecD Distance(Doubles d, const KeyTile& tile, const double* query, const double* width, Load&& load) {
  VecD distance = hn::Zero(d);
  for (int a = 0; a < tile.dimension; ++a) {
    const VecD u = hn::Mul(hn::Sub(load(tile.x + a * tile.stride), hn::Set(d, query[a])), hn::Set(d, 1 / width[a]));
    distance = hn::MulAdd(u, u, distance);
  }
  return distance;
}

void GaussianWeights(const KeyTile& tile, const double* query, const double* width, const double* reference,
                     double* weight) {
  const Doubles d;
  const VecD minus_half = hn::Set(d, -0.5);
  if (!reference) {
    ForEachVector(tile.keys, [&](auto load, int64_t i, int64_t count) HWY_ATTR {
      StoreVector(d, ExpNonPositive(d, hn::Mul(minus_half, Distance(d, tile, query, width, load))), weight + i, count);
    });
    return;
  }
  ForEachVector(tile.keys, [&](auto load, int64_t i, int64_t count) HWY_ATTR {
    VecD excess = hn::Zero(d);
    for (int a = 0; a < tile.dimension; ++a) {
      const VecD x = load(tile.x + a * tile.stride), inverse = hn::Set(d, 1 / width[a]);
      const VecD v = hn::Mul(hn::Sub(x, hn::Set(d, reference[a])), inverse);
      const VecD sum = hn::Add(hn::Sub(x, hn::Set(d, query[a])), hn::Set(d, reference[a] - query[a]));
      excess = hn::MulAdd(v, hn::Mul(sum, inverse), excess);
    }
    // The reference is the nearest key only up to rounding: no weight may be larger.
    StoreVector(d, ExpNonPositive(d, hn::Min(hn::Mul(minus_half, excess), hn::Zero(d))), weight + i, count);
  });
}

/// Compact shapes: a key is inside if |x - q| < h, the same test as on a line, so that both agree at the edge.
template <class Shape>
HWY_INLINE void CompactWeights(const KeyTile& tile, const double* query, const double* width, double* weight,
                               Shape&& shape) {
  const Doubles d;
  ForEachVector(tile.keys, [&](auto load, int64_t i, int64_t count) HWY_ATTR {
    VecD product = hn::Set(d, 1.0);
    for (int a = 0; a < tile.dimension; ++a) {
      const VecD distance = hn::Abs(hn::Sub(load(tile.x + a * tile.stride), hn::Set(d, query[a])));
      const VecD factor = shape(d, hn::Div(distance, hn::Set(d, width[a])));
      product = hn::IfThenElseZero(hn::Lt(distance, hn::Set(d, width[a])), hn::Mul(product, factor));
    }
    StoreVector(d, product, weight + i, count);
  });
}

void BoxcarWeights(const KeyTile& tile, const double* query, const double* width, const double*, double* weight) {
  CompactWeights(tile, query, width, weight, [](Doubles d, VecD) HWY_ATTR { return hn::Set(d, 1.0); });
}
void EpanechnikovWeights(const KeyTile& tile, const double* query, const double* width, const double*, double* weight) {
  CompactWeights(tile, query, width, weight,
                 [](Doubles d, VecD u) HWY_ATTR { return hn::NegMulAdd(u, u, hn::Set(d, 1.0)); });
}
void TriangularWeights(const KeyTile& tile, const double* query, const double* width, const double*, double* weight) {
  CompactWeights(tile, query, width, weight, [](Doubles d, VecD u) HWY_ATTR { return hn::Sub(hn::Set(d, 1.0), u); });
}

void SquaredDistances(const KeyTile& tile, const double* query, const double* width, double* distance) {
  const Doubles d;
  ForEachVector(tile.keys, [&](auto load, int64_t i, int64_t count) HWY_ATTR {
    StoreVector(d, Distance(d, tile, query, width, load), distance + i, count);
  });
}

double SumKernel(const double* a, int64_t n) {
  const Doubles d;
  VecD total = hn::Zero(d);
  ForEachVector(n, [&](auto load, int64_t, int64_t) HWY_ATTR { total = hn::Add(total, load(a)); });
  return hn::GetLane(hn::SumOfLanes(d, total));
}
double DotKernel(const double* a, const double* b, int64_t n) {
  const Doubles d;
  VecD total = hn::Zero(d);
  ForEachVector(n, [&](auto load, int64_t, int64_t) HWY_ATTR { total = hn::MulAdd(load(a), load(b), total); });
  return hn::GetLane(hn::SumOfLanes(d, total));
}
void MultiplyKernel(const double* a, const double* b, double* y, int64_t n) {
  const Doubles d;
  ForEachVector(n, [&](auto load, int64_t i, int64_t count)
                       HWY_ATTR { StoreVector(d, hn::Mul(load(a), load(b)), y + i, count); });
}
void SubtractScaleKernel(const double* a, double s, double t, double* y, int64_t n) {
  const Doubles d;
  ForEachVector(n, [&](auto load, int64_t i, int64_t count) HWY_ATTR {
    StoreVector(d, hn::Mul(hn::Sub(load(a), hn::Set(d, s)), hn::Set(d, t)), y + i, count);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

namespace qkv::kernels {

HWY_EXPORT(GaussianWeights);
HWY_EXPORT(BoxcarWeights);
HWY_EXPORT(EpanechnikovWeights);
HWY_EXPORT(TriangularWeights);
void kernel_weights(KernelShape shape, const KeyTile& tile, const double* query, const double* width,
                    const double* reference, double* weight) {
  switch (shape) {
    case KernelShape::gaussian:
      return HWY_DYNAMIC_DISPATCH(GaussianWeights)(tile, query, width, reference, weight);
    case KernelShape::boxcar:
      return HWY_DYNAMIC_DISPATCH(BoxcarWeights)(tile, query, width, reference, weight);
    case KernelShape::epanechnikov:
      return HWY_DYNAMIC_DISPATCH(EpanechnikovWeights)(tile, query, width, reference, weight);
    case KernelShape::triangular:
      return HWY_DYNAMIC_DISPATCH(TriangularWeights)(tile, query, width, reference, weight);
    case KernelShape::constant:
      std::fill(weight, weight + tile.keys, 1.0);
  }
}

HWY_EXPORT(SquaredDistances);
void squared_distances(const KeyTile& tile, const double* query, const double* width, double* distance) {
  HWY_DYNAMIC_DISPATCH(SquaredDistances)(tile, query, width, distance);
}
HWY_EXPORT(SumKernel);
double sum(const double* a, int64_t n) { return HWY_DYNAMIC_DISPATCH(SumKernel)(a, n); }
HWY_EXPORT(DotKernel);
double dot(const double* a, const double* b, int64_t n) { return HWY_DYNAMIC_DISPATCH(DotKernel)(a, b, n); }
HWY_EXPORT(MultiplyKernel);
void multiply(const double* a, const double* b, double* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(MultiplyKernel)(a, b, y, n);
}
HWY_EXPORT(SubtractScaleKernel);
void subtract_scale(const double* a, double s, double t, double* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(SubtractScaleKernel)(a, s, t, y, n);
}

}  // namespace qkv::kernels
#endif
