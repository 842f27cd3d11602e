// Rows of keys and values that a mask of lengths hides become 0, so that nothing of them is left in a sum.
#pragma once

#include "qkv/attention/mask.h"
#include "qkv/core/api.h"
#include "qkv/ops/shape.h"

namespace QKV_API qkv {

/// x with 0 at every place of that axis that is not below its batch row's length; x itself without lengths. A NaN
/// there is gone too. Axis 0 is the batch.
inline Tensor only_seen(const Tensor& x, const PlainMask& mask, int axis) {
  if (!mask.lengths.defined() || x.numel() == 0) return x;
  const int64_t places = x.size(axis), outer = x.shape().product(1, axis),
                inner = x.shape().product(axis + 1, x.rank());
  Tensor seen = Tensor::empty(x.shape());
  float* to = seen.mutable_ptr();
  for (int64_t b = 0; b < x.size(0); ++b)
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < places; ++i) to = std::fill_n(to, inner, i < mask.lengths.ptr()[b] ? 1.f : 0.f);
  return where(seen, x, zeros(x.shape()));
}

}  // namespace qkv
