// Rotary positions: a table of cosines and sines in double, then one pass over the tensor.
#include "qkv/ops/rotary.h"

#include <cmath>

#include "qkv/core/parallel.h"
#include "qkv/kernels/borrowed.h"
#include "qkv/kernels/rotary.h"
#include "qkv/tensor/present.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

enum class Turn { forward, back };

// A tensor as (outer, L, inner, D), where L is the axis of positions.
struct Places {
  int64_t outer, length, inner, width;

  Places(const Shape& s, HeadAxis axis)
      : outer(axis == HeadAxis::outer ? s[0] * s[1] : s[0]),
        length(axis == HeadAxis::outer ? s[2] : s[1]),
        inner(axis == HeadAxis::outer ? 1 : s[2]),
        width(s[3]) {}
};

// (L, 2, D): per position its cosines, each at both places of its pair, and its sines as -sin, sin.
Tensor angles(const Places& places, int64_t offset, const Rotation& rotation) {
  const int64_t width = places.width;
  kernels::Borrowed<double> kept;
  kept->resize(static_cast<size_t>(width / 2));
  double* const rates = kept->data();
  for (int64_t c = 0; c < width / 2; ++c)
    rates[c] = std::pow(rotation.base, -2.0 * static_cast<double>(c) / static_cast<double>(width));
  Tensor table = Tensor::empty({places.length, 2, width});
  parallel_ranges(places.length, 16, 20.0 * static_cast<double>(places.length * width),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      float *cosines = table.mutable_ptr() + i * 2 * width, *sines = cosines + width;
                      for (int64_t c = 0; c < width / 2; ++c) {
                        const double angle = static_cast<double>(offset + i) * rates[c];
                        const bool halves = rotation.pairs == RotaryPairs::halves;
                        const int64_t first = halves ? c : 2 * c, second = halves ? c + width / 2 : 2 * c + 1;
                        cosines[first] = cosines[second] = static_cast<float>(std::cos(angle));
                        sines[second] = static_cast<float>(std::sin(angle));
                        sines[first] = -sines[second];
                      }
                    }
                  });
  return table;
}

Tensor turned(const Tensor& x, const Places& places, const Tensor& table, RotaryPairs pairs, Turn turn) {
  const auto rotated = pairs == RotaryPairs::halves ? kernels::rotate_halves : kernels::rotate_pairs;
  Tensor y = Tensor::empty(x.shape());
  const int64_t width = places.width, rows = places.outer * places.length;
  parallel_ranges(rows, 16, 0.5 * static_cast<double>(x.numel()), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* cosines = table.ptr() + row % places.length * 2 * width;
      for (int64_t at = row * places.inner * width; at < (row + 1) * places.inner * width; at += width) {
        rotated(x.ptr() + at, cosines, cosines + width, y.mutable_ptr() + at, width, turn == Turn::back);
      }
    }
  });
  return y;
}

}  // namespace

// y = R x, R the rotation of every pair.   dx = R^-1 dy
Tensor rotate(const Tensor& x, HeadAxis axis, int64_t offset, const Rotation& rotation) {
  check_present("rotate", x);
  check(x.rank() == 4, "[rotate] expected ", axis == HeadAxis::outer ? "(B, H, L, D)" : "(B, L, H, D)", ", got ",
        x.shape());
  check(x.size(3) % 2 == 0, "[rotate] pairs need an even width, got ", x.shape());
  check(rotation.base > 0 && std::isfinite(rotation.base), "[rotate] the base must be positive, got ", rotation.base);
  const Places places(x.shape(), axis);
  const Tensor table = angles(places, offset, rotation);
  Tensor y = turned(x, places, table, rotation.pairs, Turn::forward);
  record("rotate", y, {&x}, [places, table, pairs = rotation.pairs](Pull& p) {
    p.give(0, turned(p.dy(), places, table, pairs, Turn::back));
  });
  return y;
}

}  // namespace qkv
