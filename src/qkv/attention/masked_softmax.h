// The book's masked_softmax: with exact masking, and the way the book does it.
#pragma once

#include "qkv/core/api.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// softmax on the last axis over the first `valid_lens` entries of each row; the others are exactly 0, and so is a row
/// of length 0. x (B, n, m), valid_lens (B), the same for the n rows, or (B, n) -> (B, n, m). Without lengths it is
/// plain softmax.
Tensor masked_softmax(const Tensor& x);
Tensor masked_softmax(const Tensor& x, const Ids& valid_lens);

/// The book's way, for the lab: entries past the length are replaced by -1e6 before a plain softmax. A row of length 0
/// becomes uniform, and with scores near -1e6 masked entries get weight.
Tensor book_masked_softmax(const Tensor& x, const Ids& valid_lens);

}  // namespace qkv
