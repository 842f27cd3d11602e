// Index arithmetic for references: a flat index as one index per axis, and back.
#pragma once

#include <vector>

#include "unit/ops/op_table.h"

namespace qkv::tests {

using Place = std::vector<int64_t>;

inline Place place_of(const Shape& shape, int64_t flat) {
  Place place(static_cast<size_t>(shape.rank()));
  for (size_t axis = place.size(); axis-- > 0; flat /= shape[static_cast<int>(axis)])
    place[axis] = flat % shape[static_cast<int>(axis)];
  return place;
}

inline int64_t flat_of(const Shape& shape, const Place& place) {
  int64_t flat = 0;
  for (size_t axis = 0; axis < place.size(); ++axis) flat = flat * shape[static_cast<int>(axis)] + place[axis];
  return flat;
}

/// y[place] = x[from(place)] for every index of `shape`.
template <class From>
Array gathered(const Array& x, const Shape& shape, From&& from) {
  Array y(shape);
  for (int64_t i = 0; i < y.numel(); ++i) y[i] = x[flat_of(x.shape, from(place_of(shape, i)))];
  return y;
}

}  // namespace qkv::tests
