// Tensors compared by the largest element of the second.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "qkv/tensor/tensor.h"

namespace qkv_test {

/// Fails unless shapes agree, all of a is finite, and no element is off by more than tolerance times the largest of b.
inline void expect_near_largest(const qkv::Tensor& a, const qkv::Tensor& b, double tolerance, const std::string& what) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  double largest = 0, worst = 0;
  for (int64_t i = 0; i < a.numel(); ++i) {
    ASSERT_TRUE(std::isfinite(a.ptr()[i])) << what;
    largest = std::max(largest, std::abs(double{b.ptr()[i]}));
    worst = std::max(worst, std::abs(double{a.ptr()[i]} - b.ptr()[i]));
  }
  EXPECT_LE(worst, tolerance * largest) << what;
}

}  // namespace qkv_test
