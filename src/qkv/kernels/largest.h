// The largest elements of a row, and the log-sum-exp that turns scores into log-probabilities one at a time.
#pragma once

#include <cstdint>

namespace qkv::kernels {

struct Scored {
  float value;
  int32_t id;  // index in the row
};

/// The k largest of x (n) into out (k): descending, equal ones by ascending index, without NaN. Returns how many there
/// are.
int64_t largest(const float* x, int64_t n, int64_t k, Scored* out);

/// log sum e^(x - most) over a row whose largest element is `most`: log_softmax's y is (x - most) minus this, to the
/// bit. `soon`, if given, is the row (n) to be read next: it is prefetched.
float log_sum_exp(const float* x, float most, int64_t n, const float* soon = nullptr);

}  // namespace qkv::kernels
