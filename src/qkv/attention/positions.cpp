// Sines and cosines of positions.
#include "qkv/attention/positions.h"

#include <cmath>

#include "qkv/core/check.h"

namespace qkv {
namespace {

double frequency(int64_t pair, int64_t width) { return std::pow(10000.0, -2.0 * static_cast<double>(pair) / static_cast<double>(width)); }

}  // namespace

Tensor sinusoidal_positions(int64_t count, int64_t width, int64_t offset) {
  check(count >= 0 && width > 0, "[sinusoidal_positions] expected a count of at least 0 and a width of at least 1, got ", count, " and ", width);
  Tensor p = Tensor::empty({count, width});
  for (int64_t column = 0; column < width; ++column) {
    const double w = frequency(column / 2, width);
    for (int64_t i = 0; i < count; ++i) {
      const double angle = static_cast<double>(offset + i) * w;
      p.mutable_ptr()[i * width + column] = static_cast<float>(column % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  return p;
}

Tensor position_shift(int64_t distance, int64_t pair, int64_t width) {
  const double angle = static_cast<double>(distance) * frequency(pair, width);
  const auto c = static_cast<float>(std::cos(angle)), s = static_cast<float>(std::sin(angle));
  return Tensor({2, 2}, {c, s, -s, c});
}

}  // namespace qkv
