// Dropout: which elements, how many, and the same ones at any thread count.
#include "qkv/ops/dropout.h"

#include <gtest/gtest.h>

#include <cmath>

#include "qkv/core/parallel.h"
#include "qkv/ops/embedding.h"
#include "qkv/ops/norm.h"
#include "qkv/tensor/tape.h"
#include "support/threads.h"

namespace qkv {
namespace {

const Run kInference{}, kTraining{.training = true, .rng = Rng(4).at("drop")};

std::vector<float> values(const Tensor& t) { return {t.data().begin(), t.data().end()}; }

TEST(Dropout, IsTheSameTensorInInferenceAndAtRateZero) {
  const Tensor x = parameter(ones({3}));
  Tape tape;
  EXPECT_EQ(dropout(x, 0.5f, kInference).ptr(), x.ptr());
  EXPECT_EQ(dropout(x, 0, kTraining).ptr(), x.ptr());
  EXPECT_EQ(tape.length(), 0);
}

TEST(Dropout, RefusesRatesOutsideZeroToOne) {
  for (float rate : {-0.1f, 1.f, 2.f, std::nanf("")}) EXPECT_THROW(dropout(ones({3}), rate, kInference), Error) << rate;
  try {
    dropout(ones({3}), 1, kInference);
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[dropout] the dropout rate must be in [0, 1), got 1");
  }
}

TEST(Dropout, KeepsExactlyTheElementsOfItsStreamAcrossBlocks) {
  const int64_t n = 20000;  // three blocks
  for (float rate : {0.1f, 0.5f, 0.9f, 1e-9f, 0.99999994f}) {
    const Tensor y = dropout(ones({n}), rate, kTraining);
    const float kept = static_cast<float>(1 / (1 - double{rate}));
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(y.ptr()[i], kTraining.rng.word(static_cast<uint64_t>(i)) >= rate * 0x1p32 ? kept : 0)
          << rate << " at " << i;
  }
}

TEST(Dropout, DropsAboutItsRate) {
  const int64_t n = 1 << 18;
  for (float rate : {0.1f, 0.5f, 0.8f}) {
    int64_t dropped = 0;
    for (float v : dropout(ones({n}), rate, kTraining).data()) dropped += v == 0;
    const double deviation = std::sqrt(n * double{rate} * (1 - rate));
    EXPECT_NEAR(static_cast<double>(dropped), n * double{rate}, 4 * deviation);
  }
}

TEST(Dropout, GivesOtherElementsAtAnotherStepShardAndPath) {
  const Tensor x = ones({1000});
  const auto base = values(dropout(x, 0.5f, kTraining));
  for (const Rng& rng :
       {kTraining.rng.at_step(1), kTraining.rng.at_shard(1), kTraining.rng.at("other"), kTraining.rng.at(0)}) {
    const auto other = values(dropout(x, 0.5f, qkv::Run{.training = true, .rng = rng}));
    int same = 0;
    for (size_t i = 0; i < base.size(); ++i) same += base[i] == other[i];
    EXPECT_NEAR(same, 500, 80);
  }
}

// Values and gradients of the three ops that drop, as one list of bits.
std::vector<float> everything() {
  const Tensor x = parameter(uniform({200, 70}, Rng(1), -2, 2)), y = parameter(uniform({200, 70}, Rng(2), -2, 2));
  const Tensor gamma = parameter(uniform({70}, Rng(3))), beta = parameter(uniform({70}, Rng(4)));
  const Tensor table = parameter(uniform({9, 70}, Rng(5)));
  Ids ids = Ids::empty({10, 20});
  for (int32_t i = 0; i < 200; ++i) ids.mutable_ptr()[i] = i * i % 9;
  std::vector<float> all;
  const auto add = [&](const Tensor& t) { all.insert(all.end(), t.data().begin(), t.data().end()); };
  {
    Tape tape;
    const Tensor out = dropout(x, 0.3f, kTraining);
    tape.backward(out, y.detached());
    add(out);
    add(tape.grad(x));
  }
  {
    Tape tape;
    const Tensor out = residual_layer_norm(x, y, gamma, beta, 0.3f, kTraining);
    tape.backward(out, uniform(out.shape(), Rng(6)));
    for (const Tensor& t : {out, tape.grad(x), tape.grad(y), tape.grad(gamma), tape.grad(beta)}) add(t);
  }
  {
    Tape tape;
    const Tensor out = embedding_scaled_position(table, ids, 2, uniform({20, 70}, Rng(7)), 0.3f, kTraining);
    tape.backward(out, uniform(out.shape(), Rng(8)));
    add(out);
    add(tape.grad(table));
  }
  return all;
}

TEST(Dropout, OpsThatDropHaveTheSameBitsWithOneTwoAndEightThreads) {
  const qkv_test::ThreadsScope threads_scope;
  set_threads(1);
  const auto one = everything();
  for (int count : {2, 8}) {
    set_threads(count);
    EXPECT_EQ(everything(), one) << count << " threads";
  }
}

TEST(Dropout, FusedOpsDropWhatDropoutDrops) {
  const Tensor x = uniform({5, 37}, Rng(1)), y = uniform({5, 37}, Rng(2));
  const Tensor gamma = uniform({37}, Rng(3)), beta = uniform({37}, Rng(4));
  const Tensor fused = residual_layer_norm(x, y, gamma, beta, 0.4f, kTraining);
  Tensor s = x.copied();
  const Tensor branch = dropout(y, 0.4f, kTraining);
  for (int64_t i = 0; i < s.numel(); ++i) s.mutable_ptr()[i] += branch.ptr()[i];
  EXPECT_EQ(values(fused), values(layer_norm(s, gamma, beta)));
  const Tensor table = uniform({3, 37}, Rng(5));
  const Ids ids({5}, {0, 2, 1, 2, 2});
  EXPECT_EQ(values(embedding_scaled_position(table, ids, 1, Tensor(), 0.4f, kTraining)),
            values(dropout(embedding(table, ids), 0.4f, kTraining)));
}

}  // namespace
}  // namespace qkv
