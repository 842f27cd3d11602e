// Gaussian kernel sums on a line: queries in the lanes, cells of keys in the loop.
#include "qkv/kernels/gauss_line.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/gauss_line.cpp"
#include <hwy/foreach_target.h>

#include "qkv/kernels/exp64-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

void GaussMomentsKernel(const GaussLine& line, int64_t cell, double* moments) {
  const Doubles d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), first = line.begin[cell], last = line.begin[cell + 1];
  const VecD centre = hn::Set(d, line.centre[cell]), inverse = hn::Set(d, 1 / line.width);
  for (int64_t c = 0; c < line.columns; ++c) {
    const double* value = line.value + c * line.keys;
    VecD acc[kGaussTerms];
    for (VecD& a : acc) a = hn::Zero(d);
    for (int64_t i = first; i < last; i += lanes) {
      HWY_ALIGN double x[HWY_MAX_BYTES / sizeof(double)], v[HWY_MAX_BYTES / sizeof(double)];
      for (int64_t j = 0; j < lanes; ++j) {
        x[j] = i + j < last ? line.x[i + j] : line.centre[cell];
        v[j] = i + j < last ? value[i + j] : 0;
      }
      const VecD t = hn::Mul(hn::Sub(hn::Load(d, x), centre), inverse);
      VecD power = hn::Mul(hn::Load(d, v), ExpNonPositive(d, hn::Mul(hn::Set(d, -0.5), hn::Mul(t, t))));
      for (VecD& a : acc) {
        a = hn::Add(a, power);
        power = hn::Mul(power, t);
      }
    }
    double factorial = 1;
    for (int p = 0; p < kGaussTerms; ++p) {
      if (p > 0) factorial *= p;
      moments[c * kGaussTerms + p] = hn::GetLane(hn::SumOfLanes(d, acc[p])) / factorial;
    }
  }
}

/// Adds one key to every lane.
template <int kOrder>
HWY_INLINE void AddKey(Doubles d, const GaussLine& line, int64_t key, VecD q, VecD inverse, VecD* acc) {
  const VecD u = hn::Mul(hn::Sub(hn::Set(d, line.x[key]), q), inverse);
  const VecD weight = ExpNonPositive(d, hn::Mul(hn::Set(d, -0.5), hn::Mul(u, u)));
  for (int64_t c = 0; c < line.columns; ++c) {
    VecD term = hn::Mul(weight, hn::Set(d, line.value[c * line.keys + key]));
    acc[c * 3] = hn::Add(acc[c * 3], term);
    for (int k = 1; k <= kOrder; ++k) {
      term = hn::Mul(term, u);
      acc[c * 3 + k] = hn::Add(acc[c * 3 + k], term);
    }
  }
}

/// Adds a cell, by its moments, to the lanes within the cutoff.
template <int kOrder>
HWY_INLINE void AddCell(Doubles d, const GaussLine& line, int64_t cell, VecD q, VecD inverse, VecD* acc) {
  const VecD s = hn::Mul(hn::Sub(q, hn::Set(d, line.centre[cell])), inverse), s2 = hn::Mul(s, s);
  const auto near = hn::Le(hn::Abs(s), hn::Set(d, kGaussCutoff + kGaussRadius));
  const VecD scale = ExpNonPositive(d, hn::Mul(hn::Set(d, -0.5), s2));
  for (int64_t c = 0; c < line.columns; ++c) {
    const double* m = line.moments + (line.slot[cell] * line.columns + c) * kGaussTerms;
    if constexpr (kOrder == 0) {  // even and odd powers separately: two chains
      VecD even = hn::Set(d, m[kGaussTerms - 2]), odd = hn::Set(d, m[kGaussTerms - 1]);
      for (int p = kGaussTerms - 4; p >= 0; p -= 2) {
        even = hn::MulAdd(even, s2, hn::Set(d, m[p]));
        odd = hn::MulAdd(odd, s2, hn::Set(d, m[p + 1]));
      }
      const VecD g = hn::MulAdd(odd, s, even);
      acc[c * 3] = hn::Add(acc[c * 3], hn::IfThenElseZero(near, hn::Mul(scale, g)));
    } else {
      VecD g = hn::Set(d, m[kGaussTerms - 1]), g1 = hn::Zero(d), g2 = hn::Zero(d);  // G, G', G'' / 2
      for (int p = kGaussTerms - 2; p >= 0; --p) {
        g2 = hn::MulAdd(g2, s, g1);
        g1 = hn::MulAdd(g1, s, g);
        g = hn::MulAdd(g, s, hn::Set(d, m[p]));
      }
      acc[c * 3] = hn::Add(acc[c * 3], hn::IfThenElseZero(near, hn::Mul(scale, g)));
      // sum K (t - s) = G' - s G;   sum K (t - s)^2 = G'' - 2 s G' + s^2 G
      acc[c * 3 + 1] = hn::Add(acc[c * 3 + 1], hn::IfThenElseZero(near, hn::Mul(scale, hn::NegMulAdd(s, g, g1))));
      const VecD second = hn::MulAdd(s2, g, hn::Mul(hn::Set(d, 2.0), hn::NegMulAdd(s, g1, g2)));
      acc[c * 3 + 2] = hn::Add(acc[c * 3 + 2], hn::IfThenElseZero(near, hn::Mul(scale, second)));
    }
  }
}

template <int kOrder>
HWY_INLINE void Sums(const GaussLine& line, const double* query, int64_t queries, double* sums) {
  const Doubles d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const VecD inverse = hn::Set(d, 1 / line.width);
  const double reach = (kGaussCutoff + kGaussRadius) * line.width;
  int64_t low = std::lower_bound(line.centre, line.centre + line.cells, query[0] - reach) - line.centre;
  for (int64_t first = 0; first < queries; first += lanes) {
    const int64_t count = std::min(lanes, queries - first);
    HWY_ALIGN double at[HWY_MAX_BYTES / sizeof(double)];
    for (int64_t j = 0; j < lanes; ++j) at[j] = query[first + std::min(j, count - 1)];
    const VecD q = hn::Load(d, at);
    VecD acc[kGaussMaxColumns * 3];
    for (int64_t i = 0; i < line.columns * 3; ++i) acc[i] = hn::Zero(d);
    while (low < line.cells && line.centre[low] < at[0] - reach) ++low;
    for (int64_t cell = low; cell < line.cells && line.centre[cell] <= at[lanes - 1] + reach; ++cell) {
      if (line.begin[cell + 1] - line.begin[cell] > kGaussDirectKeys) {
        AddCell<kOrder>(d, line, cell, q, inverse, acc);
      } else {
        for (int64_t i = line.begin[cell]; i < line.begin[cell + 1]; ++i) AddKey<kOrder>(d, line, i, q, inverse, acc);
      }
    }
    HWY_ALIGN double out[HWY_MAX_BYTES / sizeof(double)];
    for (int64_t c = 0; c < line.columns; ++c) {
      for (int k = 0; k <= kOrder; ++k) {
        hn::Store(acc[c * 3 + k], d, out);
        for (int64_t j = 0; j < count; ++j) sums[((first + j) * line.columns + c) * (kOrder + 1) + k] = out[j];
      }
    }
  }
}

void GaussSums0(const GaussLine& line, const double* query, int64_t queries, double* sums) {
  Sums<0>(line, query, queries, sums);
}
void GaussSums2(const GaussLine& line, const double* query, int64_t queries, double* sums) {
  Sums<2>(line, query, queries, sums);
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(GaussMomentsKernel);
void gauss_moments(const GaussLine& line, int64_t cell, double* moments) {
  HWY_DYNAMIC_DISPATCH(GaussMomentsKernel)(line, cell, moments);
}

HWY_EXPORT(GaussSums0);
HWY_EXPORT(GaussSums2);
void gauss_sums(const GaussLine& line, const double* query, int64_t queries, int order, double* sums) {
  if (queries == 0) return;
  if (order == 0) return HWY_DYNAMIC_DISPATCH(GaussSums0)(line, query, queries, sums);
  HWY_DYNAMIC_DISPATCH(GaussSums2)(line, query, queries, sums);
}

}  // namespace qkv::kernels
#endif
