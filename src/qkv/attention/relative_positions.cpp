// Biases by distance.
#include "qkv/attention/relative_positions.h"

#include <bit>
#include <cmath>

#include "qkv/ops/diagonals.h"

namespace qkv {

RelativeBias::RelativeBias(int64_t heads, int64_t max_distance) {
  check(heads > 0 && max_distance >= 0, "[relative_bias] expected at least one head and a distance of at least 0, got ",
        heads, " and ", max_distance);
  table = parameter(zeros({heads, 2 * max_distance + 1}));
}

Tensor RelativeBias::operator()(int64_t queries, int64_t keys, int64_t query_offset) const {
  return clipped_diagonals(table, queries, keys, query_offset);
}

Tensor Alibi::slopes() const {
  check(heads > 0, "[alibi] expected at least one head, got ", heads);
  Tensor out = Tensor::empty({heads});
  const auto whole = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  for (int64_t h = 0; h < heads; ++h) {
    const double power = h < whole ? static_cast<double>(h + 1) : static_cast<double>(h - whole) + 0.5;
    out.mutable_ptr()[h] = static_cast<float>(std::exp2(-8 * power / static_cast<double>(whole)));
  }
  return out;
}

Tensor Alibi::operator()(int64_t queries, int64_t keys, int64_t query_offset) const {
  check(queries >= 0 && keys >= 0, "[alibi] the numbers of queries and keys cannot be negative, got ", queries, " and ",
        keys);
  const Tensor slope = slopes();
  const int64_t count = diagonals_of(queries, keys);
  Tensor out = Tensor::empty({heads, count});
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t t = 0; t < count; ++t) {
      out.mutable_ptr()[h * count + t] =
          0 - slope.ptr()[h] * static_cast<float>(std::abs(t - (queries - 1) - query_offset));
    }
  }
  return out;
}

}  // namespace qkv
