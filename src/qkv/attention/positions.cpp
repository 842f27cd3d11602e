// Sines and cosines of positions, and the learned table.
#include "qkv/attention/positions.h"

#include <cmath>

#include "qkv/core/check.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

constexpr int64_t kReadyPositions = 256;

double frequency(int64_t pair, int64_t width) {
  return std::pow(10000.0, -2.0 * static_cast<double>(pair) / static_cast<double>(width));
}

}  // namespace

Tensor sinusoidal_positions(int64_t count, int64_t width, int64_t offset) {
  check(count >= 0 && width > 0,
        "[sinusoidal_positions] expected a count of at least 0 and a width of at least 1, got ", count, " and ", width);
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

AddedPositions::AddedPositions(PositionKind kind, int64_t count, int64_t width, const Rng& rng) {
  if (kind == PositionKind::sinusoidal && !ShapesOnly::active()) waves = sinusoidal_positions(kReadyPositions, width);
  if (kind != PositionKind::learned) return;
  check(count > 0, "[positions] a learned table needs at least one position, got ", count);
  table = parameter(normal({count, width}, rng, 0, 0.02f));
}

Tensor AddedPositions::operator()(int64_t count, int64_t offset) const {
  if (table.defined()) {
    check(offset + count <= table.size(0), "[positions] position ", offset + count - 1,
          " is past the learned table of ", table.size(0), " positions");
    return slice(table, 0, offset, offset + count);
  }
  if (!waves.defined()) return {};
  return offset + count <= waves.size(0) ? slice(waves, 0, offset, offset + count)
                                         : sinusoidal_positions(count, waves.size(1), offset);
}

}  // namespace qkv
