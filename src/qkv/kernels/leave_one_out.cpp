// Leave-one-out kernel sums: rows in the lanes, keys in the loop, so that a row's sums run over its keys in order and
// need no tails.
#include "qkv/kernels/leave_one_out.h"

#include <algorithm>
#include <cmath>
#include <limits>

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
  double* own;                          // (lanes): row numbers, as doubles, which compare on every target
  double* query;                        // (d, lanes)
  double* reference;                    // (d, lanes): the nearest other key
  double* square;                       // (d, lanes)
  double* sums;                         // (1 + m, 1 + d, lanes)
  int64_t first_own = 0, last_own = 0;  // least and largest row number
};

/// -w^2 / 2, kept finite so that equal points give 0 for any w.
HWY_INLINE double Steepness(double w) { return -std::min(0.5 * w * w, std::numeric_limits<double>::max()); }

/// (x - q)^2, or with a reference point r (x - q)^2 - (r - q)^2 = (x - r) ((x - q) + (r - q)), without cancellation.
template <bool kRelative>
HWY_INLINE VecD SquaredDistance(VecD x, VecD q, VecD r) {
  const VecD difference = hn::Sub(x, q);
  if constexpr (kRelative) return hn::Mul(hn::Sub(x, r), hn::Add(difference, hn::Sub(r, q)));
  return hn::Mul(difference, difference);
}

template <bool kRelative>
HWY_INLINE VecD Weight(Doubles d, VecD exponent) {
  if constexpr (kRelative)
    exponent = hn::Min(exponent, hn::Zero(d));  // the reference is the nearest key only up to rounding
  return ExpNonPositive(d, exponent);
}

/// Sums of rows with one coordinate and one output, as in the book: in registers.
struct LineTotals {
  VecD k, kd2, ky, kyd2;
};
/// kOwn: a key of the range may be the row itself.
template <bool kRelative, bool kOwn>
HWY_INLINE void AddLineRange(const LeaveOneOut& data, double w, const RowGroup& group, int64_t first, int64_t last,
                             LineTotals& out) {
  const Doubles d;
  const VecD own = hn::Load(d, group.own), q = hn::Load(d, group.query), r = hn::Load(d, group.reference);
  const VecD steepness = hn::Set(d, Steepness(w));
  LineTotals total = out;
  for (int64_t j = first; j < last; ++j) {
    const VecD x = hn::Set(d, data.x[j]), y = hn::Set(d, data.y[j]);
    VecD weight = Weight<kRelative>(d, hn::Mul(SquaredDistance<kRelative>(x, q, r), steepness));
    if constexpr (kOwn) weight = hn::IfThenZeroElse(hn::Eq(own, hn::Set(d, static_cast<double>(j))), weight);
    const VecD weight_d2 = hn::Mul(weight, SquaredDistance<false>(x, q, q));
    total.k = hn::Add(total.k, weight);
    total.kd2 = hn::Add(total.kd2, weight_d2);
    total.ky = hn::MulAdd(weight, y, total.ky);
    total.kyd2 = hn::MulAdd(weight_d2, y, total.kyd2);
  }
  out = total;
}

template <bool kRelative>
HWY_INLINE void AddLine(const LeaveOneOut& data, const double* w, const RowGroup& group) {
  const Doubles d;
  const size_t lanes = hn::Lanes(d);
  const VecD zero = hn::Zero(d);
  LineTotals total{zero, zero, zero, zero};
  AddLineRange<kRelative, false>(data, w[0], group, 0, group.first_own, total);
  AddLineRange<kRelative, true>(data, w[0], group, group.first_own, group.last_own + 1, total);
  AddLineRange<kRelative, false>(data, w[0], group, group.last_own + 1, data.n, total);
  hn::Store(total.k, d, group.sums);
  hn::Store(total.kd2, d, group.sums + lanes);
  hn::Store(total.ky, d, group.sums + 2 * lanes);
  hn::Store(total.kyd2, d, group.sums + 3 * lanes);
}

/// Any number of coordinates and outputs: sums in memory.
template <bool kRelative>
HWY_INLINE void AddCloud(const LeaveOneOut& data, const double* w, const RowGroup& group) {
  const Doubles d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const VecD own = hn::Load(d, group.own);
  std::fill(group.sums, group.sums + data.terms() * lanes, 0.0);
  for (int64_t j = 0; j < data.n; ++j) {
    VecD exponent = hn::Zero(d);
    for (int64_t a = 0; a < data.d; ++a) {
      const VecD x = hn::Set(d, data.x[a * data.n + j]), q = hn::Load(d, group.query + a * lanes);
      const VecD r = hn::Load(d, group.reference + a * lanes);
      exponent = hn::MulAdd(SquaredDistance<kRelative>(x, q, r), hn::Set(d, Steepness(w[a])), exponent);
      hn::Store(SquaredDistance<false>(x, q, q), d, group.square + a * lanes);
    }
    const VecD itself = hn::Set(d, static_cast<double>(j));
    const VecD weight = hn::IfThenZeroElse(hn::Eq(own, itself), Weight<kRelative>(d, exponent));
    double* sum = group.sums;
    for (int64_t c = 0; c <= data.m; ++c) {
      const VecD term = c == 0 ? weight : hn::Mul(weight, hn::Set(d, data.y[(c - 1) * data.n + j]));
      hn::Store(hn::Add(hn::Load(d, sum), term), d, sum);
      sum += lanes;
      for (int64_t a = 0; a < data.d; ++a, sum += lanes)
        hn::Store(hn::MulAdd(term, hn::Load(d, group.square + a * lanes), hn::Load(d, sum)), d, sum);
    }
  }
}

template <bool kRelative>
HWY_INLINE void AddKeys(const LeaveOneOut& data, const double* w, const RowGroup& group) {
  if (data.d == 1 && data.m == 1) return AddLine<kRelative>(data, w, group);
  AddCloud<kRelative>(data, w, group);
}

/// Fills the reference of every lane. Distances are in units of 1 / max |w|: the order of the keys is the same, and
/// they do not overflow.
void FindNearest(const LeaveOneOut& data, const double* w, const RowGroup& group) {
  const Doubles d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  double largest = 0;
  for (int64_t a = 0; a < data.d; ++a) largest = std::max(largest, std::abs(w[a]));
  const VecD own = hn::Load(d, group.own);
  VecD least = hn::Set(d, HUGE_VAL), nearest = own;
  for (int64_t j = 0; j < data.n; ++j) {
    const VecD key = hn::Set(d, static_cast<double>(j));
    VecD distance = hn::Zero(d);
    for (int64_t a = 0; a < data.d; ++a) {
      const VecD x = hn::Set(d, data.x[a * data.n + j]), q = hn::Load(d, group.query + a * lanes);
      const double relative = w[a] / largest;
      distance = hn::MulAdd(SquaredDistance<false>(x, q, q), hn::Set(d, relative * relative), distance);
    }
    distance = hn::IfThenElse(hn::Eq(key, own), hn::Set(d, HUGE_VAL), distance);
    nearest = hn::IfThenElse(hn::Lt(distance, least), key, nearest);
    least = hn::Min(least, distance);
  }
  hn::Store(nearest, d, group.square);  // free until the next sums
  for (int64_t lane = lanes; lane-- > 0;) {
    const int64_t at = static_cast<int64_t>(group.square[lane]);
    for (int64_t a = 0; a < data.d; ++a) group.reference[a * lanes + lane] = data.x[a * data.n + at];
  }
}

void LeaveOneOutSums(const LeaveOneOut& data, const double* w, const int64_t* rows, int64_t count, double* sums) {
  const Doubles d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), terms = data.terms(),
                floats = 2 * lanes;  // a double is two floats
  Scratch scratch(floats * (1 + 3 * data.d + terms), 5);
  const auto take = [&](int64_t vectors) {
    return static_cast<double*>(static_cast<void*>(scratch.take(floats * vectors)));
  };
  RowGroup group{take(1), take(data.d), take(data.d), take(data.d), take(terms)};
  std::fill(group.reference, group.reference + data.d * lanes, 0.0);
  for (int64_t first = 0; first < count; first += lanes) {
    const int64_t filled = std::min(lanes, count - first);
    for (int64_t lane = 0; lane < lanes; ++lane) {  // lanes beyond the rows repeat the last one
      const int64_t row = rows[first + std::min(lane, filled - 1)];
      group.own[lane] = static_cast<double>(row);
      for (int64_t a = 0; a < data.d; ++a) group.query[a * lanes + lane] = data.x[a * data.n + row];
    }
    const auto [least, largest] = std::minmax_element(rows + first, rows + first + filled);
    group.first_own = *least;
    group.last_own = *largest;
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
