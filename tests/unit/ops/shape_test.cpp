// Shape ops beyond the op table: all orders, shared buffers, repeated inputs and errors.
#include "qkv/ops/shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "qkv/ops/reduce.h"
#include "qkv/tensor/tape.h"
#include "unit/ops/expect_error.h"
#include "unit/ops/places.h"

namespace qkv::tests {
namespace {

TEST(Permute, EveryOrderOfFourAxesAgreesWithTheDefinition) {
  for (const Shape& shape : {Shape{3, 5, 4, 9}, Shape{2, 1, 33, 8}, Shape{40, 3, 2, 37}}) {
    const Tensor x = uniform(shape, Rng(7));
    std::vector<int> order = {0, 1, 2, 3};
    do {
      const Tensor y = permute(x, order);
      for (int k = 0; k < 4; ++k) ASSERT_EQ(y.size(k), shape[order[static_cast<size_t>(k)]]);
      for (int64_t i = 0; i < y.numel(); ++i) {
        const Place to = place_of(y.shape(), i);
        Place from(4);
        for (size_t k = 0; k < 4; ++k) from[static_cast<size_t>(order[k])] = to[k];
        ASSERT_EQ(y.ptr()[i], x.ptr()[flat_of(shape, from)])
            << order[0] << order[1] << order[2] << order[3] << " at " << i;
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST(Permute, OfSixAxesAndBackIsTheSame) {
  const Tensor x = uniform({2, 3, 4, 5, 2, 3}, Rng(8));
  const Tensor y = permute(permute(x, {5, 3, 1, 0, 2, 4}), {3, 2, 4, 1, 5, 0});
  EXPECT_EQ(y.shape(), x.shape());
  EXPECT_TRUE(std::equal(x.data().begin(), x.data().end(), y.data().begin()));
}

TEST(Transpose, ExchangesTwoAxes) {
  const Tensor x = uniform({2, 3, 5}, Rng(9));
  EXPECT_EQ(transpose(x).shape(), Shape({2, 5, 3}));
  EXPECT_EQ(transpose(x).at({1, 4, 2}), x.at({1, 2, 4}));
  EXPECT_EQ(transpose(x, 0, 2).at({4, 2, 1}), x.at({1, 2, 4}));
  const Tensor large = uniform({1030, 517}, Rng(10));
  const Tensor turned = transpose(large);
  for (int64_t i : {0, 31, 32, 516})
    for (int64_t j : {0, 33, 1024, 1029}) EXPECT_EQ(turned.at({i, j}), large.at({j, i}));
}

TEST(Reshape, SharesTheBuffer) {
  const Tensor x = uniform({4, 6}, Rng(11));
  EXPECT_EQ(reshape(x, {2, -1}).ptr(), x.ptr());
  EXPECT_EQ(reshape(x, {2, -1}).shape(), Shape({2, 12}));
  EXPECT_EQ(reshape(x, Shape{24}).shape(), Shape({24}));
  EXPECT_EQ(reshape(zeros({0, 3}), {-1, 3}).shape(), Shape({0, 3}));
}

TEST(Slice, OfTheFirstAxisSharesTheBufferAndOthersDoNot) {
  const Tensor x = uniform({4, 6}, Rng(12));
  EXPECT_EQ(slice(x, 0, 1, 3).ptr(), x.ptr() + 6);
  EXPECT_NE(slice(x, 1, 0, 3).ptr(), x.ptr());
  EXPECT_EQ(slice(reshape(x, {1, 4, 6}), 1, 2, 4).ptr(), x.ptr() + 12);
}

TEST(Slice, GradientsOfOverlappingSlicesAdd) {
  const Tensor x = parameter(zeros({3, 20}));
  Tape tape;
  const Tensor rows = slice(x, 0, 0, 2), wide = slice(x, 1, 2, 19), narrow = slice(x, 1, 3, 5);
  tape.backward(sum(concat({reshape(rows, {-1}), reshape(wide, {-1}), reshape(narrow, {-1})}, 0)));
  const Tensor dx = tape.grad(x);
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 20; ++j) {
      const int expected = (i < 2) + (j >= 2 && j < 19) + (j >= 3 && j < 5);
      EXPECT_EQ(dx.at({i, j}), static_cast<float>(expected)) << i << ", " << j;
    }
}

TEST(Concat, TakesTheSameTensorTwiceAndManyOfThem) {
  const Tensor x = parameter(Tensor({2}, {1, 2})), constant({1}, {9});
  Tape tape;
  std::vector<Tensor> parts(40, x);
  parts.push_back(constant);
  const Tensor y = concat(parts, 0);
  EXPECT_EQ(y.numel(), 81);
  EXPECT_EQ(y.at({79}), 2);
  EXPECT_EQ(y.at({80}), 9);
  tape.backward(sum(y));
  EXPECT_EQ(tape.grad(x).at({1}), 40);
}

TEST(Where, KeepsNaNOfTheOtherSideOutOfValuesAndGradients) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor a = parameter(Tensor({3}, {1, nan, 3})), b = parameter(Tensor({3}, {nan, 5, nan}));
  Tape tape;
  const Tensor y = where(Ids({3}, {1, 0, 1}), a, b);
  EXPECT_EQ(y.at({0}), 1);
  EXPECT_EQ(y.at({1}), 5);
  EXPECT_EQ(y.at({2}), 3);
  tape.backward(y, Tensor({3}, {2, 4, 8}));
  EXPECT_EQ(tape.grad(a).at({1}), 0);
  EXPECT_EQ(tape.grad(a).at({2}), 8);
  EXPECT_EQ(tape.grad(b).at({1}), 4);
  EXPECT_EQ(tape.grad(b).at({0}), 0);
}

TEST(Select, TakesNothingOrEverything) {
  const Tensor x = uniform({3, 5}, Rng(13));
  EXPECT_EQ(select(x, zeros({3, 5})).shape(), Shape({0}));
  EXPECT_EQ(select(x, ones({3, 5})).shape(), Shape({15}));
}

// Several blocks of each kernel at once, forward and back.
TEST(ShapeOps, OfLargeTensorsUndoEachOther) {
  const Tensor x = parameter(uniform({16, 100, 8, 33}, Rng(14)));
  Tape tape;
  const Tensor turned = permute(x, {0, 2, 1, 3});
  const Tensor back = permute(concat({slice(turned, 2, 0, 41), slice(turned, 2, 41, 100)}, 2), {0, 2, 1, 3});
  EXPECT_TRUE(std::equal(x.data().begin(), x.data().end(), back.data().begin()));
  const Tensor dy = uniform(x.shape(), Rng(15));
  tape.backward(back, dy);
  const Tensor dx = tape.grad(x);
  EXPECT_TRUE(std::equal(dy.data().begin(), dy.data().end(), dx.data().begin()));
}

TEST(ShapeOps, OfLargeTensorsRepeatAndSumBack) {
  const Tensor x = parameter(uniform({30, 4, 257}, Rng(16)));
  Tape tape;
  const Tensor y = tile(repeat_interleave(x, 3, 1), {2, 1, 1});
  EXPECT_EQ(y.shape(), Shape({60, 12, 257}));
  EXPECT_EQ(y.at({59, 11, 256}), x.at({29, 3, 256}));
  EXPECT_EQ(y.at({31, 5, 7}), x.at({1, 1, 7}));
  tape.backward(y, ones(y.shape()));
  for (float g : tape.grad(x).data()) ASSERT_EQ(g, 6);
}

TEST(ShapeOps, SplitGivesTheSizesAskedForAndConcatUndoesIt) {
  const Tensor x = uniform({2, 7, 3}, Rng(17));
  const std::vector<Tensor> parts = split(x, {4, 0, 3}, 1);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].shape(), Shape({2, 4, 3}));
  EXPECT_EQ(parts[1].shape(), Shape({2, 0, 3}));
  EXPECT_EQ(parts[2].at({1, 2, 0}), x.at({1, 6, 0}));
  const Tensor back = concat(parts, 1);
  EXPECT_TRUE(std::equal(x.data().begin(), x.data().end(), back.data().begin()));
  EXPECT_EQ(split(x, 7, -2)[6].shape(), Shape({2, 1, 3}));
}

TEST(ShapeOps, ASliceOfIdsHasItsColumns) {
  const Ids x({2, 3}, {1, 2, 3, 4, 5, 6});
  const Ids in = slice(x, 1, 0, 2), next = slice(x, -1, 1, 3), row = slice(x, 0, 1, 2);
  EXPECT_EQ(std::vector<int32_t>(in.data().begin(), in.data().end()), (std::vector<int32_t>{1, 2, 4, 5}));
  EXPECT_EQ(std::vector<int32_t>(next.data().begin(), next.data().end()), (std::vector<int32_t>{2, 3, 5, 6}));
  EXPECT_EQ(row.shape(), Shape({1, 3}));
  EXPECT_EQ(row.data()[0], 4);
  expect_error([&] { slice(x, 1, 2, 4); }, "[slice] 2:4 is outside axis 1 of shape (2, 3)");
}

TEST(ShapeOps, PatchesAreReadRowByRowWithTheirChannelsFirst) {
  const Tensor x = reshape(arange(0, 32), {1, 2, 4, 4});
  const Tensor y = patches(x, 2);
  EXPECT_EQ(y.shape(), Shape({1, 4, 8}));
  const std::vector<float> second(y.ptr() + 8, y.ptr() + 16);
  EXPECT_EQ(second, (std::vector<float>{2, 3, 6, 7, 18, 19, 22, 23}));
}

TEST(ShapeOps, SayWhatIsWrong) {
  const Tensor x = zeros({2, 3}), y = zeros({3, 2});
  expect_error([&] { reshape(x, {4, 2}); }, "[reshape] the number of elements differs: (2, 3) to (4, 2)");
  expect_error([&] { reshape(x, {-1, 4}); }, "[reshape] no size for the -1 fits: (2, 3) to (-1, 4)");
  expect_error([&] { reshape(x, {-1, -1}); }, "[reshape] sizes must be at least 0, one may be -1: (2, 3) to (-1, -1)");
  expect_error([&] { reshape(x, {-2, 3}); }, "[reshape] sizes must be at least 0, one may be -1: (2, 3) to (-2, 3)");
  expect_error([&] { reshape(zeros({0}), {0, -1}); }, "[reshape] no size for the -1 fits: (0,) to (0, -1)");
  expect_error([&] { permute(x, {0, 1, 2}); }, "[permute] an order of 3 axes for shape (2, 3)");
  expect_error([&] { permute(x, {0, 2}); }, "[permute] axis 2 is outside a tensor of 2 axes");
  expect_error([&] { permute(x, {0, -2}); }, "[permute] axis -2 is named twice for shape (2, 3)");
  expect_error([&] { transpose(zeros({3})); }, "[transpose] axis -2 is outside a tensor of 1 axes");
  expect_error([&] { slice(x, 1, 2, 4); }, "[slice] 2:4 is outside axis 1 of shape (2, 3)");
  expect_error([&] { slice(x, 0, -1, 1); }, "[slice] -1:1 is outside axis 0 of shape (2, 3)");
  expect_error([&] { slice(x, 0, 2, 1); }, "[slice] 2:1 is outside axis 0 of shape (2, 3)");
  expect_error([&] { slice(x, 2, 0, 1); }, "[slice] axis 2 is outside a tensor of 2 axes");
  expect_error([&] { concat({x, y}, 0); }, "[concat] shapes differ outside axis 0: (2, 3) and (3, 2)");
  expect_error([&] { concat({x, zeros({2})}, 0); }, "[concat] shapes differ outside axis 0: (2, 3) and (2,)");
  expect_error([&] { concat(std::span<const Tensor>(), 0); }, "[concat] nothing to join: expected at least one tensor");
  expect_error([&] { concat({x}, 2); }, "[concat] axis 2 is outside a tensor of 2 axes");
  expect_error([&] { repeat_interleave(x, -1, 0); },
               "[repeat_interleave] the count cannot be negative: -1 for shape (2, 3)");
  expect_error([&] { repeat_interleave(x, int64_t{1} << 62, 0); },
               "[repeat_interleave] too many elements: (2, 3) times 4611686018427387904");
  expect_error([&] { repeat_interleave(x, 2, 5); }, "[repeat_interleave] axis 5 is outside a tensor of 2 axes");
  expect_error([&] { tile(x, {2, -1}); }, "[tile] expected at most 6 counts of 0 or more: (2, -1) for shape (2, 3)");
  expect_error(
      [&] {
        tile(x, {1, 1, 1, 1, 1, 1, 1});
      },
      "[tile] expected at most 6 counts of 0 or more: (1, 1, 1, 1, 1, 1, 1) for shape (2, 3)");
  expect_error([&] { unsqueeze(x, 3); }, "[unsqueeze] axis 3 is outside a tensor of 3 axes");
  expect_error(
      [&] {
        unsqueeze(zeros({1, 1, 1, 1, 1, 1}), 0);
      },
      "[unsqueeze] at most 6 axes: no room for one more in (1, 1, 1, 1, 1, 1)");
  expect_error([&] { stack({x, y}); }, "[stack] shapes differ: (2, 3) and (3, 2)");
  expect_error([&] { stack(std::span<const Tensor>()); }, "[stack] nothing to stack: expected one tensor or more");
  expect_error([&] { split(x, {1, 1}, 1); }, "[split] the sizes sum to 2, axis 1 of shape (2, 3) has 3");
  expect_error([&] { split(x, {4, -1}, 1); }, "[split] a size cannot be negative: -1 for shape (2, 3)");
  expect_error([&] { split(x, 2, 1); }, "[split] axis 1 of shape (2, 3) cannot be cut into equal parts: 2");
  expect_error([&] { broadcast_to(x, {4, 3}); }, "[broadcast_to] shapes do not broadcast: (2, 3) and (4, 3)");
  expect_error([&] { broadcast_to(x, {1, 3}); }, "[broadcast_to] (2, 3) does not broadcast to (1, 3)");
  expect_error([&] { broadcast_to(x, {3}); }, "[broadcast_to] (2, 3) does not broadcast to (3,)");
  expect_error([&] { gather_rows(x, Ids({2}, {0, 2})); }, "[gather_rows] row 2 is outside shape (2, 3)");
  expect_error([&] { gather_rows(x, Ids({1}, {-1})); }, "[gather_rows] row -1 is outside shape (2, 3)");
  expect_error([&] { gather_rows(scalar(1), Ids({1}, {0})); }, "[gather_rows] a scalar has no rows");
  expect_error([&] { patches(x, 2); }, "[patches] images are (B, C, H, W), got (2, 3)");
  expect_error(
      [&] {
        patches(zeros({1, 1, 4, 6}), 4);
      },
      "[patches] images of shape (1, 1, 4, 6) cannot be cut into patches of size 4");
  expect_error([&] { select(x, y); }, "[select] the mask has a different shape: (2, 3) and (3, 2)");
  expect_error([&] { where(ones({2, 3}), x, y); }, "[where] shapes differ: (2, 3) and (3, 2)");
  expect_error([&] { where(y, x, x); }, "[where] the mask has a different shape: (3, 2) and (2, 3)");
}

}  // namespace
}  // namespace qkv::tests
