// Tensors as text.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "qkv/core/check.h"
#include "qkv/tensor/tensor.h"

namespace qkv {
namespace {

TEST(Print, ShapeAndElements) {
  EXPECT_EQ(text(Tensor({2, 3}, {1, 2, 3, 4, 5, 2.f / 3})), "(2, 3) [[1, 2, 3], [4, 5, 0.6667]]");
  EXPECT_EQ(text(Tensor({2}, {NAN, -INFINITY})), "(2,) [nan, -inf]");
  EXPECT_EQ(text(scalar(-1e-7f)), "-1e-07");
  EXPECT_EQ(text(Tensor()), "absent tensor");
  EXPECT_EQ(text(zeros({2, 0})), "(2, 0) [[], []]");
  EXPECT_EQ(text(zeros({0})), "(0,) []");
  EXPECT_EQ(text(Ids({1, 2}, {7, -1})), "(1, 2) [[7, -1]]");
  EXPECT_EQ(text(Ids()), "absent tensor");
}

TEST(Print, OfALongAxisItsEnds) {
  EXPECT_EQ(text(arange(0, 7)), "(7,) [0, 1, 2, 3, 4, 5, 6]");
  EXPECT_EQ(text(arange(0, 8)), "(8,) [0, 1, 2, ..., 5, 6, 7]");
  EXPECT_EQ(text(arange(0, 1000)), "(1000,) [0, 1, 2, ..., 997, 998, 999]");
}

TEST(Print, Streams) {
  std::ostringstream out;
  out << Tensor({1}, {0.5f}) << ' ' << Ids({1}, {3});
  EXPECT_EQ(out.str(), "(1,) [0.5] (1,) [3]");
}

}  // namespace
}  // namespace qkv
