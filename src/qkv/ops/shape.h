// Differentiable changes of shape and order: elements are moved, never computed.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "qkv/tensor/tensor.h"

namespace qkv {

/// The same elements under another shape; the buffer is shared. One size may be -1: what remains.
Tensor reshape(const Tensor& x, std::span<const int64_t> sizes);
inline Tensor reshape(const Tensor& x, std::initializer_list<int64_t> sizes) {
  return reshape(x, std::span<const int64_t>(sizes.begin(), sizes.size()));
}
inline Tensor reshape(const Tensor& x, const Shape& shape) {
  return reshape(x, std::span<const int64_t>(shape.begin(), shape.end()));
}

/// Axis k of the result is axis order[k] of x; every axis once.
Tensor permute(const Tensor& x, std::span<const int> order);
inline Tensor permute(const Tensor& x, std::initializer_list<int> order) {
  return permute(x, std::span<const int>(order.begin(), order.size()));
}

/// Two axes exchanged: by default the last two.
Tensor transpose(const Tensor& x, int a = -2, int b = -1);

/// Indices begin .. end - 1 of an axis, 0 <= begin <= end <= size. Where no axis before it is larger than 1 the buffer
/// is shared.
Tensor slice(const Tensor& x, int axis, int64_t begin, int64_t end);

/// The parts one after the other along an axis; the other sizes agree.
Tensor concat(std::span<const Tensor> parts, int axis);
inline Tensor concat(std::initializer_list<Tensor> parts, int axis) {
  return concat(std::span<const Tensor>(parts.begin(), parts.size()), axis);
}

/// Each index of the axis `repeats` times in a row: a a b b.
Tensor repeat_interleave(const Tensor& x, int64_t repeats, int axis);

/// The whole tensor counts[k] times along axis k: a b a b. As in NumPy, the shorter of counts and shape is filled with
/// ones in front.
Tensor tile(const Tensor& x, std::span<const int64_t> counts);
inline Tensor tile(const Tensor& x, std::initializer_list<int64_t> counts) {
  return tile(x, std::span<const int64_t>(counts.begin(), counts.size()));
}

/// The elements of x where the mask, of the same shape, is not 0: (count).
Tensor select(const Tensor& x, const Tensor& mask);
Tensor select(const Tensor& x, const Ids& mask);

/// a where the mask is not 0, b elsewhere; all of one shape. No gradient reaches the element that was not taken.
Tensor where(const Tensor& mask, const Tensor& a, const Tensor& b);
Tensor where(const Ids& mask, const Tensor& a, const Tensor& b);

}  // namespace qkv
