// Element by element: y may be the same array as an input.
#pragma once

#include <cstdint>

namespace qkv::kernels {

void add(const float* a, const float* b, float* y, int64_t n);

}  // namespace qkv::kernels
