// Changes of shape that are made of other ops.
#include "qkv/ops/embedding.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/present.h"

namespace qkv {

Tensor unsqueeze(const Tensor& x, int axis) {
  check_present("unsqueeze", x);
  check(x.rank() < Shape::kMaxRank, "[unsqueeze] at most ", Shape::kMaxRank, " axes: no room for one more in ",
        x.shape());
  axis = normal_axis("unsqueeze", axis, x.rank() + 1);
  Shape shape;
  for (int k = 0; k <= x.rank(); ++k) shape.push_back(k < axis ? x.size(k) : k == axis ? 1 : x.size(k - 1));
  return reshape(x, shape);
}

Tensor stack(std::span<const Tensor> parts, int axis) {
  check(!parts.empty(), "[stack] nothing to stack: expected one tensor or more");
  for (const Tensor& part : parts) check_present("stack", part);
  const int rank = parts[0].rank() + 1;
  check(rank <= Shape::kMaxRank, "[stack] at most ", Shape::kMaxRank, " axes: no room for one more in ",
        parts[0].shape());
  axis = normal_axis("stack", axis, rank);
  std::vector<Tensor> thick;
  thick.reserve(parts.size());
  for (const Tensor& part : parts) {
    check(part.shape() == parts[0].shape(), "[stack] shapes differ: ", parts[0].shape(), " and ", part.shape());
    thick.push_back(unsqueeze(part, axis));
  }
  return concat(thick, axis);
}

std::vector<Tensor> split(const Tensor& x, std::span<const int64_t> sizes, int axis) {
  check_present("split", x);
  axis = normal_axis("split", axis, x.rank());
  int64_t total = 0;
  for (const int64_t size : sizes) {
    check(size >= 0, "[split] a size cannot be negative: ", size, " for shape ", x.shape());
    total += size;
  }
  check(total == x.size(axis), "[split] the sizes sum to ", total, ", axis ", axis, " of shape ", x.shape(), " has ",
        x.size(axis));
  std::vector<Tensor> parts;
  parts.reserve(sizes.size());
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    parts.push_back(slice(x, axis, begin, begin + size));
    begin += size;
  }
  return parts;
}

std::vector<Tensor> split(const Tensor& x, int64_t count, int axis) {
  check_present("split", x);
  axis = normal_axis("split", axis, x.rank());
  check(count > 0 && x.size(axis) % count == 0, "[split] axis ", axis, " of shape ", x.shape(),
        " cannot be cut into equal parts: ", count);
  return split(x, std::vector<int64_t>(static_cast<size_t>(count), x.size(axis) / count), axis);
}

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  check_present("broadcast_to", x);
  check(x.rank() <= shape.rank() && broadcast("broadcast_to", x.shape(), shape) == shape, "[broadcast_to] ", x.shape(),
        " does not broadcast to ", shape);
  std::vector<int64_t> counts;
  for (int k = 0; k < shape.rank(); ++k) {
    const int from = k - (shape.rank() - x.rank());
    counts.push_back(from < 0 || x.size(from) == 1 ? shape[k] : 1);
  }
  return tile(x, counts);
}

Tensor gather_rows(const Tensor& x, const Ids& rows) {
  check_present("gather_rows", x, "x");
  check_present("gather_rows", rows, "rows");
  check(x.rank() >= 1, "[gather_rows] a scalar has no rows");
  check(rows.rank() + x.rank() - 1 <= Shape::kMaxRank, "[gather_rows] more than ", Shape::kMaxRank, " axes: rows ",
        rows.shape(), " of ", x.shape());
  for (const int32_t row : rows.data())
    check(row >= 0 && row < x.size(0), "[gather_rows] row ", row, " is outside shape ", x.shape());
  Shape shape = rows.shape();
  for (int k = 1; k < x.rank(); ++k) shape.push_back(x.size(k));
  return reshape(embedding(reshape(x, {x.size(0), x.shape().product(1, x.rank())}), rows), shape);
}

// (B, C, h, size, w, size) -> (B, h, w, C, size, size) -> (B, h w, C size size)
Tensor patches(const Tensor& images, int64_t size) {
  check_present("patches", images);
  check(images.rank() == 4, "[patches] images are (B, C, H, W), got ", images.shape());
  const int64_t batch = images.size(0), channels = images.size(1);
  check(size > 0 && images.size(2) % size == 0 && images.size(3) % size == 0, "[patches] images of shape ",
        images.shape(), " cannot be cut into patches of size ", size);
  const int64_t high = images.size(2) / size, wide = images.size(3) / size;
  const Tensor cut = reshape(images, {batch, channels, high, size, wide, size});
  return reshape(permute(cut, {0, 2, 4, 1, 3, 5}), {batch, high * wide, channels * size * size});
}

}  // namespace qkv
