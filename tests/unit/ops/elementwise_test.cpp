// Element-wise ops outside the table: what does not broadcast, and threads.
#include "qkv/ops/elementwise.h"

#include <gtest/gtest.h>

#include "qkv/core/parallel.h"

namespace qkv {
namespace {

std::string error_of(auto&& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST(Elementwise, ShapesThatDoNotBroadcastAreNamedWithTheOp) {
  const Tensor a = ones({2, 3}), b = ones({4});
  EXPECT_EQ(error_of([&] { add(a, b); }), "[add] shapes do not broadcast: (2, 3) and (4,)");
  EXPECT_EQ(error_of([&] { sub(a, b); }), "[sub] shapes do not broadcast: (2, 3) and (4,)");
  EXPECT_EQ(error_of([&] { mul(b, a); }), "[mul] shapes do not broadcast: (4,) and (2, 3)");
  EXPECT_EQ(error_of([&] { div(a, ones({2, 2})); }), "[div] shapes do not broadcast: (2, 3) and (2, 2)");
}

TEST(Elementwise, LargeArraysHaveTheSameBitsOnOneTwoAndEightThreads) {
  const Tensor x = normal({300, 401}, Rng(1)), row = normal({401}, Rng(2)), column = normal({300, 1}, Rng(3));
  const auto run = [&](int count) {
    set_threads(count);
    const Tensor y = gelu(mul(add(exp(x), row), column));
    return std::vector<float>(y.data().begin(), y.data().end());
  };
  const auto one = run(1);
  EXPECT_EQ(one, run(2));
  EXPECT_EQ(one, run(8));
  set_threads(2);
}

}  // namespace qkv
