// Batch normalisation, a block of channels at a time so that rows are read along the cache line.
#include "qkv/kernels/batch_norm.h"

#include <algorithm>
#include <cmath>

#include "qkv/core/parallel.h"

namespace qkv::kernels {
namespace {

constexpr int64_t kChannels = 64;

// body(channel - begin, index) for each element of channels begin .. end - 1.
template <class Body>
void each_element(BatchNorm n, int64_t begin, int64_t end, Body&& body) {
  for (int64_t b = 0; b < n.batch; ++b)
    for (int64_t c = begin; c < end; ++c) {
      const int64_t row = (b * n.channels + c) * n.length;
      for (int64_t i = row; i < row + n.length; ++i) body(c - begin, i);
    }
}

double work_ns(BatchNorm n) { return 3 * static_cast<double>(n.batch * n.channels * n.length); }

}  // namespace

void batch_norm(BatchNorm n, const float* x, const float* gamma, const float* beta, double epsilon, float* y,
                float* mean, float* scale) {
  const double count = static_cast<double>(n.batch * n.length);
  parallel_ranges(n.channels, kChannels, work_ns(n), [&](int64_t begin, int64_t end) {
    double centre[kChannels] = {}, square[kChannels] = {};
    // pass 1: mean
    each_element(n, begin, end, [&](int64_t c, int64_t i) { centre[c] += x[i]; });
    for (int64_t c = 0; c < end - begin; ++c) centre[c] /= count;
    // pass 2: biased variance
    each_element(n, begin, end, [&](int64_t c, int64_t i) { square[c] += (x[i] - centre[c]) * (x[i] - centre[c]); });
    for (int64_t c = 0; c < end - begin; ++c) {
      square[c] = 1 / std::sqrt(square[c] / count + epsilon);
      mean[begin + c] = static_cast<float>(centre[c]);
      scale[begin + c] = static_cast<float>(square[c]);
    }
    // pass 3: normalise, scale, shift
    each_element(n, begin, end, [&](int64_t c, int64_t i) {
      y[i] = static_cast<float>((x[i] - centre[c]) * square[c] * gamma[begin + c] + beta[begin + c]);
    });
  });
}

void batch_norm_back(BatchNorm n, const float* x, const float* gamma, const float* mean, const float* scale,
                     const float* dy, float* dx, float* dgamma, float* dbeta) {
  const double count = static_cast<double>(n.batch * n.length);
  parallel_ranges(n.channels, kChannels, work_ns(n), [&](int64_t begin, int64_t end) {
    double with_normal[kChannels] = {}, alone[kChannels] = {};
    const auto normal = [&](int64_t c, int64_t i) { return (x[i] - double{mean[begin + c]}) * scale[begin + c]; };
    // dgamma = sum dy xhat, dbeta = sum dy
    each_element(n, begin, end, [&](int64_t c, int64_t i) {
      with_normal[c] += dy[i] * normal(c, i);
      alone[c] += dy[i];
    });
    for (int64_t c = 0; c < end - begin; ++c) {
      dgamma[begin + c] = static_cast<float>(with_normal[c]);
      dbeta[begin + c] = static_cast<float>(alone[c]);
    }
    if (!dx) return;
    // dx = gamma scale (dy - mean(dy) - xhat mean(dy xhat))
    each_element(n, begin, end, [&](int64_t c, int64_t i) {
      const double inner = dy[i] - alone[c] / count - normal(c, i) * (with_normal[c] / count);
      dx[i] = static_cast<float>(double{gamma[begin + c]} * scale[begin + c] * inner);
    });
  });
}

}  // namespace qkv::kernels
