// The check that a tensor has values.
#pragma once

#include "qkv/core/api.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// Fails, naming the op, if a Tensor or Ids is absent: its shape () is that of a scalar, so a shape check would let it
/// pass. An op with several tensors names the argument as well.
template <class T>
void check_present(const char* op, const T& x) {
  check(x.defined(), "[", op, "] the tensor is absent: it has no values");
}
template <class T>
void check_present(const char* op, const T& x, const char* name) {
  check(x.defined(), "[", op, "] the tensor \"", name, "\" is absent: it has no values");
}

}  // namespace qkv
