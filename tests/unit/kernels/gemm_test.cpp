// The matrix product: correct against double, same bits for a row at any position and thread count, on every target.
#include "qkv/kernels/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "qkv/core/parallel.h"
#include "qkv/core/rng.h"
#include "qkv/kernels/target.h"
#include "qkv/tensor/tensor.h"
#include "support/threads.h"

using namespace qkv;
using namespace qkv::kernels;

namespace {

using Floats = std::vector<float>;
constexpr Transpose kBoth[] = {Transpose::no, Transpose::yes};

Floats random_floats(int64_t n, uint64_t stream) {
  Floats x(static_cast<size_t>(n));
  const Rng rng = Rng(5).at(stream);
  for (size_t i = 0; i < x.size(); ++i) x[i] = rng.uniform(i) * 2 - 1;
  return x;
}

// A product with operands that have `gap` floats after every row.
struct Problem {
  Transpose ta, tb;
  int64_t M, N, K;
  float alpha, beta;
  int64_t lda, ldb, ldc;
  Floats A, B, C;

  Problem(Transpose ta, Transpose tb, int64_t M, int64_t N, int64_t K, float alpha = 1, float beta = 0, int64_t gap = 0)
      : ta(ta),
        tb(tb),
        M(M),
        N(N),
        K(K),
        alpha(alpha),
        beta(beta),
        lda((ta == Transpose::no ? K : M) + gap),
        ldb((tb == Transpose::no ? N : K) + gap),
        ldc(N + gap) {
    A = random_floats((ta == Transpose::no ? M : K) * lda, 1);
    B = random_floats((tb == Transpose::no ? K : N) * ldb, 2);
    C = random_floats(M * ldc, 3);
  }
  size_t at_a(int64_t i, int64_t k) const {
    return static_cast<size_t>(ta == Transpose::no ? i * lda + k : k * lda + i);
  }
  size_t at_b(int64_t k, int64_t j) const {
    return static_cast<size_t>(tb == Transpose::no ? k * ldb + j : j * ldb + k);
  }
  float a(int64_t i, int64_t k) const { return A[at_a(i, k)]; }
  float b(int64_t k, int64_t j) const { return B[at_b(k, j)]; }
  GemmCall call(float* out) const {
    return {.transpose_a = ta,
            .transpose_b = tb,
            .M = M,
            .N = N,
            .K = K,
            .alpha = alpha,
            .A = A.data(),
            .lda = lda,
            .B = B.data(),
            .ldb = ldb,
            .beta = beta,
            .C = out,
            .ldc = ldc};
  }
  Floats run() const {
    Floats out = C;
    gemm(call(out.data()));
    return out;
  }
  std::string name() const {
    return std::to_string(M) + "x" + std::to_string(N) + "x" + std::to_string(K) + (ta == Transpose::no ? " N" : " T") +
           (tb == Transpose::no ? "N" : "T") + " alpha " + std::to_string(alpha) + " beta " + std::to_string(beta) +
           " lda " + std::to_string(lda) + " on " + running_target();
  }
  void expect_right() const {
    const Floats out = run();
    for (int64_t i = 0; i < M; ++i)
      for (int64_t j = 0; j < ldc; ++j) {
        const size_t at = static_cast<size_t>(i * ldc + j);
        if (j >= N) {
          ASSERT_EQ(out[at], C[at]) << name() << " wrote after row " << i;
          continue;
        }
        double sum = 0, size = beta == 0 ? 0 : std::abs(beta * C[at]);
        for (int64_t k = 0; k < K; ++k) {
          sum += double{a(i, k)} * b(k, j);
          size += std::abs(alpha * a(i, k) * b(k, j));
        }
        const double expected = alpha * sum + (beta == 0 ? 0 : double{beta} * C[at]);
        ASSERT_LE(std::abs(out[at] - expected), 4e-7 * size + 1e-30) << name() << " at " << i << ", " << j;
      }
  }
};

bool same_bits(const float* a, const float* b, int64_t n) {
  return std::memcmp(a, b, static_cast<size_t>(n) * sizeof(float)) == 0;
}

constexpr std::pair<int64_t, int64_t> kModelShapes[] = {{32, 32},   {64, 32},   {32, 64},   {96, 32},    {201, 32},
                                                        {184, 32},  {8, 10},    {10, 8},    {10, 10},    {128, 128},
                                                        {256, 128}, {128, 256}, {512, 512}, {2048, 512}, {512, 2048}};

class Gemm : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { force_target(GetParam()); }
  void TearDown() override { force_target(""); }
};

INSTANTIATE_TEST_SUITE_P(EveryTarget, Gemm, testing::ValuesIn(available_targets()),
                         [](const auto& info) { return info.param; });

}  // namespace

TEST_P(Gemm, AgreesWithDoubleOverEveryTail) {
  for (Transpose ta : kBoth)
    for (Transpose tb : kBoth)
      for (int64_t M : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 25})
        for (int64_t N : {1, 2, 3, 5, 7, 8, 9, 12, 15, 16, 17, 23, 24, 25, 31, 33})
          for (int64_t K : {1, 2, 3, 4, 5, 7, 9, 16}) Problem(ta, tb, M, N, K).expect_right();
}

TEST_P(Gemm, AgreesWithDoubleWithScalesAndGaps) {
  for (Transpose ta : kBoth)
    for (Transpose tb : kBoth)
      for (auto [M, N, K] : {std::array<int64_t, 3>{1, 1, 1}, {3, 17, 5}, {10, 10, 8}, {64, 96, 32}, {50, 70, 130}})
        for (auto [alpha, beta] :
             {std::pair{1.f, 1.f}, {0.5f, 0.f}, {-2.f, 1.f}, {1.f, -0.25f}, {0.f, 0.5f}, {3.f, 2.f}})
          for (int64_t gap : {0, 1, 9}) Problem(ta, tb, M, N, K, alpha, beta, gap).expect_right();
}

TEST_P(Gemm, AgreesWithDoubleAcrossBlocks) {
  for (Transpose ta : kBoth)
    for (Transpose tb : kBoth)
      for (auto [M, N, K] : {std::array<int64_t, 3>{101, 67, 325},
                             {49, 530, 33},
                             {103, 65, 193},
                             {2, 600, 700},
                             {1, 131, 641},
                             {7, 513, 321}})
        for (float beta : {0.f, 1.f}) Problem(ta, tb, M, N, K, 1, beta, 3).expect_right();
}

// What makes AVX-512 safe to use for the product alone: nobody can tell by the result.
TEST(GemmTargets, Avx512GivesTheBitsOfAvx2) {
  const auto targets = available_targets();
  if (std::ranges::find(targets, "AVX3") == targets.end()) GTEST_SKIP() << "this CPU has no AVX-512";
  std::vector<Problem> problems;
  for (Transpose ta : kBoth)
    for (Transpose tb : kBoth) {
      for (auto [M, N, K] : {std::array<int64_t, 3>{1, 1, 1},
                             {1, 300, 7},
                             {2, 15, 9},
                             {4, 17, 33},
                             {5, 31, 64},
                             {6, 32, 31},
                             {7, 33, 320},
                             {25, 48, 321},
                             {49, 530, 33},
                             {101, 67, 325},
                             {7, 1025, 641}})
        for (auto [alpha, beta] : {std::pair{1.f, 0.f}, {1.f, 1.f}, {-0.3f, 0.7f}})
          problems.emplace_back(ta, tb, M, N, K, alpha, beta, 3);
      for (auto [N, K] : kModelShapes) problems.emplace_back(ta, tb, 37, N, K);
    }
  std::vector<Floats> expected;
  force_target("AVX2");
  for (const Problem& p : problems) expected.push_back(p.run());
  force_target("AVX3");
  for (size_t i = 0; i < problems.size(); ++i) {
    const Floats out = problems[i].run();
    EXPECT_TRUE(same_bits(out.data(), expected[i].data(), std::ssize(out))) << problems[i].name();
  }
  force_target("");
}

TEST_P(Gemm, EmptyProductsScaleC) {
  for (float beta : {0.f, 1.f, 0.5f}) {
    Problem p(Transpose::no, Transpose::no, 3, 5, 0, 1, beta, 2);
    p.expect_right();
  }
  Problem none(Transpose::no, Transpose::no, 2, 3, 4);
  for (auto [M, N] : {std::pair<int64_t, int64_t>{0, 3}, {2, 0}, {0, 0}}) {
    Floats out(6, 7.f);
    gemm({.M = M,
          .N = N,
          .K = 4,
          .A = none.A.data(),
          .lda = 4,
          .B = none.B.data(),
          .ldb = 3,
          .C = out.data(),
          .ldc = 3});
    gemm_parallel({.M = M,
                   .N = N,
                   .K = 4,
                   .A = none.A.data(),
                   .lda = 4,
                   .B = none.B.data(),
                   .ldb = 3,
                   .C = out.data(),
                   .ldc = 3});
    EXPECT_EQ(out, Floats(6, 7.f));
  }
}

TEST_P(Gemm, ZeroBetaIgnoresWhatCHeldAndNaNPropagates) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (Transpose tb : kBoth)
    for (int64_t M : {1, 9}) {
      Problem p(Transpose::no, tb, M, 21, 13);
      std::fill(p.C.begin(), p.C.end(), nan);
      p.expect_right();
      p.A[4] = nan;  // row 0
      const Floats out = p.run();
      for (int64_t j = 0; j < 21; ++j) EXPECT_TRUE(std::isnan(out[static_cast<size_t>(j)]));
      for (size_t j = 21; j < out.size(); ++j) EXPECT_FALSE(std::isnan(out[j])) << "a NaN left its row";
    }
}

// The bits of a row depend on N, K and the row, never on M or its position.
TEST_P(Gemm, ARowHasTheSameBitsAloneFirstLastAndAmongMates) {
  for (auto [N, K] : kModelShapes)
    for (Transpose tb : kBoth) {
      const bool large = N * K > 1 << 16;
      const int64_t most = large ? 100 : 420;
      const Problem all(Transpose::no, tb, most, N, K);
      const Floats together = all.run();
      for (int64_t M = 1; M < most; M += large ? 33 : M < 30 ? 1 : 41)
        for (int64_t first : {int64_t{0}, most - M, (most - M) / 2}) {
          Floats part(static_cast<size_t>(M * N));
          gemm({.transpose_b = tb,
                .M = M,
                .N = N,
                .K = K,
                .A = all.A.data() + first * K,
                .lda = K,
                .B = all.B.data(),
                .ldb = all.ldb,
                .C = part.data(),
                .ldc = N});
          ASSERT_TRUE(same_bits(part.data(), together.data() + first * N, M * N))
              << M << " rows from " << first << " of " << all.name();
        }
    }
}

// Even stronger: neither the layout nor the columns beside it change an element.
TEST_P(Gemm, AnElementHasTheSameBitsInEveryLayoutAndWidth) {
  const int64_t M = 61, N = 201, K = 337;
  const Problem plain(Transpose::no, Transpose::no, M, N, K);
  const Floats expected = plain.run();
  for (Transpose ta : kBoth)
    for (Transpose tb : kBoth)
      for (int64_t width : {int64_t{1}, int64_t{8}, int64_t{33}, N}) {
        Problem p(ta, tb, M, width, K, 1, 0, 5);
        for (int64_t k = 0; k < K; ++k) {
          for (int64_t i = 0; i < M; ++i) p.A[p.at_a(i, k)] = plain.a(i, k);
          for (int64_t j = 0; j < width; ++j) p.B[p.at_b(k, j)] = plain.b(k, j);
        }
        const Floats out = p.run();
        for (int64_t i = 0; i < M; ++i)
          ASSERT_TRUE(same_bits(out.data() + i * p.ldc, expected.data() + i * N, width)) << p.name();
      }
}

// Checks the problem's C after `call`, on one thread and on three.
void expect_alone_and_in_parallel(const Problem& p, GemmCall call, const Floats& wanted) {
  const qkv_test::ThreadsScope threads_scope;
  Floats serial = p.C, parallel = p.C;
  call.C = serial.data();
  gemm(call);
  EXPECT_EQ(serial, wanted) << p.name();
  set_threads(3);
  call.C = parallel.data();
  gemm_parallel(call);
  EXPECT_EQ(parallel, wanted) << p.name();
}

TEST_P(Gemm, PanelsGiveTheBitsOfTheMatrixTheyAreOf) {
  for (Transpose tb : kBoth)
    for (int64_t M : {1, 3, 7, 50, 130})
      for (auto [N, K] : {std::pair<int64_t, int64_t>{1, 1}, {17, 5}, {33, 321}, {128, 128}, {530, 330}, {1100, 20}}) {
        const Problem p(Transpose::no, tb, M, N, K, 0.5f, 1, 3);
        const Floats wanted = p.run();
        Tensor panels = Tensor::empty({packed_floats(N, K)});
        pack_right(tb, N, K, p.B.data(), p.ldb, panels.mutable_ptr());
        GemmCall call = p.call(nullptr);
        call.panels = panels.ptr();
        expect_alone_and_in_parallel(p, call, wanted);
      }
}

// Every path: one row, few rows, tails of tiles, packed or not, one or several panels of K, no product, in parallel.
TEST_P(Gemm, ABiasIsAddedLastToEveryRow) {
  for (Transpose ta : kBoth)
    for (Transpose tb : kBoth)
      for (int64_t M : {1, 3, 7, 50, 130})
        for (auto [N, K] : {std::pair<int64_t, int64_t>{1, 1},
                            {5, 0},
                            {17, 5},
                            {70, 40},
                            {33, 321},
                            {128, 128},
                            {530, 330},
                            {1100, 20}}) {
          const Problem p(ta, tb, M, N, K, 0.5f, 0, 3);
          const Floats bias = random_floats(N, 4);
          Floats wanted = p.run();
          for (int64_t i = 0; i < M; ++i)
            for (int64_t j = 0; j < N; ++j) wanted[static_cast<size_t>(i * p.ldc + j)] += bias[static_cast<size_t>(j)];
          GemmCall call = p.call(nullptr);
          call.bias = bias.data();
          expect_alone_and_in_parallel(p, call, wanted);
        }
}

TEST(GemmThreads, FlushDenormalResultsToZero) {
  const float tiny = 1e-30f;
  float product = 1;
  gemm({.M = 1, .N = 1, .K = 1, .A = &tiny, .lda = 1, .B = &tiny, .ldb = 1, .C = &product, .ldc = 1});
  EXPECT_EQ(product, 0);
  const float small = 1e-20f, smaller = 1e-19f;  // 1e-39 is a denormal
  gemm({.M = 1, .N = 1, .K = 1, .A = &small, .lda = 1, .B = &smaller, .ldb = 1, .C = &product, .ldc = 1});
  EXPECT_EQ(product, 0);
}

TEST(GemmParallel, HasTheBitsOfTheSerialCallAtAnyThreadCount) {
  const qkv_test::ThreadsScope threads_scope;
  for (auto [M, N, K] :
       {std::array<int64_t, 3>{640, 201, 32}, {20, 2048, 256}, {300, 300, 300}, {1, 4000, 512}, {1000, 64, 64}})
    for (Transpose ta : kBoth)
      for (Transpose tb : kBoth) {
        const Problem p(ta, tb, M, N, K, 1, 1, 2);
        const Floats serial = p.run();
        for (int count : {1, 2, 8}) {
          set_threads(count);
          Floats out = p.C;
          gemm_parallel(p.call(out.data()));
          EXPECT_EQ(out, serial) << p.name() << " with " << count << " threads";
        }
      }
}

TEST(GemmParallel, TellsOfEveryBlockOnceWhenItIsComplete) {
  const qkv_test::ThreadsScope threads_scope;
  for (int count : {1, 2, 8}) {
    set_threads(count);
    for (auto [M, N] : {std::pair<int64_t, int64_t>{640, 32}, {5, 1024}, {1, 1}, {700, 300}}) {
      const Problem p(Transpose::no, Transpose::yes, M, N, 64);
      const Floats serial = p.run();
      Floats out = p.C;
      struct Seen {
        const Floats* serial;
        Floats* out;
        int64_t N;
      } seen{&serial, &out, N};
      gemm_parallel(
          p.call(out.data()),
          [](void* context, GemmBlock block) {  // negates the result: a second or an early visit would show
            auto& s = *static_cast<Seen*>(context);
            for (int64_t i = block.row; i < block.row + block.rows; ++i)
              for (int64_t j = block.column; j < block.column + block.columns; ++j) {
                const size_t at = static_cast<size_t>(i * s.N + j);
                (*s.out)[at] = (*s.out)[at] == (*s.serial)[at] ? -(*s.out)[at] : 1e9f;
              }
          },
          &seen);
      for (size_t i = 0; i < out.size(); ++i)
        ASSERT_EQ(out[i], -serial[i]) << M << "x" << N << " at " << i << ", " << count << " threads";
    }
  }
}

TEST(GemmBatched, HasTheBitsOfSeparateCallsAndSharesOperands) {
  const qkv_test::ThreadsScope threads_scope;
  for (auto [batch, M, N, K] : {std::array<int64_t, 4>{256, 10, 10, 8},
                                {3, 200, 300, 100},
                                {1, 5, 6, 7},
                                {0, 4, 4, 4},
                                {20, 64, 64, 64},
                                {4, 3, 2, 0}})
    for (int64_t shared : {0, 1, 2}) {
      const int64_t stride_a = shared == 1 ? 0 : M * K, stride_b = shared == 2 ? 0 : K * N, stride_c = M * N + 3;
      const Floats A = random_floats(M * K * std::max<int64_t>(batch, 1), 1),
                   B = random_floats(K * N * std::max<int64_t>(batch, 1), 2);
      const Floats C = random_floats(stride_c * batch + 1, 3);
      Floats expected = C;
      for (int64_t i = 0; i < batch; ++i)
        gemm({.M = M,
              .N = N,
              .K = K,
              .A = A.data() + i * stride_a,
              .lda = K,
              .B = B.data() + i * stride_b,
              .ldb = N,
              .beta = 1,
              .C = expected.data() + i * stride_c,
              .ldc = N});
      for (int count : {1, 2, 8}) {
        set_threads(count);
        Floats out = C;
        gemm_batched({.M = M,
                      .N = N,
                      .K = K,
                      .A = A.data(),
                      .lda = K,
                      .B = B.data(),
                      .ldb = N,
                      .beta = 1,
                      .C = out.data(),
                      .ldc = N},
                     {batch, stride_a, stride_b, stride_c});
        EXPECT_EQ(out, expected) << batch << " of " << M << "x" << N << "x" << K << " with " << count << " threads";
      }
    }
}
