// Leave-one-out kernel sums: rows in the lanes, keys in the loop, so that a row's sums run over its keys in order and need no tails.
#include "qkv/kernels/leave_one_out.h"

#include <algorithm>
#include <cmath>

#include "qkv/kernels/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/leave_one_out.cpp"
#include <hwy/foreach_target.h>

#include "qkv/kernels/exp64-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

/// A vector of rows and their memory.
struct RowGroup {
  double* own;        // (lanes): row numbers; doubles compare on every target
  double* query;      // (d, lanes)
  double* reference;  // (d, lanes): the nearest other key
  double* square;     // (d, lanes)
  double* sums;       // (1 + m, 1 + d, lanes)
};

/// ((x - q) w)^2, or with a reference point r that less ((r - q) w)^2 = (x - r) ((x - q) + (r - q)) w^2, no digits lost. The factors of w
/// come last, so equal points are at 0 even where w^2 is not finite.
template <bool kRelative>
HWY_INLINE VecD SquaredDistance(VecD x, VecD q, VecD r, VecD w) {
  if constexpr (kRelative) return hn::Mul(hn::Mul(hn::Mul(hn::Sub(x, r), hn::Add(hn::Sub(x, q), hn::Sub(r, q))), w), w);
  const VecD u = hn::Mul(hn::Sub(x, q), w);
  return hn::Mul(u, u);
}

/// exp(-distance / 2), 0 for the row itself.
template <bool kRelative>
HWY_INLINE VecD Weight(Doubles d, VecD distance, VecD key, VecD own) {
  VecD exponent = hn::Mul(hn::Set(d, -0.5), distance);
  if constexpr (kRelative) exponent = hn::Min(exponent, hn::Zero(d));  // the reference is the nearest key up to rounding
  return hn::IfThenZeroElse(hn::Eq(key, own), ExpNonPositive(d, exponent));
}

/// One coordinate and one output, as in the book: all sums in registers.
template <bool kRelative>
HWY_INLINE void AddLine(const LeaveOneOut& data, const double* w, const RowGroup& group) {
  const Doubles d;
  const size_t lanes = hn::Lanes(d);
  const VecD own = hn::Load(d, group.own), q = hn::Load(d, group.query), r = hn::Load(d, group.reference), width = hn::Set(d, w[0]);
  const VecD one = hn::Set(d, 1.0);
  VecD key = hn::Zero(d), k = key, kd2 = key, ky = key, kyd2 = key;
  for (int64_t j = 0; j < data.n; ++j) {
    const VecD x = hn::Set(d, data.x[j]), y = hn::Set(d, data.y[j]), difference = hn::Sub(x, q);
    const VecD weight = Weight<kRelative>(d, SquaredDistance<kRelative>(x, q, r, width), key, own);
    const VecD weight_d2 = hn::Mul(weight, hn::Mul(difference, difference));
    k = hn::Add(k, weight);
    kd2 = hn::Add(kd2, weight_d2);
    ky = hn::MulAdd(weight, y, ky);
    kyd2 = hn::MulAdd(weight_d2, y, kyd2);
    key = hn::Add(key, one);
  }
  hn::Store(k, d, group.sums);
  hn::Store(kd2, d, group.sums + lanes);
  hn::Store(ky, d, group.sums + 2 * lanes);
  hn::Store(kyd2, d, group.sums + 3 * lanes);
}

/// Any number of coordinates and outputs: sums in memory.
template <bool kRelative>
HWY_INLINE void AddCloud(const LeaveOneOut& data, const double* w, const RowGroup& group) {
  const Doubles d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const VecD own = hn::Load(d, group.own), one = hn::Set(d, 1.0);
  std::fill(group.sums, group.sums + data.terms() * lanes, 0.0);
  VecD key = hn::Zero(d);
  for (int64_t j = 0; j < data.n; ++j) {
    VecD distance = hn::Zero(d);
    for (int64_t a = 0; a < data.d; ++a) {
      const VecD x = hn::Set(d, data.x[a * data.n + j]), q = hn::Load(d, group.query + a * lanes);
      const VecD r = hn::Load(d, group.reference + a * lanes), difference = hn::Sub(x, q);
      distance = hn::Add(distance, SquaredDistance<kRelative>(x, q, r, hn::Set(d, w[a])));
      hn::Store(hn::Mul(difference, difference), d, group.square + a * lanes);
    }
    const VecD weight = Weight<kRelative>(d, distance, key, own);
    double* sum = group.sums;
    for (int64_t c = 0; c <= data.m; ++c) {
      const VecD term = c == 0 ? weight : hn::Mul(weight, hn::Set(d, data.y[(c - 1) * data.n + j]));
      hn::Store(hn::Add(hn::Load(d, sum), term), d, sum);
      sum += lanes;
      for (int64_t a = 0; a < data.d; ++a, sum += lanes)
        hn::Store(hn::MulAdd(term, hn::Load(d, group.square + a * lanes), hn::Load(d, sum)), d, sum);
    }
    key = hn::Add(key, one);
  }
}

template <bool kRelative>
HWY_INLINE void AddKeys(const LeaveOneOut& data, const double* w, const RowGroup& group) {
  if (data.d == 1 && data.m == 1) return AddLine<kRelative>(data, w, group);
  AddCloud<kRelative>(data, w, group);
}

/// Fills the reference of every lane. Distances are in units of 1 / max |w|: these order the keys too, and do not overflow.
void FindNearest(const LeaveOneOut& data, const double* w, const RowGroup& group) {
  const Doubles d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  double largest = 0;
  for (int64_t a = 0; a < data.d; ++a) largest = std::max(largest, std::abs(w[a]));
  const VecD own = hn::Load(d, group.own), one = hn::Set(d, 1.0);
  VecD least = hn::Set(d, HUGE_VAL), nearest = own, key = hn::Zero(d);
  for (int64_t j = 0; j < data.n; ++j) {
    VecD distance = hn::Zero(d);
    for (int64_t a = 0; a < data.d; ++a) {
      const VecD x = hn::Set(d, data.x[a * data.n + j]), q = hn::Load(d, group.query + a * lanes);
      distance = hn::Add(distance, SquaredDistance<false>(x, q, q, hn::Set(d, w[a] / largest)));
    }
    distance = hn::IfThenElse(hn::Eq(key, own), hn::Set(d, HUGE_VAL), distance);
    nearest = hn::IfThenElse(hn::Lt(distance, least), key, nearest);
    least = hn::Min(least, distance);
    key = hn::Add(key, one);
  }
  hn::Store(nearest, d, group.square);  // free until the next sums
  for (int64_t lane = lanes; lane-- > 0;) {
    const int64_t at = static_cast<int64_t>(group.square[lane]);
    for (int64_t a = 0; a < data.d; ++a) group.reference[a * lanes + lane] = data.x[a * data.n + at];
  }
}

void LeaveOneOutSums(const LeaveOneOut& data, const double* w, const int64_t* rows, int64_t count, double* sums) {
  const Doubles d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), terms = data.terms(), floats = 2 * lanes;  // a double is two floats
  Scratch scratch(floats * (1 + 3 * data.d + terms), 5);
  const auto take = [&](int64_t vectors) { return static_cast<double*>(static_cast<void*>(scratch.take(floats * vectors))); };
  const RowGroup group{take(1), take(data.d), take(data.d), take(data.d), take(terms)};
  std::fill(group.reference, group.reference + data.d * lanes, 0.0);
  for (int64_t first = 0; first < count; first += lanes) {
    const int64_t filled = std::min(lanes, count - first);
    for (int64_t lane = 0; lane < lanes; ++lane) {  // lanes beyond the rows repeat the last one
      const int64_t row = rows[first + std::min(lane, filled - 1)];
      group.own[lane] = static_cast<double>(row);
      for (int64_t a = 0; a < data.d; ++a) group.query[a * lanes + lane] = data.x[a * data.n + row];
    }
    AddKeys<false>(data, w, group);
    bool far = false;
    for (int64_t lane = 0; lane < filled; ++lane) {
      double* out = sums + (first + lane) * terms;
      for (int64_t t = 0; t < terms; ++t) out[t] = group.sums[t * lanes + lane];
      far |= out[0] < kFarTotal;
    }
    if (!far) continue;
    FindNearest(data, w, group);
    AddKeys<true>(data, w, group);
    for (int64_t lane = 0; lane < filled; ++lane) {
      double* out = sums + (first + lane) * terms;
      if (out[0] < kFarTotal)
        for (int64_t t = 0; t < terms; ++t) out[t] = group.sums[t * lanes + lane];
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(LeaveOneOutSums);
void leave_one_out_sums(const LeaveOneOut& data, const double* w, const int64_t* rows, int64_t count, double* sums) {
  HWY_DYNAMIC_DISPATCH(LeaveOneOutSums)(data, w, rows, count, sums);
}

}  // namespace qkv::kernels
#endif
