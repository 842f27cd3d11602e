// A tensor as rows of its last axis, cut into blocks for the threads.
#pragma once

#include <algorithm>

#include "qkv/core/parallel.h"
#include "qkv/tensor/tensor.h"

namespace qkv {

struct Rows {
  int64_t count, width;

  Rows(int64_t count_, int64_t width_) : count(count_), width(width_) {}
  /// The rows of the last axis; fails, naming the op, for a tensor without axes.
  Rows(const char* op, const Shape& shape) : count(0), width(0) {
    check(shape.rank() >= 1, "[", op, "] expected at least one axis, got shape ", shape);
    width = shape[-1];
    count = width == 0 ? 0 : shape.numel() / width;
  }

  /// body(first row, number of rows) over blocks whose size depends on the width alone; ns is the cost per element.
  template <class Body>
  void each(double ns, Body&& body) const {
    const int64_t size = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, width));
    parallel_ranges(count, size, ns * static_cast<double>(count) * static_cast<double>(width),
                    [&](int64_t begin, int64_t end) { body(begin, end - begin); });
  }
};

}  // namespace qkv
