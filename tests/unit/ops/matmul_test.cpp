// matmul and linear: errors, special values, sums of gradients, bits at any thread count, memory.
#include "qkv/ops/matmul.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "qkv/core/parallel.h"
#include "qkv/ops/elementwise.h"
#include "qkv/tensor/tape.h"

using namespace qkv;

namespace {

std::string message_of(auto&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

bool equal(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::equal(a.data().begin(), a.data().end(), b.data().begin());
}

}  // namespace

TEST(Matmul, NamesBothShapesWhenTheyDoNotFit) {
  EXPECT_EQ(message_of([] { matmul(zeros({2, 3}), zeros({4, 5})); }), "[matmul] inner sizes differ: (2, 3) x (4, 5)");
  EXPECT_EQ(message_of([] {
              matmul(zeros({2, 3}), zeros({2, 4}), Transpose::yes, Transpose::yes);
            }),
            "[matmul] inner sizes differ: (2, 3) transposed x (2, 4) transposed");
  EXPECT_EQ(message_of([] {
              matmul(zeros({2, 3, 4}), zeros({5, 4, 6}));
            }),
            "[matmul] leading axes differ: (2, 3, 4) x (5, 4, 6)");
  EXPECT_EQ(message_of([] { matmul(zeros({3}), zeros({3, 4})); }), "[matmul] expected two axes or more: (3,) x (3, 4)");
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
  EXPECT_EQ(message_of([] {
              linear(zeros({2, 3}), zeros({5, 4}));
            }),
            "[linear] inner sizes differ: (2, 3) x (5, 4) transposed");
  EXPECT_EQ(message_of([] {
              linear(zeros({2, 3}), zeros({4, 3}), zeros({3}));
            }),
            "[linear] the bias has shape (3,), the weight (4, 3)");
  EXPECT_EQ(message_of([] {
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
  const Tensor nan = Tensor({1, 1}, {std::numeric_limits<float>::quiet_NaN()});
  EXPECT_TRUE(std::isnan(linear(nan, ones({1, 1}), ones({1}), Activation::relu).item()));
}

TEST(Linear, RecordingChangesNoBits) {
  const Tensor x = uniform({70, 32}, Rng(1), -1, 1), w = uniform({64, 32}, Rng(2), -1, 1),
               b = uniform({64}, Rng(3), -1, 1);
  for (Activation f : {Activation::none, Activation::relu, Activation::gelu, Activation::tanh, Activation::sigmoid}) {
    const Tensor silent = linear(x, w, b, f);
    Tape tape;
    EXPECT_TRUE(equal(linear(x, parameter(w), b, f), silent));
  }
}

TEST(Linear, SameBitsOfOutputAndGradientsAtAnyThreadCount) {
  const int before = threads();
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
  set_threads(before);
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
