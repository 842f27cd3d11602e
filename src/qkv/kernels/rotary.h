// Rotation of pairs of neighbouring elements, each by its own angle.
#pragma once

#include <cstdint>

namespace qkv::kernels {

/// y[2c] = cos x[2c] - sin x[2c + 1], y[2c + 1] = cos x[2c + 1] + sin x[2c] for n elements, n even; n numbers each in
/// the tables: the cosines twice, and the sines as -sin, sin. `back` rotates the other way. y may be x.
void rotate_pairs(const float* x, const float* cosines, const float* sines, float* y, int64_t n, bool back);

}  // namespace qkv::kernels
