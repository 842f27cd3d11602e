// One-dimensional convolution (cross-correlation, as usual in deep learning) by rows: each tap of the kernel adds a
// shifted row.
#pragma once

#include <cstdint>

namespace qkv::kernels {

/// x (batch, in, length), weight (out, in, taps), y (batch, out, out_length).
struct Conv1d {
  int64_t batch, in, out, length, taps, out_length;
  int64_t padding, stride, dilation;
};

/// y = bias + sum over in and taps; bias may be null.
void conv1d(const Conv1d& c, const float* x, const float* weight, const float* bias, float* y);
/// dx[b, i, l s + k d - p] += weight[o, i, k] dy[b, o, l]; dx starts from 0 unless `add`.
void conv1d_back_x(const Conv1d& c, const float* weight, const float* dy, float* dx, bool add);
/// dweight[o, i, k] += sum over b and l of dy[b, o, l] x[b, i, l s + k d - p]; from 0 unless `add`.
void conv1d_back_weight(const Conv1d& c, const float* x, const float* dy, float* dweight, bool add);

}  // namespace qkv::kernels
