// Exact attention over long inputs: one head of width 64, forward. Prints time, the memory that the computation asked
// for beside what its weights would take, and the error of a few rows against loops in double precision. Usage:
// long_attention [tokens ...]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/core/parallel.h"
#include "qkv/tensor/pool.h"

namespace {

using namespace qkv;

constexpr int64_t kWidth = 64;
constexpr double kMega = 1 << 20;

double wall() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
double processor() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Row i of softmax(q k^T / sqrt(width)) v.
std::vector<double> plain_row(const Tensor& q, const Tensor& k, const Tensor& v, int64_t i) {
  const int64_t n = k.size(0);
  std::vector<double> score(static_cast<size_t>(n)), out(kWidth);
  for (int64_t j = 0; j < n; ++j) {
    double dot = 0;
    for (int64_t c = 0; c < kWidth; ++c)
      dot += static_cast<double>(q.ptr()[i * kWidth + c]) * static_cast<double>(k.ptr()[j * kWidth + c]);
    score[static_cast<size_t>(j)] = dot / std::sqrt(static_cast<double>(kWidth));
  }
  const double most = *std::max_element(score.begin(), score.end());
  double sum = 0;
  for (double& s : score) sum += s = std::exp(s - most);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t c = 0; c < kWidth; ++c)
      out[static_cast<size_t>(c)] += score[static_cast<size_t>(j)] / sum * static_cast<double>(v.ptr()[j * kWidth + c]);
  return out;
}

void measure(int64_t n) {
  const Rng rng(1);
  const Tensor q = normal({n, kWidth}, rng.at("q")), k = normal({n, kWidth}, rng.at("k")),
               v = normal({n, kWidth}, rng.at("v"));
  Pool pool;
  Tensor y;
  const double start = wall(), work = processor();
  {
    const PoolScope scope(pool);
    y = attend(ScaledDot{}, q, k, v).output;
  }
  const double took = wall() - start, worked = processor() - work;
  double worst = 0, largest = 0;
  for (int64_t i = 0; i < n; i += n / 8) {
    const std::vector<double> row = plain_row(q, k, v, i);
    for (int64_t c = 0; c < kWidth; ++c) {
      const double wanted = row[static_cast<size_t>(c)];
      worst = std::max(worst, std::abs(static_cast<double>(y.ptr()[i * kWidth + c]) - wanted));
      largest = std::max(largest, std::abs(wanted));
    }
  }
  fmt::print("{:>7} tokens {:>8.2f} s {:>8.2f} s of processor time {:>6.1f} MB, weights {:>6.0f} MB, ", n, took, worked,
             static_cast<double>(pool.bytes()) / kMega, static_cast<double>(n) * static_cast<double>(n) * 4 / kMega);
  fmt::print("error {:.1e} of {:.1e}\n", worst, largest);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  fmt::print("{} threads, width {}\n", qkv::threads(), kWidth);
  std::vector<int64_t> lengths;
  for (int i = 1; i < argc; ++i) lengths.push_back(std::max(8LL, std::atoll(argv[i])));
  if (lengths.empty()) lengths = {8192, 32768, 131072};
  for (const int64_t n : lengths) measure(n);
}
