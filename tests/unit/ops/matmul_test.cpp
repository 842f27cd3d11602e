// matmul and linear: errors, special values, sums of gradients, bits at any thread count, memory.
#include "qkv/ops/matmul.h"
#include "qkv/ops/feed_forward.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "qkv/core/parallel.h"
#include "qkv/ops/elementwise.h"
#include "qkv/tensor/tape.h"
#include "support/files.h"
#include "support/threads.h"

using namespace qkv;
using qkv_test::error_of;

namespace {

bool equal(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::equal(a.data().begin(), a.data().end(), b.data().begin());
}

}  // namespace

TEST(Matmul, NamesBothShapesWhenTheyDoNotFit) {
  EXPECT_EQ(error_of([] { matmul(zeros({2, 3}), zeros({4, 5})); }), "[matmul] inner sizes differ: (2, 3) x (4, 5)");
  EXPECT_EQ(error_of([] {
              matmul(zeros({2, 3}), zeros({2, 4}), Transpose::yes, Transpose::yes);
            }),
            "[matmul] inner sizes differ: (2, 3) transposed x (2, 4) transposed");
  EXPECT_EQ(error_of([] {
              matmul(zeros({2, 3, 4}), zeros({5, 4, 6}));
            }),
            "[matmul] leading axes differ: (2, 3, 4) x (5, 4, 6)");
  EXPECT_EQ(error_of([] { matmul(zeros({3}), zeros({3, 4})); }), "[matmul] expected two axes or more: (3,) x (3, 4)");
}

TEST(Matmul, LeadingAxesFollowNumPyWhereOneSideIsShared) {
  EXPECT_EQ(matmul(zeros({1, 1, 2, 5}), zeros({3, 5, 4})).shape(), (Shape{1, 3, 2, 4}));
  EXPECT_EQ(matmul(zeros({7, 2, 5}), zeros({1, 5, 4})).shape(), (Shape{7, 2, 4}));
}

TEST(Matmul, NaNAndInfinityGoWhereTheFormulaSendsThem) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor y = matmul(Tensor({2, 2}, {nan, 1, 2, 0}), Tensor({2, 2}, {1, 2, inf, 3}));
  EXPECT_TRUE(std::isnan(y.at({0, 0})) && std::isnan(y.at({0, 1})));
  EXPECT_TRUE(std::isnan(y.at({1, 0})));  // 0 x infinity
  EXPECT_EQ(y.at({1, 1}), 4);
  EXPECT_EQ(matmul(Tensor({1, 2}, {2, 1}), Tensor({2, 1}, {inf, 1})).item(), inf);
}

TEST(Matmul, AddsGradientsOfATensorUsedTwice) {
  const Tensor w = parameter(uniform({5, 5}, Rng(1), -1, 1));
  Tensor twice;
  {
    Tape tape;
    tape.backward(matmul(w, w), ones({5, 5}));
    twice = tape.grad(w);
  }
  const Tensor a = parameter(w.copied()), b = parameter(w.copied());
  Tape tape;
  tape.backward(matmul(a, b), ones({5, 5}));
  const Tensor da = tape.grad(a), db = tape.grad(b);
  for (int64_t i = 0; i < 25; ++i) EXPECT_NEAR(twice.ptr()[i], da.ptr()[i] + db.ptr()[i], 1e-6);
}

TEST(Linear, NamesBothShapesWhenTheyDoNotFit) {
  EXPECT_EQ(error_of([] {
              linear(zeros({2, 3}), zeros({5, 4}));
            }),
            "[linear] inner sizes differ: (2, 3) x (5, 4) transposed");
  EXPECT_EQ(error_of([] {
              linear(zeros({2, 3}), zeros({4, 3}), zeros({3}));
            }),
            "[linear] the bias has shape (3,), the weight (4, 3)");
  EXPECT_EQ(error_of([] {
              linear(zeros({2, 3}), zeros({3}));
            }),
            "[linear] expected a weight of shape (out, in), got (3,)");
}

TEST(Linear, EqualsItsPlainDefinition) {
  const Tensor x = uniform({37, 33}, Rng(1), -1, 1), w = uniform({201, 33}, Rng(2), -1, 1),
               b = uniform({201}, Rng(3), -1, 1);
  const Tensor z = add(matmul(x, w, Transpose::no, Transpose::yes), b);
  EXPECT_TRUE(equal(linear(x, w, b), z));
  EXPECT_TRUE(equal(linear(x, w, b, Activation::relu), relu(z)));
  EXPECT_TRUE(equal(linear(x, w, b, Activation::gelu), gelu(z)));
  EXPECT_TRUE(equal(linear(x, w, b, Activation::tanh), tanh(z)));
  EXPECT_TRUE(equal(linear(x, w, b, Activation::sigmoid), sigmoid(z)));
  EXPECT_TRUE(equal(linear(x, w, b, Activation::gelu_tanh), gelu_tanh(z)));
  EXPECT_TRUE(equal(linear(x, w, b, Activation::silu), silu(z)));
  const Tensor nan = Tensor({1, 1}, {std::numeric_limits<float>::quiet_NaN()});
  EXPECT_TRUE(std::isnan(linear(nan, ones({1, 1}), ones({1}), Activation::relu).item()));
}

TEST(Linear, RecordingChangesNoBits) {
  const Tensor x = uniform({70, 32}, Rng(1), -1, 1), w = uniform({64, 32}, Rng(2), -1, 1),
               b = uniform({64}, Rng(3), -1, 1);
  for (Activation f : {Activation::none, Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::tanh,
                       Activation::sigmoid, Activation::silu}) {
    const Tensor silent = linear(x, w, b, f);
    Tape tape;
    EXPECT_TRUE(equal(linear(x, parameter(w), b, f), silent));
  }
}

TEST(Linear, SameBitsOfOutputAndGradientsAtAnyThreadCount) {
  const qkv_test::ThreadsScope threads_scope;
  for (auto [M, N, K] : {std::array<int64_t, 3>{640, 201, 32}, {48, 1024, 300}, {700, 128, 128}}) {
    Tensor first[4];
    for (int count : {1, 2, 8}) {
      set_threads(count);
      const Tensor x = parameter(uniform({M, K}, Rng(1), -1, 1)), w = parameter(uniform({N, K}, Rng(2), -1, 1));
      const Tensor b = parameter(uniform({N}, Rng(3), -1, 1));
      Tape tape;
      const Tensor y = linear(x, w, b, Activation::gelu);
      tape.backward(y, uniform({M, N}, Rng(4), -1, 1));
      const Tensor now[] = {y, tape.grad(x), tape.grad(w), tape.grad(b)};
      for (int i = 0; i < 4; ++i) {
        if (count == 1) first[i] = now[i].copied();
        EXPECT_TRUE(equal(now[i], first[i])) << i << " with " << count << " threads";
      }
    }
  }
}

TEST(Linear, ASecondStepMissesNoPool) {
  Pool pool;
  PoolScope scope(pool);
  const Tensor x = uniform({64, 32}, Rng(1), -1, 1), w = parameter(uniform({96, 32}, Rng(2), -1, 1)),
               b = parameter(zeros({96}));
  const auto step = [&] {
    Tape tape;
    tape.backward(linear(linear(x, w, b, Activation::gelu), parameter(ones({8, 96}))), ones({64, 8}));
  };
  step();
  const int64_t misses = pool.misses();
  for (int i = 0; i < 5; ++i) step();
  EXPECT_EQ(pool.misses(), misses);
}

// More rows than one block, which has 256 rows when there are 16384 hidden values.
TEST(FeedForward, InBlocksOfRowsIsTheTwoLayersInLessMemory) {
  for (const Activation f :
       {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu, Activation::none}) {
    const Tensor x = parameter(uniform({2, 300, 4}, Rng(1), -1, 1));
    const Tensor w1 = parameter(uniform({16384, 4}, Rng(2), -1, 1)), b1 = parameter(uniform({16384}, Rng(3), -1, 1));
    const Tensor w2 = parameter(uniform({3, 16384}, Rng(4), -.1f, .1f)), b2 = parameter(uniform({3}, Rng(5), -1, 1));
    const auto gradients = [&](bool blocks, int64_t& bytes) {
      Pool pool;
      PoolScope scope(pool);
      Tape tape;
      const Tensor y = blocks ? feed_forward(x, w1, b1, w2, b2, f) : linear(linear(x, w1, b1, f), w2, b2);
      tape.backward(y, uniform({2, 300, 3}, Rng(6), -1, 1));
      bytes = pool.bytes();
      std::vector<Tensor> all{y};
      for (const Tensor* leaf : {&x, &w1, &b1, &w2, &b2}) all.push_back(tape.grad(*leaf).copied());
      return all;
    };
    int64_t whole_bytes = 0, part_bytes = 0;
    const std::vector<Tensor> whole = gradients(false, whole_bytes), parts = gradients(true, part_bytes);
    EXPECT_TRUE(equal(whole[0], parts[0]));
    for (size_t i = 1; i < whole.size(); ++i) {
      float most = 0;
      for (const float v : whole[i].data()) most = std::max(most, std::abs(v));
      for (int64_t j = 0; j < whole[i].numel(); ++j)
        ASSERT_NEAR(parts[i].ptr()[j], whole[i].ptr()[j], 3e-6f * most) << i << ", " << j;
    }
    EXPECT_LT(part_bytes, whole_bytes * 3 / 4);
  }
}

TEST(FeedForward, LayersMayShareTheirWeights) {
  const Tensor x = parameter(uniform({600, 4}, Rng(1), -1, 1)), w = parameter(uniform({4, 4}, Rng(2), -1, 1)),
               b = parameter(uniform({4}, Rng(3), -1, 1));
  const auto gradients = [&](const auto& f) {
    Tape tape;
    tape.backward(f(), uniform({600, 4}, Rng(4), -1, 1));
    return std::array{tape.grad(x).copied(), tape.grad(w).copied(), tape.grad(b).copied()};
  };
  const auto together = gradients([&] { return feed_forward(x, w, b, w, b, Activation::relu); });
  const auto apart = gradients([&] { return linear(linear(x, w, b, Activation::relu), w, b); });
  for (size_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < apart[i].numel(); ++j)
      ASSERT_NEAR(together[i].ptr()[j], apart[i].ptr()[j], 2e-5f) << i << ", " << j;
}

TEST(FeedForward, RefusesWeightsThatDoNotFit) {
  const Tensor x = ones({2, 3}), w1 = ones({4, 3}), w2 = ones({5, 4});
  EXPECT_EQ(error_of([&] {
              feed_forward(x, w1, {}, ones({5, 3}), {}, Activation::relu);
            }),
            "[feed_forward] the weights do not chain: (4, 3) and (5, 3)");
  EXPECT_EQ(error_of([&] {
              feed_forward(ones({2, 4}), w1, {}, w2, {}, Activation::relu);
            }),
            "[feed_forward] inner sizes differ: (2, 4) x (4, 3) transposed");
  EXPECT_EQ(error_of([&] { feed_forward(x, w1, ones({5}), w2, ones({5}), Activation::relu); }),
            "[feed_forward] biases of shape (5,) and (5,) for weights (4, 3) and (5, 4)");
}
