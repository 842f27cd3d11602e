// Tensors as nested lists of numbers for JSON; a template, so that this header needs no library.
#pragma once

#include "qkv/tensor/tensor.h"

namespace qkv::report {

/// One level per axis. axis and offset: the part that is written.
template <class Json>
Json nested_json(const Tensor& x, int axis = 0, int64_t offset = 0) {
  if (axis == x.rank()) return x.ptr()[offset];
  const int64_t stride = x.shape().product(axis + 1, x.rank());
  Json list = Json::array();
  for (int64_t i = 0; i < x.size(axis); ++i) list.push_back(nested_json<Json>(x, axis + 1, offset + i * stride));
  return list;
}

}  // namespace qkv::report
