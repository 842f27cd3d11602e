// Initialisers.
#include "qkv/nn/init.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace qkv {

Tensor xavier_uniform(const Shape& shape, const Rng& rng) {
  check(shape.rank() >= 2, "[xavier_uniform] expected at least two axes, got ", shape);
  const double fan_in = static_cast<double>(shape[-1]),
               fan_out = static_cast<double>(shape.product(0, shape.rank() - 1));
  const float a = static_cast<float>(std::sqrt(6 / std::max(fan_in + fan_out, 1.0)));
  return uniform(shape, rng, -a, a);
}

Tensor fan_in_uniform(const Shape& shape, int64_t fan_in, const Rng& rng) {
  const float a = static_cast<float>(1 / std::sqrt(static_cast<double>(std::max<int64_t>(fan_in, 1))));
  return uniform(shape, rng, -a, a);
}

Tensor orthogonal(int64_t rows, int64_t columns, const Rng& rng) {
  // Gram-Schmidt, twice for accuracy, on `count` normal vectors of length `length`.
  const int64_t count = std::min(rows, columns), length = std::max(rows, columns);
  const Tensor noise = normal({count, length}, rng);
  std::vector<double> q(noise.data().begin(), noise.data().end());
  const auto row = [&](int64_t i) { return q.data() + i * length; };
  for (int64_t i = 0; i < count; ++i) {
    for (int pass = 0; pass < 2; ++pass)
      for (int64_t j = 0; j < i; ++j) {
        double dot = 0;
        for (int64_t k = 0; k < length; ++k) dot += row(i)[k] * row(j)[k];
        for (int64_t k = 0; k < length; ++k) row(i)[k] -= dot * row(j)[k];
      }
    double norm = 0;
    for (int64_t k = 0; k < length; ++k) norm += row(i)[k] * row(i)[k];
    for (int64_t k = 0; k < length; ++k) row(i)[k] /= std::sqrt(norm);
  }
  Tensor w = Tensor::empty({rows, columns});
  for (int64_t i = 0; i < count; ++i)
    for (int64_t k = 0; k < length; ++k)
      w.mutable_ptr()[rows <= columns ? i * columns + k : k * columns + i] = static_cast<float>(row(i)[k]);
  return w;
}

}  // namespace qkv
