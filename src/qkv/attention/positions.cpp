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

Tensor sinusoidal_positions(int64_t count, int64_t width, int64_t offset, Waves waves) {
  check(count >= 0 && width > 0,
        "[sinusoidal_positions] expected a count of at least 0 and a width of at least 1, got ", count, " and ", width);
  Tensor p = Tensor::empty({count, width});
  const int64_t sines = (width + 1) / 2;
  for (int64_t column = 0; column < width; ++column) {
    const bool is_sine = waves == Waves::pairs ? column % 2 == 0 : column < sines;
    const double w = frequency(waves == Waves::pairs ? column / 2 : is_sine ? column : column - sines, width);
    for (int64_t i = 0; i < count; ++i) {
      const double angle = static_cast<double>(offset + i) * w;
      p.mutable_ptr()[i * width + column] = static_cast<float>(is_sine ? std::sin(angle) : std::cos(angle));
    }
  }
  return p;
}

Tensor position_shift(int64_t distance, int64_t pair, int64_t width) {
  const double angle = static_cast<double>(distance) * frequency(pair, width);
  const auto c = static_cast<float>(std::cos(angle)), s = static_cast<float>(std::sin(angle));
  return Tensor({2, 2}, {c, s, -s, c});
}

AddedPositions::AddedPositions(PositionKind of, int64_t count, int64_t columns, const Rng& rng, Waves order)
    : kind(of), width(columns), waves(order) {
  if (!ShapesOnly::active()) prepare();
  if (kind != PositionKind::learned) return;
  check(count > 0, "[positions] a learned table needs at least one position, got ", count);
  table = parameter(normal({count, width}, rng, 0, 0.02f));
}

void AddedPositions::prepare() {
  if (kind == PositionKind::sinusoidal) ready = sinusoidal_positions(kReadyPositions, width, 0, waves);
}

Tensor AddedPositions::operator()(int64_t count, int64_t offset) const {
  if (table.defined()) {
    check(offset + count <= table.size(0), "[positions] position ", offset + count - 1,
          " is past the learned table of ", table.size(0), " positions");
    return slice(table, 0, offset, offset + count);
  }
  if (kind != PositionKind::sinusoidal) return {};
  return ready.defined() && offset + count <= ready.size(0) ? slice(ready, 0, offset, offset + count)
                                                            : sinusoidal_positions(count, width, offset, waves);
}

}  // namespace qkv
