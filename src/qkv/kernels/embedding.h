// Rows of a table by id, fused with scale, position and dropout.
#pragma once

#include <cstdint>

#include "qkv/kernels/dropout.h"

namespace qkv::kernels {

/// y[r] = dropout(table[ids[r]] scale + position[r mod period]); all ids are in the table.
struct EmbedForward {
  const float* table;  // (V, D)
  const int32_t* ids;  // (rows)
  float scale = 1;
  const float* position = nullptr;  // (period, D) or null
  int64_t period = 1;
  const Drop* drop = nullptr;  // null: no dropout
  float* y = nullptr;          // (rows, D)
  uint8_t* bits = nullptr;     // where decisions go, or null
  int64_t width = 0;           // D
};
void embed(const EmbedForward& e, int64_t begin, int64_t end);

/// sum[ids[r]] += dy[r] m scale in the order of r, m the decisions (null: 1); without ids the row is r mod period.
struct EmbedBackward {
  const float* dy;                // (rows, D)
  const uint8_t* bits = nullptr;  // decisions or null
  const int32_t* ids = nullptr;   // (rows) or null
  int64_t period = 1;
  float scale = 1;  // of the embedding times that of dropout
  int64_t rows = 0, width = 0;
  float* sum = nullptr;  // (table rows, D)
};
/// Columns [begin, end) of all rows; begin must be a multiple of 64. The result does not depend on how columns are cut.
void embed_back(const EmbedBackward& e, int64_t begin, int64_t end);

}  // namespace qkv::kernels
