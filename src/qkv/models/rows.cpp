// Copies rows.
#include "qkv/models/rows.h"

#include <algorithm>

#include "qkv/core/parallel.h"

namespace qkv {

Tensor taken(const Tensor& x, std::span<const int32_t> rows) {
  if (!x.defined()) return x;
  Shape shape = x.shape();
  const int64_t width = x.numel() / std::max<int64_t>(1, shape[0]), count = static_cast<int64_t>(rows.size());
  shape.set(0, count);
  Tensor out = Tensor::empty(shape);
  parallel_ranges(count, 16, 0.3 * static_cast<double>(count * width), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      std::copy_n(x.ptr() + rows[static_cast<size_t>(i)] * width, width, out.mutable_ptr() + i * width);
  });
  return out;
}

Ids taken(const Ids& x, std::span<const int32_t> rows) {
  if (!x.defined()) return x;
  Shape shape = x.shape();
  const int64_t width = x.numel() / std::max<int64_t>(1, shape[0]);
  shape.set(0, static_cast<int64_t>(rows.size()));
  Ids out = Ids::empty(shape);
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy_n(x.ptr() + rows[i] * width, width, out.mutable_ptr() + static_cast<int64_t>(i) * width);
  return out;
}

}  // namespace qkv
