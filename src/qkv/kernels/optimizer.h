// One pass over flat arenas: a parameter is read and written once per step.
#pragma once

#include <cstdint>

namespace qkv::kernels {

struct AdamStep {
  float rate;  // learning rate
  float beta1, beta2, epsilon;
  float correction1, correction2;  // 1 / (1 - beta^step)
  float decay;                     // decoupled weight decay: w -= rate * decay * w
  float l2;                        // added to the gradient: g += l2 * w
  float gradient_scale;            // the clipping factor: gradients are never scaled in place
};
void adam(float* w, const float* g, float* m, float* v, int64_t n, const AdamStep& step);

struct SgdStep {
  float rate, momentum, l2, gradient_scale;
};
/// velocity may be null if momentum is 0.
void sgd(float* w, const float* g, float* velocity, int64_t n, const SgdStep& step);

/// average += share * (w - average), each product and sum rounded separately.
void approach(float* average, const float* w, float share, int64_t n);

/// The sum of squares in double, in a fixed order.
double sum_of_squares(const float* x, int64_t n);

}  // namespace qkv::kernels
