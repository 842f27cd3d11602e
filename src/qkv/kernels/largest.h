// The largest elements of a row, and what turns a row of scores into log-probabilities without writing all of them.
#pragma once

#include <cstdint>

namespace qkv::kernels {

struct Scored {
  float value;
  int32_t id;  // place in the row
};

/// The k largest of x (n) into out (k): descending, equal ones by ascending place, NaN left out. Returns how many there
/// are.
int64_t largest(const float* x, int64_t n, int64_t k, Scored* out);

/// log sum e^(x - most) over a row whose largest element is `most`: log_softmax's y is (x - most) less this, to the
/// bit. `soon`, if given, is a row (n) that is read next: it is fetched meanwhile.
float log_sum_exp(const float* x, float most, int64_t n, const float* soon = nullptr);

}  // namespace qkv::kernels
