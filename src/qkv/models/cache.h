// Memory for the keys and values of a decoder.
#pragma once

#include <algorithm>
#include <span>

#include "qkv/tensor/tensor.h"

namespace qkv {

/// Room for `wanted` rows of that width; the first `used` are kept. A copied state keeps its own memory.
inline void make_room(Tensor& x, int64_t used, int64_t wanted, int64_t width) {
  const int64_t have = x.defined() ? x.size(0) : 0;
  if (have >= wanted && have > 0 && x.sole_owner()) return;
  const int64_t room = have >= wanted ? have
                       : have > 0     ? std::max(wanted, 4 * have)
                                      : 4 * wanted;  // pages that are never written cost no memory
  Tensor more = Tensor::empty({room, width});
  if (used > 0) std::copy_n(x.ptr(), used * width, more.mutable_ptr());
  x = std::move(more);
}

/// Row i moves to row to[i] <= i, unless that is negative. The rows in use are all in `to`.
inline void move_rows(Tensor& x, std::span<const int32_t> to, int64_t width) {
  make_room(x, std::ssize(to), std::ssize(to), width);
  for (size_t i = 0; i < to.size(); ++i)
    if (to[i] >= 0 && to[i] != static_cast<int32_t>(i))
      std::copy_n(x.ptr() + static_cast<int64_t>(i) * width, width, x.mutable_ptr() + to[i] * width);
}

/// Copies those rows of `from`, (m, width), to the first rows of x.
inline void keep_rows(Tensor& x, const Tensor& from, std::span<const int32_t> rows) {
  const int64_t width = from.size(1), count = std::ssize(rows);
  make_room(x, 0, count, width);
  for (int64_t i = 0; i < count; ++i)
    std::copy_n(from.ptr() + rows[static_cast<size_t>(i)] * width, width, x.mutable_ptr() + i * width);
}

}  // namespace qkv
