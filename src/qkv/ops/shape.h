// Differentiable changes of shape and order: elements are moved, never computed.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// The same elements under another shape; the buffer is shared. One size may be -1: it is inferred.
Tensor reshape(const Tensor& x, std::span<const int64_t> sizes);
inline Tensor reshape(const Tensor& x, std::initializer_list<int64_t> sizes) {
  return reshape(x, std::span<const int64_t>(sizes.begin(), sizes.size()));
}
inline Tensor reshape(const Tensor& x, const Shape& shape) {
  return reshape(x, std::span<const int64_t>(shape.begin(), shape.end()));
}

/// The same elements with one more axis, of size 1, which is axis `axis` of the result: (2, 3) at 0 -> (1, 2, 3), at -1
/// -> (2, 3, 1).
Tensor unsqueeze(const Tensor& x, int axis);

/// Axis k of the result is axis order[k] of x; every axis once.
Tensor permute(const Tensor& x, std::span<const int> order);
inline Tensor permute(const Tensor& x, std::initializer_list<int> order) {
  return permute(x, std::span<const int>(order.begin(), order.size()));
}

/// Two axes exchanged: by default the last two.
Tensor transpose(const Tensor& x, int a = -2, int b = -1);

/// Indices begin .. end - 1 of an axis, 0 <= begin <= end <= size. Shares the buffer if all earlier axes are 1.
Tensor slice(const Tensor& x, int axis, int64_t begin, int64_t end);
Ids slice(const Ids& x, int axis, int64_t begin, int64_t end);

/// The parts joined along an axis; the other sizes must agree.
Tensor concat(std::span<const Tensor> parts, int axis);
inline Tensor concat(std::initializer_list<Tensor> parts, int axis) {
  return concat(std::span<const Tensor>(parts.begin(), parts.size()), axis);
}

/// Tensors of one shape side by side along a new axis of the result: n of (2, 3) at 0 -> (n, 2, 3).
Tensor stack(std::span<const Tensor> parts, int axis = 0);
inline Tensor stack(std::initializer_list<Tensor> parts, int axis = 0) {
  return stack(std::span<const Tensor>(parts.begin(), parts.size()), axis);
}

/// The inverse of concat: parts of these sizes along an axis, or `count` parts of equal size.
std::vector<Tensor> split(const Tensor& x, std::span<const int64_t> sizes, int axis);
inline std::vector<Tensor> split(const Tensor& x, std::initializer_list<int64_t> sizes, int axis) {
  return split(x, std::span<const int64_t>(sizes.begin(), sizes.size()), axis);
}
std::vector<Tensor> split(const Tensor& x, int64_t count, int axis);

/// Each index of the axis `repeats` times in a row: a a b b.
Tensor repeat_interleave(const Tensor& x, int64_t repeats, int axis);

/// The whole tensor counts[k] times along axis k: a b a b. As in NumPy, the shorter of counts and shape is padded with
/// ones in front.
Tensor tile(const Tensor& x, std::span<const int64_t> counts);
inline Tensor tile(const Tensor& x, std::initializer_list<int64_t> counts) {
  return tile(x, std::span<const int64_t>(counts.begin(), counts.size()));
}

/// x repeated until it has `shape`, by NumPy's rules of broadcasting.
Tensor broadcast_to(const Tensor& x, const Shape& shape);

/// x[rows[i]] for every i, along the first axis: x (N, ...), rows (...) in [0, N) -> (rows' shape, x's other axes).
Tensor gather_rows(const Tensor& x, const Ids& rows);

/// Square patches of images, row by row, each flattened with its channels first: (B, C, H, W), H and W multiples of
/// `size` -> (B, H / size * W / size, C * size * size).
Tensor patches(const Tensor& images, int64_t size);

/// The elements of x where the mask, of the same shape, is not 0: (count).
Tensor select(const Tensor& x, const Tensor& mask);
Tensor select(const Tensor& x, const Ids& mask);

/// a where the mask is not 0, b elsewhere; all of the same shape. Elements that were not taken get no gradient.
Tensor where(const Tensor& mask, const Tensor& a, const Tensor& b);
Tensor where(const Ids& mask, const Tensor& a, const Tensor& b);

}  // namespace qkv
