// Rows of a decoder's state: kept, repeated, reordered.
#pragma once

#include <span>

#include "qkv/tensor/tensor.h"

namespace qkv {

/// Row i of the result is row rows[i] of x, (R, ...) -> (rows.size(), ...); absent stays absent. Not recorded.
Tensor taken(const Tensor& x, std::span<const int32_t> rows);
Ids taken(const Ids& x, std::span<const int32_t> rows);

}  // namespace qkv
