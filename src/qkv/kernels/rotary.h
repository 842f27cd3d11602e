// Rotation of pairs of elements, each by its own angle; a pair is two neighbours, or one element of either half.
#pragma once

#include <cstdint>

namespace qkv::kernels {

/// y[2c] = cos x[2c] - sin x[2c + 1], y[2c + 1] = cos x[2c + 1] + sin x[2c] for n elements, n even; n numbers each in
/// the tables: the cosines twice, and the sines as -sin, sin. `back` rotates the other way. y may be x.
void rotate_pairs(const float* x, const float* cosines, const float* sines, float* y, int64_t n, bool back);

/// The same for the pairs (c, c + n / 2): y[c] = cos x[c] - sin x[c + n / 2], y[c + n / 2] = cos x[c + n / 2] + sin
/// x[c]. The tables: the cosines twice, one half after the other, and the sines as -sin in the first half, sin in the
/// second.
void rotate_halves(const float* x, const float* cosines, const float* sines, float* y, int64_t n, bool back);

}  // namespace qkv::kernels
