// Our row-stable matrix product against plain dnnl_sgemm: one thread, same layouts, interleaved, results compared
// before anything is timed.
#include <fmt/core.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

#include "qkv/core/parallel.h"
#include "qkv/core/rng.h"
#include "qkv/kernels/gemm.h"

using namespace qkv;
using Clock = std::chrono::steady_clock;

namespace {

struct Case {
  int64_t M, N, K;
  bool in_mean;  // the shapes of the speed table
};
constexpr Case kCases[] = {
    {640, 32, 32, true},  {640, 200, 32, true},   {64, 64, 64, true},       {10, 10, 8, true},
    {32, 32, 640, true},  {2048, 512, 512, true}, {2048, 8000, 512, true},  {1, 512, 512, true},
    {64, 96, 32, false},  {640, 201, 32, false},  {128, 128, 128, false},   {1536, 256, 256, false},
    {4, 512, 512, false}, {12, 512, 512, false},  {2048, 512, 2048, false}, {2048, 2048, 512, false}};

std::vector<float> random_floats(int64_t n, uint64_t stream) {
  std::vector<float> x(static_cast<size_t>(n));
  const Rng rng = Rng(1).at(stream);
  for (size_t i = 0; i < x.size(); ++i) x[i] = rng.uniform(i) * 2 - 1;
  return x;
}

template <class F>
double seconds_each(int64_t repeats, F&& f) {
  const auto start = Clock::now();
  for (int64_t i = 0; i < repeats; ++i) f();
  return std::chrono::duration<double>(Clock::now() - start).count() / static_cast<double>(repeats);
}

// Ratio of speeds, ours over theirs; negative when the results differ.
double compare(const Case& s, Transpose ta, Transpose tb) {
  const auto A = random_floats(s.M * s.K, 1), B = random_floats(s.K * s.N, 2);
  std::vector<float> ours(static_cast<size_t>(s.M * s.N)), theirs(ours);
  const int64_t lda = ta == Transpose::no ? s.K : s.M, ldb = tb == Transpose::no ? s.N : s.K;
  const auto run_ours = [&] {
    kernels::gemm({.transpose_a = ta,
                   .transpose_b = tb,
                   .M = s.M,
                   .N = s.N,
                   .K = s.K,
                   .A = A.data(),
                   .lda = lda,
                   .B = B.data(),
                   .ldb = ldb,
                   .C = ours.data(),
                   .ldc = s.N});
  };
  const auto run_theirs = [&] {
    dnnl_sgemm(ta == Transpose::no ? 'N' : 'T', tb == Transpose::no ? 'N' : 'T', s.M, s.N, s.K, 1, A.data(), lda,
               B.data(), ldb, 0, theirs.data(), s.N);
  };
  run_ours();
  run_theirs();
  for (size_t i = 0; i < ours.size(); ++i)
    if (!(std::abs(ours[i] - theirs[i]) <= 1e-6 * std::sqrt(static_cast<double>(s.K)) * 4)) {
      fmt::print("{}x{}x{}: results differ at {}: {} and {}\n", s.M, s.N, s.K, i, ours[i], theirs[i]);
      return -1;
    }
  const double flop = 2.0 * static_cast<double>(s.M * s.N * s.K);
  const int64_t repeats = std::max<int64_t>(1, static_cast<int64_t>(2e7 / flop));
  const int rounds = flop > 1e10 ? 4 : flop > 1e9 ? 7 : 40;
  double best_ours = 1e9, best_theirs = 1e9;
  for (int round = 0; round < rounds; ++round) {
    best_ours = std::min(best_ours, seconds_each(repeats, run_ours));
    best_theirs = std::min(best_theirs, seconds_each(repeats, run_theirs));
  }
  fmt::print("{}{}{} {:>16} {:8.1f} {:8.1f} {:7.2f}\n", s.in_mean ? "* " : "  ", ta == Transpose::no ? "N" : "T",
             tb == Transpose::no ? "N" : "T", fmt::format("{}x{}x{}", s.M, s.N, s.K), flop / best_ours * 1e-9,
             flop / best_theirs * 1e-9, best_theirs / best_ours);
  std::fflush(stdout);
  return best_theirs / best_ours;
}

}  // namespace

int main() {
  omp_set_num_threads(1);
  flush_denormals();
  fmt::print("     M x N x K       ours     dnnl   ratio   (GFLOP/s, one thread, best of interleaved rounds)\n");
  double log_sum = 0;
  int count = 0;
  bool agree = true;
  const auto add = [&](const Case& s, Transpose ta, Transpose tb) {
    const double ratio = compare(s, ta, tb);
    if (ratio < 0)
      agree = false;
    else if (s.in_mean)
      log_sum += std::log(ratio), ++count;
  };
  for (const Case& s : kCases) {
    add(s, Transpose::no, Transpose::no);
    add(s, Transpose::no, Transpose::yes);
  }
  for (Case s : {Case{32, 32, 640, false}, Case{64, 32, 640, false}, Case{512, 512, 2048, false}})
    add(s, Transpose::yes, Transpose::no);
  fmt::print("geometric mean over the marked shapes: {:.3f}\n", std::exp(log_sum / count));
  return agree ? 0 : 1;
}
