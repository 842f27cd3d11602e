// Dropout (Srivastava et al., 2014).
#pragma once

#include "qkv/core/api.h"
#include "qkv/tensor/run.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// In training each element is 0 with probability rate, else x / (1 - rate), drawn from the run's stream; outside
/// training it is x itself. (...) -> (...)
Tensor dropout(const Tensor& x, float rate, const Run& run);

/// Whether dropout does anything in this run; fails, naming the op, unless 0 <= rate < 1.
bool drops(const char* op, float rate, const Run& run);

/// Tells the tape that an op draws from the run's stream.
void note_draw(const char* op, const Run& run);

/// Room for the decisions of rows x width elements, kept for the pullback.
Buffer keep_bits(int64_t rows, int64_t width);

}  // namespace qkv
