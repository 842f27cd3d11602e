// Selects, repeats and reorders rows of a decoder's state.
#pragma once

#include <span>

#include "qkv/tensor/tensor.h"

namespace qkv {

/// Row i of the result is row rows[i] of x, (R, ...) -> (rows.size(), ...); an absent x stays absent. Not recorded.
Tensor taken(const Tensor& x, std::span<const int32_t> rows);
Ids taken(const Ids& x, std::span<const int32_t> rows);

}  // namespace qkv
