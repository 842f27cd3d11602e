// Rows of a table by id.
#pragma once

#include "qkv/core/api.h"
#include "qkv/tensor/run.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// table[id]. table (V, D), ids (...) in [0, V) -> (..., D)
Tensor embedding(const Tensor& table, const Ids& ids);

/// dropout(table[id] * scale + position[index on the last axis of ids]) in one pass. table (V, D), ids (..., L),
/// position (L or more, D) or absent -> (..., L, D). To continue a sequence, pass a slice of the positions.
Tensor embedding_scaled_position(const Tensor& table, const Ids& ids, float scale, const Tensor& position, float rate,
                                 const Run& run);

}  // namespace qkv
