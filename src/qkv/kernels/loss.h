// Losses over rows: cross-entropy with its log-softmax inside, and squared error.
#pragma once

#include <cstdint>

namespace qkv::kernels {

/// Rows of logits x (rows, V) against class ids; a row whose target is negative does not count: loss 0, gradient 0.
/// With smoothing e the target distribution is w_j = e / V + (1 - e) [j = target].
struct CrossEntropy {
  const float* x;          // (rows, V)
  const int32_t* targets;  // (rows)
  float smoothing;         // e
  int64_t width;           // V
};
/// loss = lse - sum_j w_j x_j, lse = log sum e^x, both (rows).
void cross_entropy(const CrossEntropy& c, float* loss, float* lse, int64_t begin, int64_t end);
/// dx = factor dloss (e^(x - lse) - w); dloss (rows), or one number for all rows if dloss_step is 0. dx may be x.
void cross_entropy_back(const CrossEntropy& c, const float* lse, const float* dloss, int64_t dloss_step, float factor,
                        float* dx, int64_t begin, int64_t end);

/// The sum of (a - b)^2.
float squared_distance(const float* a, const float* b, int64_t n);
/// y = (a - b)^2
void squared_error(const float* a, const float* b, float* y, int64_t n);
/// da = 2 factor dy (a - b); dy (n), or one number if dy_step is 0.
void squared_error_back(const float* a, const float* b, const float* dy, int64_t dy_step, float factor, float* da,
                        int64_t n);

}  // namespace qkv::kernels
